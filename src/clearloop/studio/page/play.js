// The tab Play: the player drives. Nothing moves before the player's first input.

import { button, make, put } from "./dom.js";
import { announce } from "./notices.js";
import { plantless } from "./plantless.js";
import { Recorder } from "./recorder.js";
import { Speeds } from "./speeds.js";
import { Stage, over, reason } from "./stage.js";
import { Steering } from "./steering.js";

const touched = matchMedia("(pointer: coarse)");
const START_SPEED = 0.5; // most people need some practice before real time

const ABOUT = {
  cartpole: "Keep the pole up and the cart on its track. The green strip is where the cart should be.",
  pendulum: "Swing the pendulum up and hold it there.",
  strip: "Keep each line at its green setpoint.",
};

export class Play {
  #waiting = true; // for the player's first move
  #paused = false;
  #moved = false; // since this attempt began
  #failed = false;
  #best = 0;

  constructor(place, studio) {
    this.studio = studio;
    this.stage = new Stage({ label: "The plant that you drive: left and right arrow keys push it" });
    this.steering = new Steering(studio);
    this.recorder = new Recorder(studio);
    this.speeds = new Speeds(START_SPEED, () => this.#wish());
    this.pauses = button("Pause", () => this.toggle(), { title: "Pause (Space)" });
    const left = button("◀", null, { class: "thumb", "aria-label": "Push left" });
    const right = button("▶", null, { class: "thumb", "aria-label": "Push right" });
    studio.hand.takes(this.stage.canvas);
    studio.hand.presses(left, -1);
    studio.hand.presses(right, 1);
    this.about = make("p", { class: "about" });
    const anew = button("New start", () => this.restart(), { title: "New start (N)" });
    this.empty = plantless(studio);
    this.full = make("div", {}, this.stage.element, make("div", { class: "thumbs" }, left, right),
      make("div", { class: "tools" }, this.recorder.element,
        make("div", { class: "group" }, this.speeds.element, this.pauses, anew)),
      this.about);
    place.append(this.full, this.empty);
  }

  enter() {
    this.#waiting = true;
    this.#paused = false;
    const { session, task } = this.studio;
    this.empty.hidden = task.playable;
    this.full.hidden = !task.playable;
    if (!task.playable) return;
    const own = task.states.filter((one) => Number.isFinite(one.setpoint));
    const setpoint = Object.fromEntries(own.map((one) => [one.name, one.setpoint]));
    session.want({ second: null, first: "hand", sensors: { noise: 0, delay: 0, gain: 1, load: 0 }, setpoint });
    this.restart();
  }

  leave() {
    this.recorder.stop();
    this.steering.rest();
    this.studio.session.want({ pause: true });
  }

  forget() {
    this.#best = 0;
    if (!this.studio.task.playable) return;
    this.about.textContent = ABOUT[this.studio.task.drawing];
    this.stage.show(this.studio.task);
    this.recorder.forget();
  }

  get #losable() {
    return this.studio.task.states.some((state) => state.limits);
  }

  get speed() {
    return this.speeds.factor;
  }

  #wish() {
    this.studio.session.want({ speed: this.speed, pause: this.#waiting || this.#paused || document.hidden });
    this.pauses.textContent = this.#paused ? "Go on" : "Pause";
  }

  // The session began before the page could pause it, so it begins again.
  linked() {
    this.restart();
  }

  hid() {
    this.#wish();
  }

  toggle() {
    this.#paused = !this.#paused;
    this.#wish();
  }

  restart() {
    this.studio.session.say({ do: "restart", seed: null });
    this.#moved = false;
    this.#wish();
  }

  frame(frame) {
    const [side] = frame.sides;
    this.stage.take(frame, side);
    this.recorder.update(frame.recording);
    if (this.#moved) this.#best = Math.max(this.#best, side.up);
    if (over(side) && !this.#failed) {
      announce(`${reason(this.studio.task, side)} after ${side.up.toFixed(1)} seconds`);
      if (!this.#moved) this.#wait();
    }
    if (!over(side) && this.#failed) this.#moved = false;
    this.#failed = over(side);
  }

  #wait() {
    this.#waiting = true;
    this.#wish();
  }

  draw(frame) {
    if (!this.studio.task.playable) return;
    if (this.steering.steer()) {
      this.#moved = true;
      if (this.#waiting) {
        this.#waiting = false;
        this.#wish();
      }
    }
    const side = frame?.sides[0];
    this.stage.draw(side, frame?.setpoint);
    put(this.stage.note, this.#best && this.#losable ? `best ${this.#best.toFixed(1)} s` : "");
    this.stage.say(this.#word(side));
  }

  #word(side) {
    if (this.#paused) return "Paused";
    if (this.#waiting) return touched.matches ? "Touch and drag to begin" : "Press ← or → to begin, or drag";
    return side && over(side) ? `${reason(this.studio.task, side)} after ${side.up.toFixed(1)} s` : "";
  }

  keys = {
    r: ["record, or stop recording", () => this.recorder.toggle()],
    n: ["a new start", () => this.restart()],
    s: ["slow motion", () => this.speeds.next()],
    " ": ["pause, go on", () => this.toggle()],
  };
}
