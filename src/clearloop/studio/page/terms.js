// The terms of an action as bars: each bar starts where the one above ended; the last is the applied action.

import { make, put } from "./dom.js";
import { Margins } from "./margins.js";
import { figure, withUnit } from "./strokes.js";

const SHRINK = 0.985; // factor of the scale at each frame that needs less room
const ROOM = 1.08; // length of the scale, in lengths of the longest bar

// The bars of one action, on one scale.
class Sum {
  #rows;
  #total;
  #beyond = make("span", { class: "bar beyond" }); // the part that the limits cut off
  #room = [0, 0]; // below and above zero

  constructor(action, texts) {
    this.action = action;
    this.#rows = texts.map((text) => this.#row(text, "term"));
    this.#total = this.#row(`= ${action.name}`, "sum");
    this.#total.track.prepend(this.#beyond);
    this.items = [...this.#rows, this.#total].map(({ item }) => item);
  }

  #row(text, kind) {
    const bar = make("span", { class: "bar" }), value = make("span", { class: "value" });
    const track = make("span", { class: "track", "aria-hidden": "true" }, bar);
    const item = make("li", { class: kind }, make("code", { title: text }, text), track, value);
    return { bar, value, track, item };
  }

  #share(value) {
    const [below, above] = this.#room;
    return 100 * Math.max(0, Math.min(1, (value + below) / (below + above)));
  }

  #place(bar, from, to) {
    bar.style.left = `${Math.min(this.#share(from), this.#share(to))}%`;
    bar.style.width = `${Math.abs(this.#share(to) - this.#share(from))}%`;
    bar.classList.toggle("down", to < from);
  }

  update(values, applied) {
    const ends = [];
    for (const value of values) ends.push((ends.at(-1) ?? 0) + value);
    const all = [0, ...ends, ...this.action.limits];
    const needed = [-Math.min(...all), Math.max(...all)];
    this.#room = this.#room.map((had, i) => Math.max(ROOM * needed[i], SHRINK * had));
    values.forEach((value, i) => {
      this.#place(this.#rows[i].bar, ends[i] - value, ends[i]);
      put(this.#rows[i].value, figure(value));
    });
    this.#place(this.#total.bar, 0, applied);
    this.#place(this.#beyond, applied, ends.at(-1) ?? applied);
    put(this.#total.value, withUnit(figure(applied), this.action.unit));
    const [low, high] = this.action.limits;
    const [least, zero, most] = [low, 0, high].map((value) => `${this.#share(value)}%`);
    for (const { track } of [...this.#rows, this.#total]) {
      track.style.setProperty("--least", least);
      track.style.setProperty("--zero", zero);
      track.style.setProperty("--most", most);
    }
  }
}

export class Terms {
  #sums = [];
  #arranged = null;

  constructor(colour) {
    this.title = make("h3");
    this.formula = make("p", { class: "formula" });
    this.list = make("ol", { class: "terms" });
    this.margins = new Margins();
    this.element = make("div", { class: `doing ${colour}` }, this.title, this.formula, this.margins.element, this.list);
  }

  show(task, controller) {
    this.margins.show(task, controller?.id === "hand" ? null : controller?.id);
    this.title.textContent = controller?.title ?? "";
    this.formula.textContent = controller?.formula ?? "";
    this.#arranged = null;
  }

  // Takes one frame of one side. The terms are known once the controller has acted.
  update(side, actions) {
    const parts = actions.map(({ name }) => side.terms.filter((term) => (term.action ?? name) === name));
    const key = JSON.stringify(parts.map((terms) => terms.map((term) => term.text)));
    if (key !== this.#arranged) {
      this.#arranged = key;
      this.#sums = actions.map((action, i) => new Sum(action, parts[i].map((term) => term.text)));
      this.list.replaceChildren(...this.#sums.flatMap((sum) => sum.items));
    }
    this.#sums.forEach((sum, i) =>
      sum.update(parts[i].map((term) => term.value), side.action[actions[i].name]));
  }
}
