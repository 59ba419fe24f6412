// The tab Watch: one controller drives, or two side by side from the same start with the same disturbances.

import * as api from "./api.js";
import { button, choices, counted, make, put } from "./dom.js";
import { announce, trying } from "./notices.js";
import { plantless } from "./plantless.js";
import { Signals } from "./signals.js";
import { Sensors } from "./sensors.js";
import { Speeds } from "./speeds.js";
import { Stage, over, reason } from "./stage.js";
import { Steering } from "./steering.js";
import { Terms } from "./terms.js";
import { calm } from "./theme.js";

const PUSH = 0.5; // share of the strongest push
const THINKING = "Each bar is a term and starts where the one above ended. The last bar is the applied action, after the limits.";
const YOU = { id: "hand", title: "you, with the arrow keys or a game pad", source: "by hand", formula: "" };
export const PRESENT = "log/law"; // the log's own controller, which the pick is compared with
const MAKER = "task/law"; // it may read what no sensor shows, so it has no costs to compare
const COLOURS = ["first", "second"];

export class Watch {
  #controllers = [];
  #paused = calm.matches;
  #chosen = [null, null];
  #falls = [0, 0];
  #failed = [false, false];

  constructor(place, studio) {
    this.studio = studio;
    this.stages = COLOURS.map((colour, i) =>
      new Stage({ label: `${["The", "The second"][i]} controller at work; click to push`, colour }));
    this.terms = COLOURS.map((colour) => new Terms(colour));
    this.selects = COLOURS.map((_, i) =>
      make("select", { onchange: () => this.#choose(i), id: `controller-${i}` }));
    this.steering = new Steering(studio);
    this.sensors = new Sensors(() => this.#wish());
    this.speeds = new Speeds(1, () => this.#wish());
    this.pauses = button("Pause", () => this.toggle(), { title: "Pause (Space)" });
    for (const stage of this.stages)
      stage.canvas.addEventListener("pointerdown", (event) => this.#hit(stage, event));
    const pickers = COLOURS.map((colour, i) => make("label", { class: `picker ${colour}` },
      make("span", {}, ["Controller", "Compare with"][i]), this.selects[i]));
    this.sides = COLOURS.map((_, i) => make("div", { class: "side" }, this.stages[i].element));
    this.signals = new Signals();
    this.pushes = [-1, 1].map((way) => button("", () => this.push(way * PUSH), { class: "push" }));
    this.doing = make("div", { class: "doings" }, ...this.terms.map((terms) => terms.element));
    this.empty = make("div", { class: "empty", hidden: true },
      make("p", {}, "There is no controller for this task yet."),
      button("Learn one", () => studio.go("learn"), { class: "main" }));
    this.comparison = make("p", { class: "comparison", role: "status" });
    this.full = make("div", {}, make("div", { class: "pickers" }, ...pickers), this.comparison,
      make("div", { class: "sides" }, ...this.sides),
      make("div", { class: "tools" },
        make("div", { class: "group" }, ...this.pushes),
        make("div", { class: "group" }, this.speeds.element, this.pauses,
          button("Restart", () => this.restart(), { title: "Restart (N)" }))),
      this.signals.element,
      make("h2", {}, "The action, term by term"), make("p", { class: "hint" }, THINKING), this.doing,
      make("h2", {}, "Disturbances"), this.sensors.element);
    this.plantless = plantless(studio);
    place.append(this.full, this.empty, this.plantless);
  }

  async enter({ a, b } = {}) {
    const { task } = this.studio;
    this.plantless.hidden = task.playable;
    this.#controllers = task.playable ? (await trying(api.controllers)(task.name)) ?? [] : [];
    if (this.studio.tab !== "watch" || this.studio.task !== task) return;
    const known = (id) => this.#find(id) !== undefined;
    this.empty.hidden = this.#controllers.length > 0 || !task.playable;
    this.full.hidden = !this.#controllers.length;
    if (!this.#controllers.length) return;
    const wanted = a ? [a, b] : this.#chosen;
    this.#chosen = wanted.map((id) => (known(id) ? id : null));
    const [pick = this.#controllers[0], present] =
      [(one) => one.pick, (one) => one.id === PRESENT].map((fits) => this.#controllers.find(fits));
    if (!this.#chosen[0] && present && pick !== present) this.#chosen[1] ??= present.id;
    this.#chosen[0] ??= pick.id;
    const options = this.#controllers.map(({ id, title, source }) =>
      ({ value: id, text: title, group: source }));
    choices(this.selects[0], [...options, { value: YOU.id, text: YOU.title, group: YOU.source }], this.#chosen[0]);
    choices(this.selects[1], [{ value: "", text: "nothing" }, ...options], this.#chosen[1] ?? "");
    this.#drive();
  }

  #find(id) {
    return [...this.#controllers, YOU].find((one) => one.id === id);
  }

  get #byHand() {
    return this.#chosen[0] === YOU.id;
  }

  leave() {
    this.steering.rest();
    this.studio.session.want({ pause: true });
  }

  forget() {
    this.#chosen = [null, null];
    if (!this.studio.task.playable) return;
    const { task } = this.studio, charted = task.drawing === "strip";
    this.sensors.show(task);
    this.signals.show(task);
    const [down, up] = charted ? [`${task.push} ▼`, `${task.push} ▲`] : ["◀", "▶"];
    this.pushes.forEach((one, i) => {
      put(one, `Push ${[down, up][i]}`);
      one.title = `Push ${charted ? task.push : "the plant"} to the ${i ? "right, upwards (→)" : "left, downwards (←)"}`;
    });
    this.#clear();
  }

  #clear() {
    for (const stage of this.stages) stage.show(this.studio.task);
  }

  hid() {
    this.#wish();
  }

  get speed() {
    return this.speeds.factor;
  }

  #choose(i) {
    this.#chosen[i] = this.selects[i].value || null;
    this.#drive();
  }

  #drive() {
    const [a, b] = this.#chosen;
    this.terms[1].element.hidden = !b;
    this.sides[1].hidden = !b || this.studio.task.drawing === "strip";
    this.#clear();
    this.#chosen.forEach((id, i) => this.terms[i].show(this.studio.task.name, this.#find(id)));
    this.studio.remember(b ? { a, b } : { a });
    this.#wish();
    this.restart();
    this.#compare();
  }

  // Says what both cost from the same starts; drives of a moment may deceive.
  async #compare() {
    const [a, b] = this.#chosen, { task } = this.studio;
    put(this.comparison, "");
    if (!b || [a, b].some((id) => id === YOU.id || id === MAKER)) return;
    const found = await api.comparison(task.name, a, b).catch(() => null); // it drives all the same
    if (found && this.studio.task === task && a === this.#chosen[0] && b === this.#chosen[1]) put(this.comparison, found.words);
  }

  #wish() {
    if (!this.studio.task.playable) return;
    const [first, second] = this.#chosen;
    this.studio.session.want({ first, second, speed: this.speed, sensors: this.sensors.sensors,
      setpoint: this.sensors.setpoint, pause: this.#paused || document.hidden });
    this.pauses.textContent = this.#paused ? "Go on" : "Pause";
  }

  toggle() {
    this.#paused = !this.#paused;
    this.#wish();
  }

  restart() {
    this.#falls = [0, 0];
    this.studio.session.say({ do: "restart", seed: null });
  }

  push(size) {
    this.studio.session.say({ do: "push", state: null, size });
    announce(`Pushed to the ${size < 0 ? "left" : "right"}`);
  }

  // A click pushes the pole away from the side of the click.
  #hit(stage, event) {
    if (stage.charted) return;
    const { from, to } = stage.body ?? {}, x = event.offsetX;
    const middle = from ? (from[0] + to[0]) / 2 : stage.canvas.clientWidth / 2;
    this.push(x < middle ? PUSH : -PUSH);
  }

  frame(frame) {
    this.sensors.update(frame.setpoint);
    this.signals.update(frame);
    frame.sides.forEach((side, i) => {
      this.stages[i].take(frame, side);
      this.terms[i].update(side, this.studio.task.actions);
      if (side.failed && !this.#failed[i]) this.#falls[i] += 1;
      this.#failed[i] = side.failed;
    });
  }

  draw(frame) {
    if (!this.studio.task.playable) return;
    if (this.#byHand) this.steering.steer();
    this.stages.forEach((stage, i) => {
      const side = frame?.sides[i], falls = this.#falls[i];
      stage.draw(side, frame?.setpoint);
      put(stage.note, falls ? `failed ${counted(falls, "time")}` : "");
      stage.say(side && over(side) ? reason(this.studio.task, side) : this.#paused ? "Paused" : "");
    });
  }

  keys = {
    ArrowLeft: ["push to the left", () => this.#byHand || this.push(-PUSH)],
    ArrowRight: ["push to the right", () => this.#byHand || this.push(PUSH)],
    n: ["restart", () => this.restart()],
    s: ["slow motion", () => this.speeds.next()],
    " ": ["pause, go on", () => this.toggle()],
  };
}
