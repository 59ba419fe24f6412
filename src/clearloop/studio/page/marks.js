// A colour and a shape for each method, as in the figures; they can be told apart with any kind of colour vision.

import { draw, make } from "./dom.js";

const SHAPES = [
  ["#0072b2", "M0-6A6 6 0 1 1 0 6A6 6 0 1 1 0-6Z"],
  ["#009e73", "M0-7L7 0L0 7L-7 0Z"],
  ["#e69f00", "M-5.500-5.500H5.500V5.500H-5.500Z"],
  ["#cc79a7", "M0-6.500L6.500 5.500H-6.500Z"],
  ["#000000", "M-6-3.500L-3.500-6L0-2.500L3.500-6L6-3.500L2.500 0L6 3.500L3.500 6L0 2.500L-3.500 6L-6 3.500L-2.500 0Z"],
  ["#666666", "M0-6.500L5.600-3.200V3.200L0 6.500L-5.600 3.200V-3.200Z"],
  ["#d55e00", "M0 6.500L6.500-5.500H-6.500Z"],
  ["#56b4e9", "M-2.500-7H2.500V-2.500H7V2.500H2.500V7H-2.500V2.500H-7V-2.500H-2.500Z"],
  ["#666666", "M0-7L1.700-2.200L6.700-2.200L2.700 0.900L4.100 5.700L0 2.800L-4.100 5.700L-2.700 0.900L-6.700-2.200L-1.700-2.200Z"],
];
const known = []; // the names of the methods, as the server lists them

export const know = (methods) => known.splice(0, known.length, ...methods);

export const mark = (method) => {
  const [fill, d] = SHAPES[known.indexOf(method)] ?? SHAPES.at(-1);
  return draw("path", { d, fill });
};

// The legend is empty if there are fewer than two methods.
export const legend = (methods) => {
  const names = [...new Set(methods)];
  if (names.length < 2) return [];
  const picture = { viewBox: "-8 -8 16 16", width: 14, height: 14, "aria-hidden": "true" };
  return names.map((name) => make("span", {}, draw("svg", picture, mark(name)), name));
};
