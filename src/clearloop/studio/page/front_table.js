// The front as a table, with a button for each controller that opens Watch.

import { button, make } from "./dom.js";
import { figure } from "./strokes.js";

const number = (value) => (Number.isFinite(value) ? figure(value) : "");

export const frontTable = (entries, chosen) =>
  make("div", { class: "wide" }, make("table", { class: "fronts" },
    make("thead", {}, make("tr", {}, ...["", "complexity", "promised", "on plant", "controller"].map((name) =>
      make("th", { scope: "col" }, name)))),
    make("tbody", {}, ...entries.map((entry) => make("tr", { class: entry.pick ? "pick" : null },
      make("td", {}, button("Watch", () => chosen(entry), { "aria-label": `Watch ${entry.controller}` })),
      make("td", { "data-name": "complexity" }, String(entry.complexity ?? "")),
      make("td", { "data-name": "promised" }, number(entry.penalty_model)),
      make("td", { "data-name": "on plant" }, number(entry.penalty_system)),
      make("td", {}, make("code", {}, entry.formula ?? ""),
        entry.pick ? make("b", { class: "badge" }, "pick") : null))))));
