// The last seconds of states and action as lines, each in its own range.

import { make } from "./dom.js";
import { label, line } from "./strokes.js";
import { colours } from "./theme.js";

const STEPS = 320;
const MOST_LINES = 2; // states; more lines cannot be told apart at a glance
const EDGE = 8, LEGEND = 18; // px

const share = ([low, high], value) => Math.max(-0.03, Math.min(1.03, (value - low) / (high - low)));

export class Trace {
  #points = []; // {t, episode, begins, failed, states: [share], action: share}
  #lines = [];
  #drawn = "";

  constructor(colour) {
    this.colour = colour;
    this.canvas = make("canvas", { class: "trace", "aria-hidden": "true" });
  }

  show(task) {
    const limited = task.states.filter((state) => state.limits);
    this.#lines = (limited.length ? limited : task.states).slice(0, MOST_LINES)
      .map(({ name, limits, range }) => ({ name, span: limits ?? range }));
    [this.action] = task.actions;
    this.#points = [];
    this.#drawn = "";
  }

  // After a failure, the trace stands still.
  push({ t, episode }, side) {
    const last = this.#points.at(-1);
    if (last?.t === t || (side.failed && last?.failed)) return;
    this.#points.push({ t, episode, begins: episode !== last?.episode, failed: side.failed,
      states: this.#lines.map(({ name, span }) => share(span, side.state[name])),
      action: share(this.action.limits, side.action[this.action.name]) });
    while (this.#points[0].t < t - STEPS || this.#points[0].t > t) this.#points.shift();
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.canvas, dense = devicePixelRatio || 1;
    const palette = colours(), latest = this.#points.at(-1)?.t ?? 0, key = `${width} ${latest} ${palette.paper}`;
    if (key === this.#drawn) return;
    this.#drawn = key;
    if (this.canvas.width !== Math.round(width * dense)) {
      this.canvas.width = Math.round(width * dense);
      this.canvas.height = Math.round(height * dense);
    }
    const context = this.canvas.getContext("2d");
    context.setTransform(dense, 0, 0, dense, 0, 0);
    context.clearRect(0, 0, width, height);
    const x = (t) => width - ((latest - t) / STEPS) * width;
    const y = (value) => EDGE + (1 - value) * (height - EDGE - LEGEND);
    context.fillStyle = palette.force;
    context.globalAlpha = 0.3;
    const step = width / STEPS + 0.5, zero = y(share(this.action.limits, 0));
    for (const { t, action } of this.#points) context.fillRect(x(t) - step, zero, step, y(action) - zero);
    context.globalAlpha = 1;
    line(context, 0, zero, width, zero, palette.line, 1);
    const shades = [palette[this.colour], palette.goal];
    this.#lines.forEach((_, i) => {
      context.strokeStyle = shades[i];
      context.lineWidth = 2;
      context.setLineDash(i ? [6, 3] : []);
      context.beginPath();
      for (const { t, begins, states } of this.#points)
        context[begins ? "moveTo" : "lineTo"](x(t), y(states[i]));
      context.stroke();
    });
    context.setLineDash([]);
    let from = EDGE;
    const names = [...this.#lines.map(({ name }, i) => [name, shades[i]]), [this.action.name, palette.force]];
    for (const [name, shade] of names) {
      label(context, name, from, height - 9, shade, { align: "left" });
      from += context.measureText(name).width + 14;
    }
  }
}
