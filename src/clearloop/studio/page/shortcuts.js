// The keyboard shortcuts of the studio and of the open tab, and the dialog that lists them.

import { button, make } from "./dom.js";

const NAMES = { " ": "Space", ArrowLeft: "←", ArrowRight: "→" };
const STEERING = "steer; also A and D, a drag on the picture, or the stick of a game pad";
const TYPING = "input:not([type=range]), select, textarea, dialog[open]";
const PRESSED = "button, a, summary, [role=button], input"; // these use Space themselves

export class Shortcuts {
  #dialog = document.getElementById("shortcuts");

  constructor(tabs) {
    this.tabs = tabs;
    addEventListener("keydown", (event) => this.#press(event));
    document.getElementById("help").addEventListener("click", () => this.show());
  }

  #press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    if (event.target.closest?.(TYPING)) return;
    const tab = this.tabs.names[Number(event.key) - 1];
    if (tab) {
      this.tabs.go(tab);
      document.getElementById(tab).focus({ preventScroll: true });
    } else if (event.key === "?") this.show();
    else {
      const [, does] = this.tabs.panel?.keys?.[event.key] ?? [];
      if (!does || (event.key === " " && event.target.closest?.(PRESSED))) return;
      if (event.key.startsWith("Arrow") && event.target.matches?.("input")) return;
      event.preventDefault();
      does();
    }
  }

  show() {
    const row = (key, text) => make("tr", {},
      make("th", { scope: "row" }, make("kbd", {}, NAMES[key] ?? key.toUpperCase())), make("td", {}, text));
    const part = (name, rows) =>
      [make("tr", {}, make("th", { scope: "colgroup", colspan: 2, class: "part" }, name)), ...rows];
    const own = (name) => Object.entries(this.tabs.panels[name].keys).map(([key, [text]]) => row(key, text));
    this.#dialog.replaceChildren(make("h2", { id: "shortcuts-title" }, "Keyboard shortcuts"),
      make("table", {}, make("tbody", {}, row("1 – 5", "Play, Log, Learn, Watch, Runs"), row("?", "this list"),
        ...part("Play", [row("← →", STEERING), ...own("play")]),
        ...part("Watch", own("watch")))),
      button("Close", () => this.#dialog.close(), { class: "main" }));
    this.#dialog.showModal();
  }
}
