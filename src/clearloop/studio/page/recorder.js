// The button Record and its count of transitions; a saved batch can be downloaded, or learned from.

import { button, counted, make } from "./dom.js";
import { announce } from "./notices.js";

export class Recorder {
  #on = false;
  #shown = null;
  #name = null; // the name of the latest recording
  #rows = 0;

  constructor(studio) {
    this.studio = studio;
    this.switch = button("Record", () => this.toggle(), { class: "record", title: "Record (R)" });
    this.count = make("span", { class: "count" });
    this.element = make("div", { class: "recorder" }, this.switch, this.count);
  }

  get on() {
    return this.#on;
  }

  toggle() {
    this.studio.session.say({ do: "record", on: !this.#on });
  }

  stop() {
    if (this.#on) this.toggle();
  }

  forget() {
    this.#on = false;
    this.#shown = this.#name = null;
    this.#show({ on: false, rows: 0, episodes: 0, name: null, saved: "" });
  }

  // Takes the part of a frame about the recording.
  update(recording) {
    const key = JSON.stringify(recording);
    if (key === this.#shown) return;
    this.#shown = key;
    if (recording.on !== this.#on) {
      this.#on = recording.on;
      if (this.#on) announce("Recording");
      else announce("Recording stopped");
    }
    this.#show(recording);
  }

  #show({ on, rows, episodes, name, saved }) {
    if (on) [this.#name, this.#rows] = [name, rows];
    this.switch.setAttribute("aria-pressed", String(on));
    this.switch.textContent = on ? "Stop recording" : "Record";
    if (on) this.count.replaceChildren(make("b", {}, rows.toLocaleString("en")),
      ` transition${rows === 1 ? "" : "s"} in ${counted(episodes, "episode")}`);
    else if (this.#name && saved !== this.#name) this.count.replaceChildren("Saving …");
    else if (saved)
      this.count.replaceChildren(
        make("span", {}, "Saved ", make("b", {}, saved), `, ${counted(this.#rows, "transition")}`),
        make("a", { class: "button", href: `/batches/${encodeURIComponent(saved)}`, download: `${saved}.csv` },
          "Download"),
        button("Learn from this", () => this.studio.go("learn", { batch: saved }), { class: "main" }));
    else this.count.replaceChildren("Record your driving to learn a controller from it.");
  }
}
