// An axis maps values to a share of its length, from 0 to 1, and has round numbers at its ticks.

const WIDE = 3; // an axis is logarithmic if its largest value is this many times its smallest
const ROOM = 0.08; // share of the axis that is free at each end

const evenly = (low, high, most) => {
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].find((digit) => digit * power >= rough) * power;
  const ticks = [];
  for (let k = Math.ceil(low / step); k * step <= high; k += 1) ticks.push(Number((k * step).toPrecision(6)));
  return ticks;
};

const decades = (low, high) => {
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1)
    for (const digit of [1, 2, 3, 5]) ticks.push(Number((digit * 10 ** power).toPrecision(6)));
  return ticks.filter((value) => value >= low && value <= high);
};

const spread = (values) => {
  const low = Math.min(...values), high = Math.max(...values);
  const room = ROOM * (high - low) || 0.05 * Math.abs(high) || 1;
  return [low - room, high + room];
};

export const linear = (values, most = 6) => {
  const [low, high] = spread(values);
  return { share: (value) => (value - low) / (high - low), ticks: evenly(low, high, most) };
};

// Logarithmic if the values are positive and far apart, otherwise linear.
export const fitting = (values) => {
  const low = Math.min(...values), high = Math.max(...values);
  if (low <= 0 || high / low < WIDE) return linear(values);
  const [from, to] = spread(values.map(Math.log));
  const share = (value) => (Math.log(value) - from) / (to - from);
  return { share, ticks: decades(Math.exp(from), Math.exp(to)) };
};
