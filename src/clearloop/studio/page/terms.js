// An equation at work: each term is a bar that starts where the one above ended; the last bar is what is applied.

import { make } from "./dom.js";
import { figure, withUnit } from "./strokes.js";

const SHRINK = 0.985; // of the scale, for each frame in which less room is needed

export class Terms {
  #rows = [];
  #texts = null;
  #scale = 1;

  constructor(colour) {
    this.title = make("h3");
    this.formula = make("p", { class: "formula" });
    this.list = make("ol", { class: "terms" });
    this.element = make("div", { class: `doing ${colour}` }, this.title, this.formula, this.list);
  }

  show(controller) {
    this.title.textContent = controller?.title ?? "";
    this.formula.textContent = controller?.formula ?? "";
    this.#texts = null;
  }

  #row(text, kind) {
    const bar = make("span", { class: "bar" }), beyond = make("span", { class: "bar beyond" });
    const value = make("span", { class: "value" });
    const track = make("span", { class: "track", "aria-hidden": "true" }, beyond, bar);
    this.list.append(make("li", { class: kind }, make("code", { title: text }, text), track, value));
    return { bar, beyond, value, track };
  }

  #arrange(texts, action) {
    const key = JSON.stringify([texts, action.name]);
    if (key === this.#texts) return;
    this.#texts = key;
    this.list.replaceChildren();
    this.#rows = texts.map((text) => this.#row(text, "term"));
    this.#rows.push(this.#row(`= ${action.name}`, "sum"));
    this.#scale = Math.max(...action.limits.map(Math.abs));
  }

  #place(bar, from, to) {
    const share = (value) => 50 + (50 * Math.max(-this.#scale, Math.min(this.#scale, value))) / this.#scale;
    bar.style.left = `${Math.min(share(from), share(to))}%`;
    bar.style.width = `${Math.abs(share(to) - share(from))}%`;
    bar.classList.toggle("down", to < from);
  }

  // With one frame of one side, and the action that the terms are of.
  update(side, action) {
    const terms = side.terms ?? [], applied = side.action[action.name];
    this.#arrange(terms.map((term) => term.text), action);
    const ends = [];
    for (const { value } of terms) ends.push((ends.at(-1) ?? 0) + value);
    const most = Math.max(...ends.map(Math.abs), ...action.limits.map(Math.abs)) * 1.08;
    this.#scale = Math.max(most, this.#scale * SHRINK);
    terms.forEach(({ value }, i) => {
      this.#place(this.#rows[i].bar, ends[i] - value, ends[i]);
      this.#rows[i].value.textContent = figure(value);
    });
    const sum = this.#rows.at(-1);
    this.#place(sum.bar, 0, applied);
    this.#place(sum.beyond, applied, ends.at(-1) ?? applied);
    sum.value.textContent = withUnit(figure(applied), action.unit);
    for (const { track } of this.#rows)
      action.limits.forEach((limit, i) =>
        track.style.setProperty(i ? "--most" : "--least", `${50 + (50 * limit) / this.#scale}%`));
  }
}
