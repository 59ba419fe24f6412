// A cart with a pole on its track. The lengths of the cart and the pole are the drawing's own.
// If the sensors show another pose than the true one, it is drawn as a second, dashed pole.

import { aimOf, goalOf } from "./goals.js";
import { arrow, box, disc, figure, label, line, withUnit } from "./strokes.js";

const MARGIN = 1.17; // width of the picture, in lengths of the track

export const drawCartpole = (context, { width, height, task, side, setpoint, colours, accent }) => {
  const { theta: angle, rho: place } = Object.fromEntries(task.states.map((state) => [state.name, state]));
  const track = place.limits ?? place.range;
  const middle = (track[0] + track[1]) / 2;
  const scale = width / ((track[1] - track[0]) * MARGIN);
  const across = (rho) => width / 2 + (rho - middle) * scale;
  const floor = Math.round(height * 0.77);
  const cart = { width: Math.min(96, Math.max(46, 0.42 * scale)) };
  cart.height = 0.44 * cart.width;
  cart.top = floor - cart.height - 0.16 * cart.width;
  const length = Math.min(cart.top - 24, Math.max(1.0 * scale, 0.52 * height));

  const drawFloor = () => {
    box(context, 0, floor, width, height - floor, 0, colours.floor);
    const aim = aimOf(place, setpoint), goal = goalOf(place, setpoint);
    if (goal) {
      const left = across(goal[0]), wide = (goal[1] - goal[0]) * scale;
      context.globalAlpha = 0.35;
      box(context, left, floor, wide, 12, 0, colours.goal);
      context.globalAlpha = 1;
      line(context, left, floor, left, floor + 12, colours.goal, 2);
      line(context, left + wide, floor, left + wide, floor + 12, colours.goal, 2);
    }
    if (aim !== null) {
      context.fillStyle = colours.goal;
      context.beginPath();
      context.moveTo(across(aim), floor + 1);
      context.lineTo(across(aim) - 7, floor + 13);
      context.lineTo(across(aim) + 7, floor + 13);
      context.fill();
    }
    line(context, across(track[0]), floor, across(track[1]), floor, colours.metal, 3);
    for (let at = Math.ceil(track[0]); at <= track[1]; at += 1) {
      const text = `${at < 0 ? "−" : ""}${Math.abs(at)}`;
      label(context, withUnit(text, place.unit), across(at), floor + 25, colours.soft);
    }
    for (const [end, out] of [[track[0], -1], [track[1], 1]])
      box(context, across(end) - (out < 0 ? 8 : 0), floor - 30, 8, 32, 2, colours.metal);
  };

  const drawPole = (theta, rho, colour, thick, dash) => {
    const x = across(rho), tip = [x + length * Math.sin(theta), cart.top - length * Math.cos(theta)];
    line(context, x, cart.top, ...tip, colour, thick, dash);
    return tip;
  };

  drawFloor();
  if (!side) return null;
  const theta = side.state[task.pose.theta], rho = side.state[task.pose.rho], x = across(rho);
  for (const limit of angle.limits ?? [])
    line(context, x, cart.top, x + 0.5 * length * Math.sin(limit), cart.top - 0.5 * length * Math.cos(limit),
      colours.line, 1.5, [2, 6]);
  const seen = side.seen ?? {};
  if (Math.abs((seen.theta ?? theta) - theta) > 0.02 || Math.abs((seen.rho ?? rho) - rho) > 0.05)
    drawPole(seen.theta, seen.rho, colours.soft, 2, [3, 7]);

  for (const at of [-0.3, 0.3]) {
    const hub = x + at * cart.width, radius = 0.13 * cart.width;
    disc(context, hub, floor - radius, radius, colours.ink);
    const turned = (rho * scale) / radius, spoke = 0.6 * radius;
    const dx = spoke * Math.cos(turned), dy = spoke * Math.sin(turned);
    line(context, hub - dx, floor - radius - dy, hub + dx, floor - radius + dy, colours.paper, 1.5);
  }
  const body = side.failed ? colours.soft : colours.ink;
  box(context, x - cart.width / 2, cart.top, cart.width, cart.height, 6, body);
  const tip = drawPole(theta, rho, side.failed ? colours.soft : accent, Math.max(7, 0.1 * cart.width));
  disc(context, x, cart.top, 0.1 * cart.width, colours.paper);
  disc(context, x, cart.top, 0.055 * cart.width, colours.ink);

  const action = task.actions[0], force = side.action?.[action.name] ?? 0;
  const full = Math.max(Math.abs(action.limits[0]), Math.abs(action.limits[1]));
  const reach = Math.min(0.16 * width, 150) * (force / full), way = Math.sign(force);
  if (!side.failed && Math.abs(force) > 0.005 * full) {
    const from = x + way * (cart.width / 2 + 4), y = cart.top + cart.height / 2;
    arrow(context, from, y, reach, 0, colours.force, 6);
    const beside = from + reach + way * 34, free = beside > 34 && beside < width - 34; // otherwise the number is above the arrow
    label(context, withUnit(figure(force), action.unit), free ? beside : Math.min(width - 34, Math.max(34, from)),
      free ? y : y - 18, colours.force, { bold: true, size: 13 });
  }
  return { from: [x, cart.top], to: tip };
};
