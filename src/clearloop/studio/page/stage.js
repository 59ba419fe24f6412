// One side of the simulation: its picture, the time without failure, a message over the picture, and a trace.
// Without a picture of the plant, it is the strip chart of all signals, which shows both sides.

import { make, put } from "./dom.js";
import { drawCartpole } from "./drawing_cartpole.js";
import { drawPendulum } from "./drawing_pendulum.js";
import { Strip } from "./strip.js";
import { colours } from "./theme.js";
import { Trace } from "./trace.js";

const DRAWINGS = { cartpole: drawCartpole, pendulum: drawPendulum };

export const over = (side) => side.failed || side.succeeded;

// The reason for the end of an episode, as far as the limits tell.
export const reason = (task, side) => {
  if (side.succeeded) return "It succeeded";
  const truth = (name) => side.state[task.pose?.[name] ?? name];
  const out = task.states.find(({ name, limits }) =>
    limits && (truth(name) < limits[0] || truth(name) > limits[1]));
  if (!out) return "It failed";
  if (task.drawing === "cartpole") return out.name === "rho" ? "Off the track" : "The pole fell";
  return `${out.name} left its limits`;
};

export class Stage {
  #context;
  #size = { width: 0, height: 0 };
  #task = null;
  #strip = new Strip();
  body = null; // where the pole is, in px: {from: [x, y], to: [x, y]}

  constructor({ label, colour = "first" }) {
    this.colour = colour;
    this.canvas = make("canvas", { role: "img", "aria-label": label });
    this.trace = new Trace(colour);
    this.seconds = make("output", { "aria-label": "seconds without failure", "aria-live": "off" }, "0.0");
    this.note = make("span", { class: "beside" });
    this.word = make("p", { class: "word", hidden: true });
    this.element = make("div", { class: `stage ${colour}` },
      make("div", { class: "scene" }, this.canvas, this.word,
        make("p", { class: "clock" }, this.seconds, make("span", { class: "unit" }, " s "), this.note)),
      this.trace.canvas);
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

  show(task) {
    this.#task = task;
    this.trace.show(task);
    this.#strip.show(task);
    this.charted = task.drawing === "strip";
    this.element.classList.toggle("strip", this.charted);
    this.canvas.style.height = this.charted ? `${this.#strip.height}px` : "";
    this.trace.canvas.hidden = this.charted;
  }

  say(text) {
    put(this.word, text);
    this.word.hidden = !text;
  }

  // Takes a side as the server sent it.
  take(frame, side) {
    if (this.charted) this.#strip.push(frame);
    else this.trace.push(frame, side);
  }

  // Draws a side as it is between two frames.
  draw(side, setpoint) {
    const { width, height } = this.#size, palette = colours();
    if (!width) return;
    this.element.classList.toggle("failed", side?.failed ?? false);
    if (this.charted) {
      this.#strip.draw(this.#context, { width, height, colours: palette });
      return;
    }
    this.#context.clearRect(0, 0, width, height);
    this.body = DRAWINGS[this.#task.drawing](this.#context,
      { width, height, task: this.#task, side, setpoint, colours: palette, accent: palette[this.colour] });
    this.trace.draw();
    put(this.seconds, (side?.up ?? 0).toFixed(1));
  }
}
