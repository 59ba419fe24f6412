// A canvas with one side of the simulation on it, the time kept up, and a word when there is something to say.

import { make } from "./dom.js";
import { drawBars } from "./drawing_bars.js";
import { drawCartpole } from "./drawing_cartpole.js";
import { drawPendulum } from "./drawing_pendulum.js";
import { colours } from "./theme.js";

const DRAWINGS = { cartpole: drawCartpole, pendulum: drawPendulum, bars: drawBars };

// What ended an attempt, as far as the limits say.
export const reason = (task, side) => {
  const out = task.states.find(({ name, box }) => box && (side.state[name] < box[0] || side.state[name] > box[1]));
  if (!out) return "It failed";
  if (task.drawing === "cartpole") return out.name === "rho" ? "Off the track" : "The pole fell";
  return `${out.name} left its limits`;
};

export class Stage {
  #context;
  #size = { width: 0, height: 0 };
  body = null; // where the pole is, in px: {from: [x, y], to: [x, y]}

  constructor({ label, colour = "first" }) {
    this.colour = colour;
    this.canvas = make("canvas", { role: "img", "aria-label": label });
    this.seconds = make("output", { "aria-label": "seconds kept up", "aria-live": "off" }, "0.0");
    this.note = make("span", { class: "beside" });
    this.word = make("p", { class: "word", hidden: true });
    this.element = make("div", { class: `stage ${colour}` }, this.canvas,
      make("p", { class: "clock" }, this.seconds, make("span", { class: "unit" }, " s "), this.note), this.word);
    this.#context = this.canvas.getContext("2d");
    new ResizeObserver(() => this.#fit()).observe(this.canvas);
  }

  #fit() {
    const { clientWidth: width, clientHeight: height } = this.canvas, dense = devicePixelRatio || 1;
    this.#size = { width, height };
    this.canvas.width = Math.round(width * dense);
    this.canvas.height = Math.round(height * dense);
    this.#context.setTransform(dense, 0, 0, dense, 0, 0);
  }

  say(text) {
    if (this.word.textContent !== text) this.word.textContent = text;
    this.word.hidden = !text;
  }

  draw(task, side, setpoint) {
    const { width, height } = this.#size, palette = colours();
    if (!width) return;
    this.#context.clearRect(0, 0, width, height);
    this.body = DRAWINGS[task.drawing](this.#context,
      { width, height, task, side, setpoint, colours: palette, accent: palette[this.colour] });
    this.seconds.value = (side?.up ?? 0).toFixed(1);
    this.element.classList.toggle("failed", side?.failed ?? false);
  }
}
