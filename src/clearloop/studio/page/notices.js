// Error messages, a line each, which can be dismissed; and announcements for screen readers.

import { button, make } from "./dom.js";

const place = document.getElementById("notices");
const spoken = document.getElementById("spoken");
const MOST = 3;

export const complain = (text) => {
  const same = [...place.children].find((one) => one.dataset.text === text);
  if (same) return;
  const line = make("p", { class: "notice" }, make("span", {}, text));
  line.dataset.text = text;
  line.append(button("✕", () => line.remove(), { class: "quiet", "aria-label": "Dismiss" }));
  place.append(line);
  while (place.children.length > MOST) place.firstChild.remove();
};

// Wraps a function that may fail; its failure becomes an error message.
export const trying = (work) => async (...given) => {
  try {
    return await work(...given);
  } catch (error) {
    complain(error.message);
    return undefined;
  }
};

export const announce = (text) => {
  spoken.textContent = text;
};
