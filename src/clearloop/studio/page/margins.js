// The margins of a controller in one line: how far its loop is from instability.

import * as api from "./api.js";
import { make, put } from "./dom.js";
import { figure } from "./strokes.js";

const parts = ({ phase, gain, delay, ms }) => [
  phase === null ? "any phase" : `phase ${Math.round(phase)}°`,
  gain === null ? "any gain" : `gain × ${figure(gain)}`,
  delay === null ? "any delay" : `delay ${delay.toFixed(1)} steps`,
  ms === null ? null : `Ms ${figure(ms)}`,
].filter(Boolean).join(", ");

export class Margins {
  #asked = null;

  constructor() {
    this.element = make("p", { class: "margins" });
  }

  // Asks the server, which linearises the loop; a later question makes an earlier one void.
  async show(task, controller) {
    const asked = (this.#asked = {});
    this.element.className = "margins";
    put(this.element, controller ? "Margins: …" : "");
    if (!controller) return;
    let found;
    try {
      found = await api.margins(task, controller);
    } catch (error) {
      found = { known: false, why: error.message };
    }
    if (this.#asked !== asked) return;
    put(this.element, found.known ? `Margins: ${parts(found)}${found.robust === false ? `. Not robust: ${found.why}` : ""}`
      : `Margins: ${found.robust === false ? "none" : "unknown"}, ${found.why}`);
    this.element.classList.toggle("poor", found.robust === false);
  }
}
