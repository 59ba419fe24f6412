// The present values of all signals as a table: both sides, the setpoint, and how far the models differ.

import { make, put } from "./dom.js";
import { figure, withUnit } from "./strokes.js";

const EVERY = 250; // ms between two updates, so that numbers can be read

export class Signals {
  #shown = 0;
  #rows = [];

  constructor() {
    this.body = make("tbody");
    this.head = make("tr");
    this.about = make("p", { class: "hint" });
    this.element = make("div", { class: "signals wide", hidden: true }, this.about,
      make("table", {}, make("caption", { class: "unseen" }, "Signals at present"), make("thead", {}, this.head), this.body));
  }

  show(task) {
    const { models } = task;
    this.element.hidden = task.drawing !== "strip";
    put(this.about, models ? `This task has no plant: ${models.members} models of the run ${models.run} stand for it. `
      + "Both controllers are switched on in a row of the log with empty integrals; that of the log's own controller "
      + "begins at the mean action. The thick line is the model that repeats the log best, the thin ones are the others." : "");
    const heads = ["Signal", "Controller", "Compare with", "Setpoint", ...(models ? ["Models differ by"] : [])];
    this.head.replaceChildren(...heads.map((text) => make("th", { scope: "col" }, text)));
    const signals = [...task.states.map((one) => ({ ...one, kind: "state" })), ...task.actions.map((one) => ({ ...one, kind: "action" })),
      { name: "cost so far", kind: "cost" }];
    this.#rows = signals.map((signal) => ({ signal, cells: heads.slice(1).map((head) => make("td", { "data-name": head })) }));
    this.body.replaceChildren(...this.#rows.map(({ signal, cells }) =>
      make("tr", {}, make("th", { scope: "row" }, withUnit(signal.name, signal.unit && `(${signal.unit})`)), ...cells)));
    this.#shown = 0;
  }

  update({ sides, setpoint }) {
    const now = performance.now();
    if (this.element.hidden || now - this.#shown < EVERY) return;
    this.#shown = now;
    for (const { signal: { kind, name }, cells: [first, second, aim, spread] } of this.#rows) {
      const of = (side) => (kind === "cost" ? side?.penalty : side?.[kind][name]);
      const say = (value) => (value === undefined ? "" : figure(value));
      put(first, say(of(sides[0])));
      put(second, say(of(sides[1])));
      put(aim, kind === "state" ? say(setpoint[name]) : "");
      const all = kind === "cost" ? [] : [sides[0], ...sides[0].others].map((side) => side[kind][name]);
      if (spread) put(spread, all.length ? say(Math.max(...all) - Math.min(...all)) : "");
    }
  }
}
