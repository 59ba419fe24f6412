// The tab Learn: the choice of batch, method and budget, and the progress of the run.

import * as api from "./api.js";
import { button, choices, counted, make } from "./dom.js";
import { Progress } from "./progress.js";
import { announce, trying } from "./notices.js";

const BUDGETS = ["quick", "standard"];
const OWN = ""; // the value for a batch that the task makes

const NONE = "There is no recording for this task yet. Drive for some minutes and record it, upload a log (CSV), "
  + "or let the task make a batch of its own. For a plant of your own, open its log in the tab Log.";
const PLANTLESS = "There is no log for this task yet, and no plant to record one from. Upload a log (CSV).";

const safe = (file) =>
  file.replace(/\.csv$/i, "").replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[^A-Za-z0-9]+/, "").slice(0, 80);

export class Learn {
  constructor(place, studio) {
    this.studio = studio;
    this.batch = make("select", { id: "batch", name: "batch" });
    this.method = make("select", { id: "method", name: "method" });
    this.budget = make("select", { id: "budget", name: "budget" });
    this.seed = make("input", { id: "seed", type: "number", min: 0, step: 1, value: 0 });
    this.file = make("input", { type: "file", accept: ".csv,text/csv", class: "unseen",
      "aria-label": "A log as CSV", onchange: () => this.#upload(this.file.files[0]) });
    this.start = make("button", { type: "submit", class: "main" }, "Learn");
    this.why = make("p");
    this.play = button("Play and record", () => studio.go("play"), { class: "main" });
    this.none = make("div", { class: "empty", hidden: true }, this.why, this.play);
    this.form = make("form", { class: "form", onsubmit: (event) => this.#submit(event) },
      make("label", {}, make("span", {}, "Batch"), this.batch),
      make("label", {}, make("span", {}, "Method"), this.method),
      make("label", {}, make("span", {}, "Budget"), this.budget),
      make("label", {}, make("span", {}, "Seed"), this.seed),
      this.start);
    this.progress = new Progress(studio);
    place.append(make("h2", {}, "Learn from a batch"), this.none, this.form,
      make("p", { class: "hint" }, make("label", { class: "button" }, "Upload a log (CSV)", this.file),
        " It has a row for each observation: states, actions, and an episode column if there is more than one."),
      this.progress.element);
  }

  forget() {
    choices(this.method, this.studio.state.methods.map(({ name, title }) => ({ value: name, text: title })));
    choices(this.budget, BUDGETS.map((name) => ({ value: name, text: name })));
  }

  async enter({ batch, run } = {}) {
    await this.#list(batch);
    const going = run ?? (this.progress.idle ? await this.#going() : null);
    if (going) this.progress.follow(going);
  }

  // A run that was begun before this page was opened.
  async #going() {
    const runs = (await trying(api.runs)()) ?? [];
    return runs.find((one) => one.status === "running")?.name ?? null;
  }

  async #list(wanted) {
    const all = (await trying(api.batches)()) ?? [];
    const { name: task, playable } = this.studio.task;
    const own = all.filter((one) => one.task === task);
    this.none.hidden = own.length > 0;
    this.why.textContent = playable ? NONE : PLANTLESS;
    this.play.hidden = !playable;
    const recorded = own.map(({ name, rows, episodes }) =>
      ({ value: name, text: `${name} (${counted(rows, "transition")}, ${counted(episodes, "episode")})` }));
    const made = playable ? [{ value: OWN, text: "a batch that the task makes" }] : [];
    choices(this.batch, [...recorded, ...made], wanted ?? (this.batch.value || recorded[0]?.value));
    this.start.disabled = !this.batch.options.length;
  }

  async #upload(file) {
    if (!file) return;
    const name = safe(file.name);
    this.file.value = "";
    const done = await trying(async () => {
      if (!name) throw new Error(`${file.name}: the name of a batch consists of letters, digits, dots and dashes`);
      return (await api.upload(this.studio.task.name, name, file)) ?? { name };
    })();
    if (!done) return;
    await this.#list(done.name ?? name);
    announce(`Uploaded ${name}`);
  }

  #submit(event) {
    event.preventDefault();
    const budget = this.budget.value;
    this.#begin({ task: this.studio.task.name, batch: this.batch.value || null, method: this.method.value,
      budget: Number(budget) || budget, seed: Number(this.seed.value) });
  }

  async #begin(wish) {
    this.start.disabled = true;
    const begun = await trying(api.learn)(wish);
    this.start.disabled = !this.batch.options.length;
    if (begun) this.progress.follow(begun.run, () => this.#begin({ ...wish, force: true }));
  }
}
