// A colour and a shape for each method, as in the report: told apart with any kind of colour vision.

import { draw, make } from "./dom.js";

const SHAPES = [
  ["#0072b2", "M0-6A6 6 0 1 1 0 6A6 6 0 1 1 0-6Z"],
  ["#009e73", "M0-7L7 0L0 7L-7 0Z"],
  ["#e69f00", "M-5.500-5.500H5.500V5.500H-5.500Z"],
  ["#cc79a7", "M0-6.500L6.500 5.500H-6.500Z"],
  ["#d55e00", "M0 6.500L6.500-5.500H-6.500Z"],
  ["#56b4e9", "M-2.500-7H2.500V-2.500H7V2.500H2.500V7H-2.500V2.500H-7V-2.500H-2.500Z"],
];
const KNOWN = ["gprl", "fgprl", "fpsrl", "pid", "lqr", "psonn"];

export const mark = (method) => {
  const at = KNOWN.indexOf(method);
  const [fill, d] = SHAPES[at < 0 ? SHAPES.length - 1 : at];
  return draw("path", { d, fill });
};

// Nothing where there is nothing to tell apart.
export const legend = (methods) => {
  const names = [...new Set(methods)];
  if (names.length < 2) return [];
  const picture = { viewBox: "-8 -8 16 16", width: 14, height: 14, "aria-hidden": "true" };
  return names.map((name) => make("span", {}, draw("svg", picture, mark(name)), name));
};
