// A pendulum that turns about a fixed pivot: x is the cosine of its angle, y the sine; upright is x = 1.

import { arrow, disc, figure, label, line, withUnit } from "./strokes.js";

export const drawPendulum = (context, { width, height, task, side, colours, accent }) => {
  const pivot = [width / 2, height / 2], length = 0.4 * Math.min(height, width);
  context.strokeStyle = colours.line;
  context.lineWidth = 1.5;
  context.beginPath();
  context.arc(...pivot, length, 0, 2 * Math.PI);
  context.stroke();
  context.strokeStyle = colours.goal;
  context.lineWidth = 6;
  context.beginPath();
  context.arc(...pivot, length, -Math.PI / 2 - 0.15, -Math.PI / 2 + 0.15);
  context.stroke();
  if (!side) return null;
  const x = side.state[task.pose.x], y = side.state[task.pose.y], size = Math.hypot(x, y) || 1;
  const tip = [pivot[0] + (length * y) / size, pivot[1] - (length * x) / size];
  line(context, ...pivot, ...tip, side.failed ? colours.soft : accent, 10);
  disc(context, ...tip, 11, side.failed ? colours.soft : accent);
  disc(context, ...pivot, 6, colours.ink);

  const action = task.actions[0], torque = side.action?.[action.name] ?? 0;
  const share = torque / Math.max(Math.abs(action.limits[0]), Math.abs(action.limits[1]));
  const from = -Math.PI / 2, to = from + 1.6 * share, radius = 0.35 * length;
  if (Math.abs(share) > 0.01) {
    context.strokeStyle = colours.force;
    context.lineWidth = 5;
    context.beginPath();
    context.arc(...pivot, radius, from, to, share < 0);
    context.stroke();
    const way = Math.sign(share);
    arrow(context, pivot[0] + radius * Math.cos(to), pivot[1] + radius * Math.sin(to),
      -way * 12 * Math.sin(to), way * 12 * Math.cos(to), colours.force, 5);
  }
  label(context, withUnit(figure(torque), action.unit), pivot[0], pivot[1] + radius + 14, colours.force,
    { bold: true, size: 13 });
  return { from: pivot, to: tip };
};
