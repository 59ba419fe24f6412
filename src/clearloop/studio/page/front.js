// The front: complexity against penalty. A point shows its formula, and a click drives it.

import { draw, make } from "./dom.js";
import { legend, mark } from "./marks.js";
import { figure } from "./strokes.js";

const HEIGHT = 300, EDGE = { left: 48, right: 16, top: 14, bottom: 42 };
const INVITATION = "Point at a controller to read it; click to watch it drive.", SOON = "Point at a controller to read it.";

export const penalty = (entry) => entry.penalty_system ?? entry.penalty_model;

const usable = (entry) => Number.isFinite(penalty(entry)) && Number.isFinite(entry.complexity);

// Round numbers within [low, high] of a logarithmic axis.
const decades = (low, high) => {
  const all = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1)
    for (const digit of [1, 2, 3, 5]) all.push(digit * 10 ** power);
  return all.filter((value) => value >= low && value <= high);
};

const evenly = (low, high) => {
  const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((one) => (high - low) / one <= 7) ?? (high - low) / 5;
  const all = [];
  for (let value = Math.ceil(low / step) * step; value <= high; value += step) all.push(value);
  return all;
};

export class FrontChart {
  #entries = [];
  #drawn = "";

  constructor(chosen) {
    this.chosen = chosen;
    this.svg = draw("svg", { class: "chart", role: "group", "aria-label": "Complexity against penalty" });
    this.hint = make("p", { class: "hint", "aria-live": "polite" }, INVITATION);
    this.legend = make("div", { class: "legend" });
    this.element = make("figure", { class: "front", hidden: true }, this.legend, this.svg, this.hint);
    new ResizeObserver(() => this.#draw()).observe(this.element);
  }

  show(entries) {
    const found = entries.filter(usable);
    if (JSON.stringify(found) === JSON.stringify(this.#entries)) return;
    this.#entries = found;
    this.element.hidden = !this.#entries.length;
    this.hint.textContent = found.some((entry) => entry.controller) ? INVITATION : SOON;
    this.legend.replaceChildren(...legend(this.#entries.map((entry) => entry.method)));
    this.#draw();
  }

  #draw() {
    const width = this.svg.clientWidth, key = JSON.stringify([width, this.#entries]);
    if (!width || key === this.#drawn) return;
    this.#drawn = key;
    const values = this.#entries.map(penalty).filter((value) => value > 0), sizes = this.#entries.map((one) => one.complexity);
    if (!values.length) return;
    const low = Math.min(...values) / 1.15, high = Math.max(...values) * 1.15;
    const least = Math.max(0, Math.min(...sizes) - 2), most = Math.max(...sizes) + 2;
    const x = (size) => EDGE.left + ((size - least) / (most - least)) * (width - EDGE.left - EDGE.right);
    const y = (value) => EDGE.top + (Math.log(high / Math.max(value, low)) / Math.log(high / low)) * (HEIGHT - EDGE.top - EDGE.bottom);
    const floor = HEIGHT - EDGE.bottom;
    const grid = decades(low, high).map((value) => [
      draw("line", { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: y(value), y2: y(value) }),
      draw("text", { x: EDGE.left - 8, y: y(value) + 4, "text-anchor": "end" }, String(Number(value.toPrecision(2)))),
    ]);
    const sizesAxis = evenly(least, most).map((size) =>
      draw("text", { x: x(size), y: floor + 17, "text-anchor": "middle" }, String(size)));
    const onPlant = this.#entries.every((entry) => Number.isFinite(entry.penalty_system));
    const names = [
      draw("text", { x: (EDGE.left + width - EDGE.right) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, "complexity"),
      draw("text", { x: 13, y: (EDGE.top + floor) / 2, "text-anchor": "middle",
        transform: `rotate(-90 13 ${(EDGE.top + floor) / 2})` }, onPlant ? "penalty on the plant" : "penalty on the model"),
    ];
    const focused = this.svg.contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    this.svg.setAttribute("height", HEIGHT);
    this.svg.replaceChildren(...grid.flat(), ...sizesAxis, ...names,
      ...this.#entries.map((entry) => this.#point(entry, x(entry.complexity), y(penalty(entry)))));
    if (focused) [...this.svg.querySelectorAll(".point")].find((point) => point.getAttribute("aria-label") === focused)?.focus();
  }

  #point(entry, x, y) {
    const { controller, method, complexity, formula } = entry;
    const text = `${controller === null ? "" : `${controller}: `}${method}, complexity ${complexity}, penalty ${figure(penalty(entry))}${entry.pick ? ", the pick" : ""}`;
    const tell = () => this.hint.replaceChildren(`${text} — `, make("code", {}, formula ?? ""));
    const choose = () => this.chosen(entry);
    return draw("g", {
      class: entry.pick ? "point pick" : "point", role: "button", tabindex: 0, transform: `translate(${x} ${y})`,
      "aria-label": `${text}. ${formula ?? ""}`, "data-controller": controller,
      onmouseenter: tell, onfocus: tell, onclick: choose,
      onkeydown: (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        choose();
      },
    }, draw("circle", { class: "halo", r: 14 }), mark(method));
  }
}
