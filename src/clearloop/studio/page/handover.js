// What a run hands over: a controller as source code in any language, or a pack for a second person.

import * as api from "./api.js";
import { button, choices, make, put } from "./dom.js";
import { announce, trying } from "./notices.js";

const PACK = "A pack has the code in every language, test vectors, a sheet to sign, and a check that needs nothing but Python.";

export class Handover {
  #run = null;
  #task = null;

  constructor(studio) {
    this.controller = make("select");
    this.target = make("select");
    choices(this.target, studio.state.targets.map(({ name, title }) => ({ value: name, text: title })), "st");
    this.said = make("p", { class: "hint", role: "status" }, PACK);
    this.buttons = [button("Download the code", () => this.#take((id) => api.exported(this.#task, id, this.target.value))),
      button("Download the pack", () => this.#take((id) => api.packed(this.#task, id)))];
    this.element = make("div", { class: "handover" }, make("div", { class: "form" },
      make("label", {}, make("span", {}, "Controller"), this.controller),
      make("label", {}, make("span", {}, "Language"), this.target), ...this.buttons), this.said);
  }

  show(run, task, front) {
    this.#run = run;
    this.#task = task;
    const pick = front.find((entry) => entry.pick) ?? front[0];
    const options = front.map((entry) => ({ value: entry.controller,
      text: `${entry.controller}${entry.pick ? ", the pick" : ""}: ${entry.formula}`.slice(0, 90) }));
    choices(this.controller, options, pick?.controller);
    return this;
  }

  async #take(save) {
    for (const one of this.buttons) one.disabled = true;
    put(this.said, "One moment: the controller is being written.");
    const saved = await trying(save)(`runs/${this.#run}/${this.controller.value}`);
    put(this.said, saved ? `${saved.name} was saved. SHA-256: ${saved.digest}` : PACK);
    if (saved) announce(`${saved.name} was saved`);
    for (const one of this.buttons) one.disabled = false;
  }
}
