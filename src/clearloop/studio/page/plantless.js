// The message in place of the plant, for a task that has none.

import { button, make } from "./dom.js";

export const plantless = (studio) => make("div", { class: "empty", hidden: true },
  make("p", {}, "This task has no plant to drive. Controllers can be learned from a log of the real plant. "
    + "The models of a run then stand for the plant."),
  button("Learn from a log", () => studio.go("learn"), { class: "main" }));
