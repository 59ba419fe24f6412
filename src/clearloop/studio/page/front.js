// The front as a chart of penalty over complexity. A point shows its formula, and a click on it opens Watch.

import { fitting, linear } from "./axis.js";
import { draw, make } from "./dom.js";
import { legend, mark } from "./marks.js";
import { figure } from "./strokes.js";

const HEIGHT = 300, LEFT = 52, RIGHT = 16, TOP = 10, BOTTOM = 42; // px
const INVITATION = "Point at a controller to read its formula; click it to watch it drive.";
const SOON = "Point at a controller to read its formula.";

const penalty = (entry) => entry.penalty_system ?? entry.penalty_model;

const usable = (entry) => Number.isFinite(penalty(entry)) && Number.isFinite(entry.complexity);

const said = (entry) =>
  [entry.controller && `${entry.controller}:`, `${entry.method}, complexity ${entry.complexity},`,
    `penalty ${figure(penalty(entry))}${entry.pick ? ", the pick" : ""}`].filter(Boolean).join(" ");

export class FrontChart {
  #entries = [];
  #drawn = "";

  constructor(chosen) {
    this.chosen = chosen;
    this.svg = draw("svg", { class: "chart", role: "group", "aria-label": "Penalty over complexity" });
    this.hint = make("p", { class: "hint", "aria-live": "polite" });
    this.legend = make("div", { class: "legend" });
    this.element = make("figure", { class: "front", hidden: true }, this.legend, this.svg, this.hint);
    new ResizeObserver(() => this.#draw()).observe(this.element);
  }

  show(entries) {
    const found = entries.filter(usable);
    if (JSON.stringify(found) === JSON.stringify(this.#entries)) return;
    this.#entries = found;
    this.element.hidden = !found.length;
    this.hint.textContent = found.some((entry) => entry.controller) ? INVITATION : SOON;
    this.legend.replaceChildren(...legend(found.map((entry) => entry.method)));
    this.#draw();
  }

  #draw() {
    const width = this.svg.clientWidth, key = JSON.stringify([width, this.#entries]);
    if (!width || !this.#entries.length || key === this.#drawn) return;
    this.#drawn = key;
    const across = linear(this.#entries.map((entry) => entry.complexity));
    const up = fitting(this.#entries.map(penalty));
    const floor = HEIGHT - BOTTOM;
    const x = (value) => LEFT + across.share(value) * (width - LEFT - RIGHT);
    const y = (value) => floor - up.share(value) * (floor - TOP);
    const active = document.activeElement;
    const focused = this.svg.contains(active) ? active.getAttribute("aria-label") : null;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    this.svg.replaceChildren(
      ...up.ticks.flatMap((value) => [
        draw("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(value), y2: y(value) }),
        draw("text", { x: LEFT - 8, y: y(value) + 4, "text-anchor": "end" }, String(value)),
      ]),
      ...across.ticks.filter(Number.isInteger).map((value) =>
        draw("text", { x: x(value), y: floor + 17, "text-anchor": "middle" }, String(value))),
      ...this.#names(width, floor),
      ...this.#entries.map((entry) => this.#point(entry, x(entry.complexity), y(penalty(entry)))));
    const points = [...this.svg.querySelectorAll(".point")];
    if (focused) points.find((point) => point.getAttribute("aria-label") === focused)?.focus();
  }

  #names(width, floor) {
    const where = this.#entries.every((entry) => Number.isFinite(entry.penalty_system)) ? "plant" : "model";
    const middle = (TOP + floor) / 2;
    return [
      draw("text", { x: (LEFT + width - RIGHT) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, "complexity"),
      draw("text", { x: 13, y: middle, "text-anchor": "middle", transform: `rotate(-90 13 ${middle})` },
        `penalty on the ${where}`),
    ];
  }

  #point(entry, x, y) {
    const text = said(entry), formula = entry.formula ?? "";
    const tell = () => this.hint.replaceChildren(`${text} — `, make("code", {}, formula));
    const choose = () => this.chosen(entry);
    return draw("g", {
      class: entry.pick ? "point pick" : "point", role: "button", tabindex: 0,
      transform: `translate(${x} ${y})`, "aria-label": `${text}. ${formula}`, "data-controller": entry.controller,
      onmouseenter: tell, onfocus: tell, onclick: choose,
      onkeydown: (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        choose();
      },
    }, draw("circle", { class: "halo", r: 14 }), mark(entry.method));
  }
}
