// Interpolates between two frames of the server, so that the movement is smooth; the display is one step late.

const KEPT = 6;
const FAR = 4; // steps behind or ahead of the server, above which the display jumps
const PULL = 0.08; // share of the distance to the server's time that each drawn frame makes up

const mixed = (a, b, share) => {
  const result = {};
  for (const name in b) result[name] = name in a ? a[name] + share * (b[name] - a[name]) : b[name];
  return result;
};

const between = (a, b, share) =>
  ({ ...b, state: mixed(a.state, b.state, share), up: a.up + share * (b.up - a.up) });

// Between two episodes nothing is interpolated.
const continues = (a, b) => b.t >= a.t && b.episode === a.episode && b.sides.length === a.sides.length;

export class Frames {
  #frames = [];
  #place = 0; // in steps
  #drawn = null;

  get latest() {
    return this.#frames.at(-1) ?? null;
  }

  clear() {
    this.#frames = [];
  }

  push(frame) {
    if (this.latest && !continues(this.latest, frame)) this.clear();
    if (this.latest?.t === frame.t) this.#frames.pop();
    this.#frames.push(frame);
    if (this.#frames.length > KEPT) this.#frames.shift();
  }

  // The frame to draw at `now` (ms), where the simulation does `rate` steps a second.
  at(now, rate) {
    const latest = this.latest;
    if (!latest) return null;
    const target = latest.t - 1;
    this.#place += Math.min((now - (this.#drawn ?? now)) / 1000, 0.1) * rate;
    this.#drawn = now;
    if (Math.abs(target - this.#place) > FAR) this.#place = target;
    this.#place += PULL * (target - this.#place);
    const next = this.#frames.findIndex((frame) => frame.t >= this.#place);
    if (next === -1) return latest;
    const b = this.#frames[next], a = this.#frames[next - 1] ?? b;
    const share = b.t === a.t ? 1 : (this.#place - a.t) / (b.t - a.t);
    return { ...b, sides: b.sides.map((side, i) => between(a.sides[i], side, share)) };
  }
}
