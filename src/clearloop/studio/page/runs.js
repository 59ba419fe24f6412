// The tab Runs: every run of the folder with its result, its report and its controllers.

import * as api from "./api.js";
import { button, counted, make } from "./dom.js";
import { frontTable } from "./front_table.js";
import { Handover } from "./handover.js";
import { trying } from "./notices.js";
import { PRESENT } from "./watch.js";

const ELSEWHERE = { target: "_blank", rel: "noopener" };

const when = (text) => {
  const date = new Date(text);
  return Number.isNaN(date.getTime()) ? "" : date.toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
};

export class Runs {
  #shown = "";

  constructor(place, studio) {
    this.studio = studio;
    this.list = make("div", { class: "runs" });
    place.append(make("h2", {}, "Runs"), this.list);
  }

  async enter() {
    const runs = await trying(api.runs)();
    if (!runs || JSON.stringify(runs) === this.#shown) return; // what somebody has opened in the list stays open
    this.#shown = JSON.stringify(runs);
    this.studio.refresh(); // runs of the shell may have learned models
    if (!runs.length)
      this.list.replaceChildren(make("div", { class: "empty" },
        make("p", {}, "There is no run yet. Record a batch in Play, then learn from it. "
          + "Runs of `clearloop learn` in this folder are shown, too."),
        button("Play and record", () => this.studio.go("play"), { class: "main" })));
    else this.list.replaceChildren(...runs.map((run) => this.#card(run)));
  }

  #card(run) {
    const { name, status, task, headline, report, front } = run;
    const pick = front.find((entry) => entry.pick) ?? front[0];
    const watch = (entry) => {
      if (!this.studio.choose(task)) return;
      this.studio.go("watch", { a: `runs/${name}/${entry.controller}`, ...(this.studio.task.models ? { b: PRESENT } : {}) });
    };
    return make("article", { class: "run", "data-status": status },
      make("div", { class: "heading" }, make("h3", {}, name),
        make("span", { class: `status ${status}` }, status),
        make("span", { class: "soft" }, [task, when(run.when)].filter(Boolean).join(" · "))),
      make("p", {}, headline ?? ""),
      make("div", { class: "group" },
        report ? make("a", { class: "button main", href: report, ...ELSEWHERE }, "Open the report") : null,
        pick ? button("Watch the pick", () => watch(pick)) : null,
        status === "running" ? button("Show its progress", () => this.studio.go("learn", { run: name })) : null),
      front.length ? make("details", {},
        make("summary", {}, counted(front.length, "controller")),
        frontTable(front, watch)) : null,
      status === "finished" && front.length ? make("details", {}, make("summary", {}, "Export and pack"),
        new Handover(this.studio).show(name, task, front).element) : null);
  }
}
