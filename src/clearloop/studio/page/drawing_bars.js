// The drawing for any task: a bar in its range for each state that is not hidden, with its setpoint; then the actions.

import { aimOf, goalOf } from "./goals.js";
import { box, figure, label, line, withUnit } from "./strokes.js";

const TOP = 0.2; // share of the height that is left for the clock
const LONGEST = 64; // px, the most that a row is high

export const drawBars = (context, { width, height, task, side, setpoint, colours, accent }) => {
  const rows = [
    ...task.states.filter((state) => !state.hidden).map((state) => ({
      ...state, span: state.limits ?? state.range, value: side?.state[state.name],
      aim: aimOf(state, setpoint), goal: goalOf(state, setpoint), colour: accent })),
    ...task.actions.map((action) => ({ ...action, span: action.limits, value: side?.action?.[action.name],
      aim: null, colour: colours.force })),
  ];
  const step = Math.min(LONGEST, ((1 - TOP) * height) / rows.length), thick = Math.min(14, 0.32 * step);
  const left = 16, wide = width - 2 * left;
  rows.forEach(({ name, unit, span, value, aim, goal, colour }, i) => {
    const y = TOP * height + i * step + 0.68 * step;
    const across = (v) => left + wide * Math.min(1, Math.max(0, (v - span[0]) / (span[1] - span[0])));
    label(context, name, left, y - thick / 2 - 11, colours.ink, { align: "left", size: 13 });
    box(context, left, y - thick / 2, wide, thick, thick / 2, colours.line);
    if (goal) {
      context.globalAlpha = 0.35;
      box(context, across(goal[0]), y - thick / 2, across(goal[1]) - across(goal[0]), thick, 0, colours.goal);
      context.globalAlpha = 1;
    }
    if (value !== undefined) {
      const zero = across(Math.min(span[1], Math.max(span[0], 0))), at = across(value);
      const long = Math.max(3, Math.abs(at - zero));
      box(context, Math.min(zero, at), y - thick / 2, long, thick, thick / 2, colour);
      label(context, withUnit(figure(value), unit), left + wide, y - thick / 2 - 11, colour,
        { align: "right", bold: true, size: 13 });
    }
    if (aim !== null) line(context, across(aim), y - thick, across(aim), y + thick, colours.goal, 3);
  });
  return null;
};
