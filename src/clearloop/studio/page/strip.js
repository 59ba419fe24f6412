// The strip chart of any task: a lane for each state and action, with both sides, setpoints and what other models do.

import { linear } from "./axis.js";
import { aimOf, goalOf } from "./goals.js";
import { figure, label, line, withUnit } from "./strokes.js";

const STEPS = 300; // that are shown
const MOST_LANES = 12; // more cannot be read
const TALL = 420, LANE = { least: 62, most: 180 }, SHARE = { state: 1.5, action: 1 }; // px; shares of the height
const AXIS = 26, LEFT = 46, RIGHT = 10, HEAD = 20, FOOT = 6; // px
const BEYOND = 1; // lengths of a state's range that its lane may grow by, to each side
const COLOURS = ["first", "second"];

const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"], [0.001, "ms"]]; // seconds

export class Strip {
  #points = []; // {t, episode, sides, setpoint}
  #drawn = "";
  lanes = [];

  show(task) {
    this.task = task;
    const lane = (kind) => (one) => ({ ...one, kind, span: one.limits ?? one.range });
    const states = task.states.map(lane("state")), actions = task.actions.map(lane("action"));
    this.lanes = [...states.slice(0, Math.max(1, MOST_LANES - actions.length)), ...actions];
    this.height = AXIS + this.lanes.reduce((sum, { kind }) => sum + this.#room(kind), 0);
    this.#points = [];
    this.#drawn = "";
  }

  #room(kind) {
    const all = this.lanes.reduce((sum, lane) => sum + SHARE[lane.kind], 0);
    return Math.round(Math.max(LANE.least, Math.min(LANE.most, (TALL * SHARE[kind]) / all)));
  }

  push({ t, episode, sides, setpoint }) {
    if (this.#points.at(-1)?.t === t) this.#points.pop();
    this.#points.push({ t, episode, sides, setpoint });
    while (this.#points[0].t < t - STEPS || this.#points[0].t > t) this.#points.shift();
  }

  // Draws again only if something has changed.
  draw(context, { width, height, colours }) {
    const latest = this.#points.at(-1), key = `${width} ${height} ${latest?.t} ${latest?.episode} ${latest?.sides.length} ${colours.paper}`;
    if (key === this.#drawn) return;
    this.#drawn = key;
    context.clearRect(0, 0, width, height);
    const now = latest?.t ?? 0;
    const x = (t) => width - RIGHT - ((now - t) / STEPS) * (width - LEFT - RIGHT);
    let top = 0;
    for (const lane of this.lanes) {
      const tall = this.#room(lane.kind);
      this.#lane(context, lane, { top, tall, width, x, colours });
      top += tall;
    }
    this.#time(context, { top, width, x, now, colours });
  }

  #time(context, { top, width, x, now, colours }) {
    const seconds = STEPS * this.task.dt, [size, unit] = UNITS.find(([one]) => seconds >= 8 * one) ?? UNITS.at(-1);
    const all = seconds / size;
    for (const ago of linear([0, all], width < 500 ? 3 : 6).ticks.filter((one) => one >= 0 && one < all)) {
      const at = x(now - (ago * size) / this.task.dt);
      line(context, at, 0, at, top, colours.line, 0.5);
      const text = ago ? `−${ago} ${unit}` : "now";
      label(context, text, at, top + AXIS / 2, colours.soft, { align: ago ? "center" : "right" });
    }
  }

  #span(lane) {
    const [low, high] = lane.span;
    if (lane.kind === "action") return [low, high];
    const far = BEYOND * (high - low);
    let [least, most] = [low, high];
    for (const { sides, setpoint } of this.#points)
      for (const value of [...sides.map((side) => side.state[lane.name]), aimOf(lane, setpoint) ?? low])
        [least, most] = [Math.min(least, value), Math.max(most, value)];
    return [Math.max(least, low - far), Math.min(most, high + far)];
  }

  #lane(context, lane, { top, tall, width, x, colours }) {
    const { name, unit, kind } = lane, axis = linear(this.#span(lane), tall > 110 ? 4 : 2);
    const foot = top + tall - FOOT;
    const y = (value) => foot - Math.max(-0.05, Math.min(1.05, axis.share(value))) * (tall - HEAD - FOOT);
    const of = (side) => (kind === "action" ? side.action : side.state)[name];
    context.save();
    for (const tick of axis.ticks.filter((value) => axis.share(value) >= 0 && axis.share(value) <= 1)) {
      line(context, LEFT, y(tick), width - RIGHT, y(tick), colours.line, 1);
      label(context, `${tick}`.replace("-", "−"), LEFT - 6, y(tick), colours.soft, { align: "right", size: 11 });
    }
    label(context, withUnit(name, unit && `(${unit})`) + (lane.hidden ? ", no sensor" : ""), LEFT, top + HEAD / 2 + 1, colours.ink,
      { align: "left", size: 13, bold: true });
    if (kind === "state") this.#aims(context, lane, { x, y, colours });
    context.beginPath();
    context.rect(LEFT, top, width - LEFT - RIGHT, tall);
    context.clip();
    COLOURS.forEach((colour, i) => {
      context.globalAlpha = 0.35;
      const others = this.#points.at(-1)?.sides[i]?.others?.length ?? 0;
      for (let k = 0; k < others; k += 1)
        this.#course(context, (point) => point.sides[i]?.others[k], of, { x, y, kind, colour: colours[colour], width: 1 });
      context.globalAlpha = 1;
      this.#course(context, (point) => point.sides[i], of, { x, y, kind, colour: colours[colour], width: 2 });
    });
    context.restore();
    line(context, LEFT, top + tall, width - RIGHT, top + tall, colours.line, 1);
    const values = this.#points.at(-1)?.sides.map(of) ?? [];
    let right = width - RIGHT;
    values.map((value, i) => [figure(value), colours[COLOURS[i]]]).reverse().forEach(([text, colour]) => {
      label(context, text, right, top + HEAD / 2 + 1, colour, { align: "right", bold: true, size: 13 });
      right -= context.measureText(text).width + 12;
    });
  }

  // The course of the setpoint, and the region of the best reward around its present value.
  #aims(context, lane, { x, y, colours }) {
    const latest = this.#points.at(-1), goal = latest && goalOf(lane, latest.setpoint);
    if (goal) {
      context.globalAlpha = 0.15;
      context.fillStyle = colours.goal;
      context.fillRect(LEFT, y(goal[1]), x(latest.t) - LEFT, y(goal[0]) - y(goal[1]));
      context.globalAlpha = 1;
    }
    if (!latest || aimOf(lane, latest.setpoint) === null) return;
    context.setLineDash([6, 4]);
    this.#course(context, (point) => point, (point) => aimOf(lane, point.setpoint),
      { x, y, kind: "action", colour: colours.goal, width: 1.5 });
    context.setLineDash([]);
  }

  // A line through the points of each episode; actions and setpoints are held from step to step.
  #course(context, part, of, { x, y, kind, colour, width }) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.lineJoin = "round";
    context.beginPath();
    let before = null;
    for (const point of this.#points) {
      const one = part(point);
      if (!one) {
        before = null;
        continue;
      }
      const value = y(of(one)), at = x(point.t);
      if (before?.episode !== point.episode) context.moveTo(at, value);
      else {
        if (kind === "action") context.lineTo(at, before.value);
        context.lineTo(at, value);
      }
      before = { episode: point.episode, value };
    }
    context.stroke();
  }
}
