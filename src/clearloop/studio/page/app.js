// The studio: one task, one live simulation, five tabs that share it.

import * as api from "./api.js";
import { choices, put } from "./dom.js";
import { Frames } from "./frames.js";
import { Hand } from "./hand.js";
import { Learn } from "./learn.js";
import { Log } from "./log.js";
import { know } from "./marks.js";
import { complain, trying } from "./notices.js";
import { Play } from "./play.js";
import { Runs } from "./runs.js";
import { Session } from "./session.js";
import { Shortcuts } from "./shortcuts.js";
import { Tabs } from "./tabs.js";
import { Watch } from "./watch.js";

const RETRY = 2000; // ms
const LATE = 0.5; // share of late steps above which the page says that the session is slow
const link = document.getElementById("link");
const tasks = document.getElementById("task");
const place = (name) => document.getElementById(name);

class Studio {
  hand = new Hand();
  frames = new Frames();
  session = new Session({
    frame: (frame) => this.#receive(frame), error: complain, status: (status, reason) => this.#linked(status, reason),
  });

  constructor(state) {
    this.state = state;
    know(state.methods.map(({ name }) => name));
    this.panels = {
      play: new Play(place("play"), this), log: new Log(place("log"), this), learn: new Learn(place("learn"), this),
      watch: new Watch(place("watch"), this), runs: new Runs(place("runs"), this),
    };
    this.tabs = new Tabs(this.panels);
    new Shortcuts(this.tabs);
    this.#list(state.default_task);
    tasks.addEventListener("change", () => this.choose(tasks.value) && this.tabs.start());
    document.addEventListener("visibilitychange", () => this.tabs.panel.hid?.());
    this.choose(tasks.value);
    this.tabs.start();
    requestAnimationFrame((now) => this.#draw(now));
  }

  #list(wanted) {
    choices(tasks, this.state.tasks.map(({ name }) => ({ value: name, text: name })), wanted);
  }

  // Asks for the tasks again, because one has come, or a run has learned models of one.
  async refresh() {
    const state = await trying(api.state)();
    if (!state) return;
    this.state = state;
    this.#list(this.task.name);
    const now = state.tasks.find((one) => one.name === this.task.name);
    if (JSON.stringify(now) !== JSON.stringify(this.task)) this.choose(this.task.name);
  }

  get tab() {
    return this.tabs.open;
  }

  go(tab, query) {
    this.tabs.go(tab, query);
  }

  remember(query) {
    this.tabs.remember(query);
  }

  // Changes the task; false if the studio does not know it.
  choose(name) {
    const task = this.state.tasks.find((one) => one.name === name);
    if (!task) complain(`The studio does not know the task ${name}. Start it with --task and the task's file.`);
    if (!task || task === this.task) return Boolean(task);
    this.task = task;
    tasks.value = name;
    this.frames.clear();
    if (task.playable) this.session.open(name);
    else this.#still();
    for (const panel of Object.values(this.panels)) panel.forget?.();
    return true;
  }

  // A task without a plant can be learned from a log, but not played.
  #still() {
    this.session.close();
    put(link, "no plant");
    delete link.dataset.status;
  }

  // `reason` is the server's, if it closed the connection itself.
  #linked(status, reason) {
    put(link, status === "open" ? "live" : reason ? "refused, trying again" : "connection lost, trying again");
    if (reason) complain(`The studio closed the connection: ${reason}.`);
    link.dataset.status = status;
    if (status === "open") this.tabs.panel.linked?.();
  }

  #receive(frame) {
    this.frames.push(frame);
    put(link, frame.late > LATE ? "live, slow" : "live");
    this.tabs.panel.frame?.(frame);
  }

  #draw(now) {
    requestAnimationFrame((next) => this.#draw(next));
    const { panel } = this.tabs;
    if (!panel.draw) return;
    const rate = panel.speed / this.task.pace;
    panel.draw(this.frames.at(now, rate));
  }
}

const patiently = async (work) => {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      complain(error.message);
      await new Promise((done) => setTimeout(done, RETRY));
    }
  }
};

new Studio(await patiently(api.state));
