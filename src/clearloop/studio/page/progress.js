// The progress of a run: the share that is done, its latest line, and its front so far.

import * as api from "./api.js";
import { button, make, put } from "./dom.js";
import { FrontChart } from "./front.js";
import { frontTable } from "./front_table.js";
import { Handover } from "./handover.js";
import { announce, complain, trying } from "./notices.js";
import { PRESENT } from "./watch.js";

const EVERY = 1000; // ms
const ADVICE = "More data helps: play for some minutes, and push now and then when the plant does not need it.";
const WORDS = { running: "learning", finished: "finished", failed: "not learned", stopped: "stopped" };

export class Progress {
  #run = null;
  #timer = null;
  #insist = null;

  constructor(studio) {
    this.studio = studio;
    this.title = make("h3", { "aria-live": "polite" });
    this.bar = make("progress", { max: 1, "aria-label": "Progress" });
    this.line = make("p", { class: "line" });
    this.stop = button("Stop", () => this.#end());
    this.chart = new FrontChart((entry) => this.#watch(entry));
    this.table = make("div");
    this.next = make("div", { class: "group" });
    this.handover = new Handover(studio);
    this.handover.element.hidden = true;
    this.element = make("div", { class: "progress", hidden: true },
      make("div", { class: "heading" }, this.title, this.stop),
      this.bar, this.line, this.next, this.chart.element, this.table, this.handover.element);
  }

  get idle() {
    return this.#run === null;
  }

  #watch(entry) {
    if (entry.controller === null) announce("This controller can be watched when the run has finished");
    else this.studio.go("watch", { a: `runs/${this.#run}/${entry.controller}`, ...(this.studio.task.models ? { b: PRESENT } : {}) });
  }

  // `insist` starts the run again with --force.
  follow(run, insist = null) {
    if (run === this.#run && this.element.dataset.status === "running") return;
    clearTimeout(this.#timer);
    this.#run = run;
    this.#insist = insist;
    this.element.hidden = false;
    this.chart.show([]);
    this.handover.element.hidden = true;
    this.table.replaceChildren();
    this.#show({ status: "running", share: null, line: "Starting", front: [] });
    this.#look(run);
  }

  // Stops the run as Ctrl-C would, which takes some seconds.
  async #end() {
    this.stop.disabled = true;
    await trying(api.stop)(this.#run);
    this.stop.disabled = false;
  }

  async #look(run) {
    let now;
    try {
      now = await api.progress(run);
    } catch (error) {
      complain(error.message);
    }
    if (run !== this.#run) return;
    if (now) this.#show(now);
    if (!now || now.status === "running") this.#timer = setTimeout(() => this.#look(run), EVERY);
    else {
      announce(`Run ${run} ${WORDS[now.status] ?? now.status}`);
      if (now.status === "finished") await this.#offer(run, now);
    }
  }

  // A task without a plant has models from now on.
  async #offer(run, { task, front }) {
    await this.studio.refresh();
    if (run !== this.#run || !task || !front.length) return;
    this.handover.show(run, task, front);
    this.handover.element.hidden = false;
  }

  // The buttons for what one can do next.
  #steps(status, front) {
    const pick = front.find((entry) => entry.pick) ?? front[0];
    if (status === "failed")
      return [make("p", { class: "advice" }, ADVICE),
        button("Play more", () => this.studio.go("play"), { class: "main" }),
        ...(this.#insist ? [button("Learn anyway", this.#insist)] : [])];
    if (status !== "finished") return [];
    const report = `/runs/${encodeURIComponent(this.#run)}/report.html`;
    return [...(pick ? [button("Watch the pick", () => this.#watch(pick), { class: "main" })] : []),
      make("a", { class: "button", href: report, target: "_blank", rel: "noopener" }, "Open the report")];
  }

  #show({ status, share, line, front }) {
    const refused = status === "failed";
    put(this.title, `${this.#run}: ${WORDS[status] ?? status}`);
    this.element.dataset.status = status;
    this.stop.hidden = status !== "running";
    this.bar.hidden = status !== "running";
    if (share === null || share === undefined) this.bar.removeAttribute("value");
    else this.bar.value = share;
    put(this.line, line ?? "");
    this.line.className = refused ? "refusal" : status === "running" ? "line" : "";
    this.chart.show(front);
    this.next.replaceChildren(...this.#steps(status, front));
    const settled = front.length > 0 && status !== "running";
    this.table.replaceChildren(...(settled ? [frontTable(front, (entry) => this.#watch(entry))] : []));
  }
}
