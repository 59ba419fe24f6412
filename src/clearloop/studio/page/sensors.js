// The sliders for disturbances: noisy and late sensors, actuators that do less or more, and other setpoints.

import { button, make } from "./dom.js";
import { figure, withUnit } from "./strokes.js";

const MOST_DELAY = 10; // steps
const WITHIN = 0.75; // share of the range between the limits in which setpoints may be

class Slider {
  touched = false;
  #say;

  constructor(text, range, say, changed) {
    this.first = range.value;
    this.#say = say;
    this.input = make("input", { type: "range", ...range });
    this.shown = make("output", {}, say(this.value));
    this.element = make("label", {}, make("span", {}, text), this.input, this.shown);
    this.input.addEventListener("input", () => {
      this.touched = true;
      this.shown.value = say(this.value);
      changed();
    });
  }

  get value() {
    return Number(this.input.value);
  }

  set(value) {
    this.input.value = value;
    this.shown.value = this.#say(this.value);
  }
}

export class Sensors {
  #setpoints = new Map(); // state: slider

  constructor(changed) {
    this.changed = changed;
    this.element = make("div", { class: "sensors" });
  }

  show(task) {
    const percent = (value) => `${Math.round(100 * value)} %`;
    const time = (steps) => (task.dt < 1 ? `${Math.round(1000 * steps * task.dt)} ms` : `${steps * task.dt} s`);
    this.noise = new Slider("Sensor noise", { min: 0, max: 1, step: 0.05, value: 0 }, percent, this.changed);
    this.delay = new Slider("Sensor delay", { min: 0, max: MOST_DELAY, step: 1, value: 0 }, time, this.changed);
    const signed = (value) => `${value < 0 ? "−" : value > 0 ? "+" : ""}${Math.round(Math.abs(50 * value))} %`;
    this.gain = new Slider("Gain error", { min: -0.5, max: 1, step: 0.05, value: 0 },
      (value) => `× ${(1 + value).toFixed(2)}`, this.changed);
    this.load = new Slider("Load", { min: -1, max: 1, step: 0.05, value: 0 }, signed, this.changed);
    const steered = task.states.filter((state) => state.steerable);
    this.#setpoints = new Map(steered.map((state) => [state.name, this.#aim(state)]));
    const reset = button("Reset", () => this.#reset(),
      { class: "quiet", title: "No disturbances, the task's own setpoint" });
    const sliders = [this.noise, this.delay, this.gain, this.load, ...this.#setpoints.values()];
    this.element.replaceChildren(...sliders.map((slider) => slider.element), reset);
  }

  #aim({ name, unit, range, limits, setpoint }) {
    const middle = (range[0] + range[1]) / 2;
    const [min, max] = limits ? range.map((edge) => middle + WITHIN * (edge - middle)) : range;
    return new Slider(`Setpoint of ${name}`, { min, max, step: (max - min) / 100, value: setpoint ?? middle },
      (value) => withUnit(figure(value), unit), this.changed);
  }

  #reset() {
    for (const slider of [this.noise, this.delay, this.gain, this.load]) slider.set(slider.first);
    for (const slider of this.#setpoints.values()) slider.set(slider.first);
    this.changed();
  }

  // Shows the present setpoints, which a task may change by itself.
  update(setpoint) {
    for (const [name, slider] of this.#setpoints)
      if (!slider.touched && name in setpoint) slider.set(setpoint[name]);
  }

  get sensors() {
    return { noise: this.noise.value, delay: this.delay.value, gain: Number((1 + this.gain.value).toFixed(3)), load: this.load.value };
  }

  get setpoint() {
    const touched = [...this.#setpoints].filter(([, slider]) => slider.touched);
    return Object.fromEntries(touched.map(([name, slider]) => [name, slider.value]));
  }
}
