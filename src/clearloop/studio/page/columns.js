// The columns of a log as a table: a picture of each, its role, and what a person can say about that role.

import { choices, draw, make, put } from "./dom.js";

const ROLES = {
  state: "state, measured", action: "action, set by the controller",
  external: "external, such as weather", setpoint: "setpoint of a state", time: "time", episode: "episode",
  reward: "reward", terminal: "terminal, 1 at a failure", ignored: "ignored",
};
const SINGLE = ["time", "episode", "reward", "terminal"]; // at most one column has such a role
const ANY = ["time", "episode", "terminal", "ignored"]; // roles of columns that hold no numbers
const WIDE = 160, TALL = 40; // of the picture, in its own units

// A line with gaps where there are no numbers.
const picture = (course) => {
  const at = (value, i) => `${((i / Math.max(course.length - 1, 1)) * WIDE).toFixed(1)} ${(TALL - value * TALL).toFixed(1)}`;
  const path = course.map((value, i) => value === null ? "" : `${(course[i - 1] ?? null) === null ? "M" : "L"}${at(value, i)}`);
  return draw("svg", { class: "course", viewBox: `0 -2 ${WIDE} ${TALL + 4}`, preserveAspectRatio: "none", "aria-hidden": "true" },
    draw("path", { d: path.join(""), "vector-effect": "non-scaling-stroke" }));
};

// What a number field holds; null if it is empty or no number.
const number = (field) => (field.value.trim() === "" || !Number.isFinite(field.valueAsNumber) ? null : field.valueAsNumber);

class Row {
  constructor(column, table) {
    this.column = column;
    this.table = table;
    this.role = make("select", { "aria-label": `Role of ${column.name}`, onchange: () => table.changeRole(this) },
      ...Object.entries(ROLES).map(([value, text]) =>
        make("option", { value, disabled: !column.numeric && !ANY.includes(value) }, text)));
    this.role.value = column.role;
    const field = (what, value = "") =>
      make("input", { type: "number", step: "any", value, "aria-label": `${what} ${column.name}`, oninput: () => table.changed() });
    const tick = (what) => make("input", { type: "checkbox", "aria-label": `${what} ${column.name}`, onchange: () => table.changed() });
    this.setpoint = field("Setpoint of");
    this.tolerance = field("Tolerance of", column.tolerance ?? "");
    this.velocity = tick("Derive the velocity of");
    this.integral = tick("Sum up the errors of");
    this.low = field("Lower limit of");
    this.high = field("Upper limit of");
    this.of = make("select", { "aria-label": `The state whose setpoint is ${column.name}`, onchange: () => table.changed() });
    this.aim = make("span", { class: "aim" });
    this.more = make("td", { class: "more" });
    const label = (...parts) => make("label", {}, ...parts);
    this.parts = {
      state: [label("setpoint ", this.setpoint, this.aim), label("within ± ", this.tolerance), label(this.velocity, " velocity"),
        label(this.integral, " integral")],
      action: [label("limits ", this.low), label("to ", this.high)],
      setpoint: [label("of ", this.of)],
    };
    this.element = make("tr", {}, make("th", { scope: "row" }, make("div", {}, make("span", { class: "name" }, column.name),
      picture(column.course), make("span", { class: "soft" }, column.range))), make("td", {}, this.role), this.more);
    for (const one of [this.low, this.high]) one.addEventListener("input", () => (this.limited = true), { capture: true });
    this.integral.addEventListener("input", () => (table.summed = true));
  }

  // Shows what can be said about the present role; `states` are the names of all states.
  show(states, source) {
    const { column, role: { value: role } } = this;
    this.element.dataset.role = role;
    if (role === "setpoint") choices(this.of, states.map((name) => ({ value: name, text: name })), this.of.value || column.of);
    put(this.aim, source ?? "");
    this.setpoint.hidden = source !== null;
    const aimed = source !== null || number(this.setpoint) !== null;
    this.tolerance.disabled = this.integral.disabled = !aimed;
    const parts = this.parts[role] ?? [];
    const why = role === column.role && !parts.length ? [make("span", { class: "soft" }, column.why)] : [];
    if (role !== this.drawn) this.more.replaceChildren(make("div", { class: "group" }, ...parts, ...why));
    this.drawn = role; // only then, because a field that is filled in must keep the focus
  }
}

export class Columns {
  #rows = [];

  constructor(changed) {
    this.changed = () => {
      this.#show();
      changed();
    };
    this.body = make("tbody");
    this.element = make("table", { class: "columns" }, make("caption", { class: "unseen" }, "Columns of the log"),
      make("thead", {}, make("tr", {}, ...["Column", "Role", ""].map((text) => make("th", { scope: "col" }, text)))), this.body);
    this.element.querySelector("th:last-child").append(make("span", { class: "unseen" }, "Details"));
  }

  show(log) {
    this.summed = false;
    this.#rows = log.columns.map((column) => new Row(column, this));
    this.body.replaceChildren(...this.#rows.map((row) => row.element));
    this.#show();
  }

  changeRole(row) {
    const role = row.role.value;
    if (SINGLE.includes(role))
      for (const other of this.#rows) if (other !== row && other.role.value === role) other.role.value = "ignored";
    this.changed();
  }

  #of(role) {
    return this.#rows.filter((row) => row.role.value === role);
  }

  // The column that holds the setpoint of a state; null if there is none.
  #source(row) {
    return this.#of("setpoint").find(({ of }) => of.value === row.column.name)?.column.name ?? null;
  }

  #show() {
    const states = this.#of("state").map((row) => row.column.name);
    for (const row of this.#of("setpoint")) row.show(states, null); // first, because states ask them
    for (const row of this.#rows) if (row.role.value !== "setpoint") row.show(states, this.#source(row));
  }

  // What the person says, as the server takes it.
  wish() {
    const states = this.#of("state"), entries = (rows, value) => Object.fromEntries(rows.map((row) => [row.column.name, value(row)]));
    const names = (rows) => rows.map((row) => row.column.name);
    const aim = (row) => this.#source(row) ?? number(row.setpoint);
    const limited = this.#of("action").filter((row) => row.limited && number(row.low) !== null && number(row.high) !== null);
    return {
      roles: entries(this.#rows, (row) => row.role.value),
      setpoints: entries(states, aim),
      tolerances: entries(states.filter((row) => aim(row) !== null && number(row.tolerance) !== null), (row) => number(row.tolerance)),
      limits: entries(limited, (row) => [number(row.low), number(row.high)]),
      velocities: names(states.filter((row) => row.velocity.checked)),
      integrals: this.summed ? names(states.filter((row) => row.integral.checked && !row.integral.disabled)) : null,
    };
  }

  // Fills in what the server has found where the person has said nothing.
  take({ states, actions }) {
    const row = (name) => this.#rows.find(({ column }) => column.name === name);
    for (const { column, setpoint, integral } of states) {
      const one = row(column);
      if (!this.summed) one.integral.checked = integral;
      if (typeof setpoint === "number" && number(one.setpoint) === null) one.setpoint.value = setpoint;
    }
    for (const { column, limits: [low, high] } of actions) {
      const one = row(column);
      if (!one.limited) [one.low.value, one.high.value] = [low, high];
    }
    this.#show();
  }
}
