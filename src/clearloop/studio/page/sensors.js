// What makes a controller's life harder: noisy sensors, late sensors, and a setpoint that moves.

import { button, make } from "./dom.js";
import { figure, withUnit } from "./strokes.js";

const MOST_DELAY = 10; // steps

export class Sensors {
  #sliders = [];

  constructor(changed) {
    this.changed = changed;
    this.element = make("div", { class: "sensors" });
  }

  show(task) {
    const milliseconds = (steps) => (task.dt < 1 ? `${Math.round(1000 * steps * task.dt)} ms` : `${steps * task.dt} s`);
    this.#sliders = [
      this.#slider("Sensor noise", { min: 0, max: 1, step: 0.05, value: 0 }, (value) => `${Math.round(100 * value)} %`),
      this.#slider("Sensor delay", { min: 0, max: MOST_DELAY, step: 1, value: 0 }, milliseconds),
      ...task.states.filter((state) => state.setpoint !== null && state.setpoint !== undefined).map((state) => {
        const [low, high] = state.range, step = (high - low) / 100;
        return { state: state.name, ...this.#slider(`Setpoint of ${state.name}`,
          { min: low, max: high, step, value: state.setpoint }, (value) => withUnit(figure(value), state.unit)) };
      }),
    ];
    this.element.replaceChildren(...this.#sliders.map(({ element }) => element),
      button("Back to the start", () => this.#reset(), { class: "quiet", title: "No noise, no delay, the task's setpoint" }));
  }

  #slider(text, range, say) {
    const input = make("input", { type: "range", ...range }), shown = make("output", {}, say(range.value));
    input.addEventListener("input", () => {
      shown.value = say(Number(input.value));
      this.changed();
    });
    return { input, first: range.value, say, shown, element: make("label", {}, make("span", {}, text), input, shown) };
  }

  #reset() {
    for (const { input, first, say, shown } of this.#sliders) {
      input.value = first;
      shown.value = say(first);
    }
    this.changed();
  }

  get sensors() {
    const [noise, delay] = this.#sliders;
    return { noise: Number(noise.input.value), delay: Number(delay.input.value) };
  }

  get setpoint() {
    return Object.fromEntries(this.#sliders.slice(2).map(({ state, input }) => [state, Number(input.value)]));
  }
}
