// The tab Log: a log of one's own, from its columns to a task that can be learned.

import * as api from "./api.js";
import { Columns } from "./columns.js";
import { button, choices, counted, make, put } from "./dom.js";
import { announce, complain, trying } from "./notices.js";

const WAIT = 300; // ms without a change, after which the task is drafted anew
const LARGEST = 64 * 1024 ** 2; // bytes; the server would cut the connection
const FORMATS = ".csv,.tsv,.txt,.parquet,.xlsx,.npz";
const EDITED = "You have edited this file. What you change in the table above writes it anew.";
const DRAFTED = "This is what `clearloop init` writes. Read it: a log does not say what you want. You can edit it here.";
const MARKS = { ok: "✓", note: "•", warning: "!", problem: "✗" };

const safe = (file) => file.replace(/[^A-Za-z0-9._-]+/g, "-").slice(-80).replace(/^[^A-Za-z0-9]+/, "");

export class Log {
  #log = null;
  #timer = null;
  #turn = 0; // counts requests, so that only the answer to the latest is shown
  #edited = false;

  constructor(place, studio) {
    this.studio = studio;
    this.file = make("input", { type: "file", accept: FORMATS, class: "unseen", "aria-label": "A log",
      onchange: () => this.#bring(this.file.files[0]) });
    this.known = make("select", { "aria-label": "A log that was opened before", onchange: () => this.#again() });
    this.columns = new Columns(() => this.#later());
    this.title = make("h3", { tabindex: -1 });
    this.name = make("input", { type: "text", id: "task-name", maxlength: 80, spellcheck: "false", oninput: () => this.#later() });
    this.dt = make("input", { type: "number", id: "task-dt", min: 0, step: "any", oninput: () => this.#later() });
    this.missing = make("p", { class: "missing", role: "status" });
    this.about = make("p", { class: "hint" });
    this.text = make("textarea", { id: "task-file", rows: 18, spellcheck: "false", wrap: "off", "aria-label": "The task file",
      oninput: () => this.#edit() });
    this.note = make("p", { class: "hint" });
    this.checks = button("Check the log", () => this.#check(), { class: "main" });
    this.verdict = make("p", { class: "verdict", tabindex: -1 });
    this.findings = make("ul", { class: "findings" });
    this.report = make("div", { class: "report", hidden: true }, this.verdict,
      make("details", {}, make("summary", {}, "All findings"), this.findings));
    this.keeps = button("Keep the task, and learn from it", () => this.#keep(), { class: "main", hidden: true });
    this.drafted = make("div", {}, make("h3", {}, "The task"), this.about, this.text, this.note,
      make("div", { class: "group" }, this.checks, this.keeps), this.report);
    this.opened = make("div", { class: "opened", hidden: true }, this.title,
      make("p", { class: "hint" }, "Say what each column is. What is chosen here is a guess, from names, units and courses."),
      make("div", { class: "wide" }, this.columns.element),
      make("div", { class: "form" }, make("label", {}, make("span", {}, "Name of the task"), this.name),
        make("label", {}, make("span", {}, "Seconds from step to step"), this.dt)),
      this.missing, this.drafted);
    this.before = make("label", { class: "before", hidden: true }, "or one from before ", this.known);
    place.append(make("h2", {}, "A log of your own"),
      make("p", { class: "hint" }, "From the log of any plant to controllers for it. A row for each observation, in time order; "
        + "CSV, Parquet, Excel or NumPy, up to 64 MB. The file stays on this machine."),
      make("div", { class: "group" }, make("label", { class: "button main" }, "Open a log", this.file), this.before),
      this.opened);
    place.addEventListener("dragover", (event) => event.preventDefault());
    place.addEventListener("drop", (event) => {
      event.preventDefault();
      this.#bring(event.dataTransfer.files[0]);
    });
  }

  async enter() {
    const logs = (await trying(api.logs)()) ?? [];
    this.before.hidden = !logs.length;
    choices(this.known, [{ value: "", text: "choose" }, ...logs.map(({ name }) => ({ value: name, text: name }))], this.#log?.name ?? "");
  }

  async #bring(file) {
    if (!file) return;
    this.file.value = "";
    if (file.size > LARGEST) {
      complain(`${file.name} is larger than 64 MB: split it, or work with clearloop init in a shell.`);
      return;
    }
    announce(`Reading ${file.name}`);
    const log = await trying(() => api.uploadLog(safe(file.name), file))();
    if (log) this.#show(log);
  }

  async #again() {
    const log = this.known.value && (await trying(api.openLog)(this.known.value));
    if (log) this.#show(log);
  }

  #show(log) {
    this.#log = log;
    put(this.title, `${log.name}: ${counted(log.rows, "row")}, ${counted(log.columns.length, "column")}`);
    this.name.value = log.task;
    this.dt.value = "";
    this.columns.show(log);
    this.opened.hidden = false;
    this.enter();
    this.#draft();
    this.title.focus();
  }

  #later() {
    clearTimeout(this.#timer);
    this.#turn += 1; // an answer that is on its way is out of date
    this.#timer = setTimeout(() => this.#draft(), WAIT);
  }

  #wish() {
    const dt = this.dt.valueAsNumber;
    return { log: this.#log.name, name: this.name.value.trim(), dt: Number.isFinite(dt) ? dt : null, ...this.columns.wish() };
  }

  // Asks for work; its answer is undefined if it failed, or if something has changed meanwhile.
  async #ask(work) {
    this.#turn += 1;
    const turn = this.#turn;
    this.opened.setAttribute("aria-busy", "true");
    const found = await trying(work)();
    if (turn !== this.#turn) return undefined;
    this.opened.removeAttribute("aria-busy");
    return found;
  }

  async #draft(more = {}) {
    clearTimeout(this.#timer);
    const found = await this.#ask(() => api.draft({ ...this.#wish(), ...more }));
    if (!found) return;
    put(this.missing, found.missing ?? "");
    this.missing.hidden = !found.missing;
    this.drafted.hidden = Boolean(found.missing);
    if (found.missing) return;
    this.columns.take(found);
    this.dt.placeholder = String(found.dt);
    put(this.about, `A controller acts every ${found.dt} s and sees ${counted(found.history, "row")}. Searches look `
      + `${found.horizon} steps ahead: ${found.pace}.`);
    this.text.value = found.text;
    this.#edited = false;
    put(this.note, DRAFTED);
    this.#judge(found.report);
  }

  #edit() {
    this.#turn += 1;
    clearTimeout(this.#timer);
    this.opened.removeAttribute("aria-busy"); // nobody waits for the answer that is on its way
    this.#edited = true;
    put(this.note, EDITED);
    this.#judge(null);
  }

  async #check() {
    this.checks.disabled = true;
    announce("Checking the log");
    if (this.#edited) {
      const report = await this.#ask(() => api.check(this.#log.name, this.text.value));
      if (report) this.#judge(report);
    } else await this.#draft({ check: true });
    this.checks.disabled = false;
    if (!this.report.hidden) this.verdict.focus();
  }

  #judge(report) {
    this.report.hidden = this.keeps.hidden = !report;
    this.checks.classList.toggle("main", !report);
    if (!report) return;
    put(this.verdict, report.verdict);
    this.verdict.dataset.severity = report.severity;
    this.findings.replaceChildren(...report.findings.map(({ severity, message }) =>
      make("li", { "data-severity": severity }, make("span", { class: "mark", "aria-hidden": "true" }, MARKS[severity]),
        make("span", {}, make("span", { class: "unseen" }, `${severity}: `), message))));
  }

  async #keep() {
    this.keeps.disabled = true;
    const kept = await trying(api.keepTask)(this.#log.name, this.text.value);
    this.keeps.disabled = false;
    if (!kept) return;
    await this.studio.refresh();
    if (this.studio.choose(kept.task)) this.studio.go("learn", { batch: kept.batch });
  }
}
