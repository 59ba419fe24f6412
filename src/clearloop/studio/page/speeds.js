// The choice of speed, as a group of buttons, so that arrow keys stay free for the player.

import { button, make } from "./dom.js";

const SPEEDS = [[1, "1×"], [0.5, "½×"], [0.25, "¼×"], [0.1, "⅒×"]];

export class Speeds {
  constructor(first, changed) {
    this.changed = changed;
    this.buttons = SPEEDS.map(([factor, text]) => button(text, () => this.set(factor),
      { "aria-label": factor === 1 ? `${text}, real time` : `Slow motion ${text}` }));
    this.element = make("div", { class: "segments", role: "group", "aria-label": "Speed" }, ...this.buttons);
    this.#mark(first);
  }

  #mark(factor) {
    this.factor = factor;
    SPEEDS.forEach(([one], i) => this.buttons[i].setAttribute("aria-pressed", String(one === factor)));
  }

  set(factor) {
    this.#mark(factor);
    this.changed();
  }

  next() {
    const at = SPEEDS.findIndex(([factor]) => factor === this.factor);
    this.set(SPEEDS[(at + 1) % SPEEDS.length][0]);
  }
}
