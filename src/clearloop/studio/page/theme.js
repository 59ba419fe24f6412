// The colours of style.css, for drawings on a canvas.

const NAMES = ["ink", "soft", "line", "paper", "wash", "floor", "first", "second", "force", "goal", "metal"];
const dark = matchMedia("(prefers-color-scheme: dark)");
let read = null;

dark.addEventListener("change", () => (read = null));

export const colours = () => {
  if (!read) {
    const style = getComputedStyle(document.documentElement);
    read = Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  }
  return read;
};

export const calm = matchMedia("(prefers-reduced-motion: reduce)");
