// Opens one controller at a time; without this script all of them are open.
"use strict";
(() => {
  const root = document.documentElement;
  const points = [...document.querySelectorAll(".point")];
  const hint = document.getElementById("hint");
  const invitation = hint.textContent;
  const article = (id) => document.getElementById("c" + id);
  let current = null;

  const tell = (id) => {
    const point = points.find((one) => one.dataset.id === id);
    hint.textContent = id ? point.getAttribute("aria-label") + " — " + article(id).dataset.formula : invitation;
  };

  const open = (id) => {
    if (!article(id)) return;
    current = id;
    for (const point of points) {
      const chosen = point.dataset.id === id;
      article(point.dataset.id).classList.toggle("open", chosen);
      if (chosen) point.setAttribute("aria-current", "true");
      else point.removeAttribute("aria-current");
    }
    tell(id);
  };

  const fromAddress = () => open(location.hash.slice(2));

  for (const point of points) {
    const id = point.dataset.id;
    point.addEventListener("mouseenter", () => tell(id));
    point.addEventListener("mouseleave", () => tell(current));
    point.addEventListener("focus", () => tell(id));
    point.addEventListener("click", (event) => {
      event.preventDefault(); // a browser does not scroll to an article that is still hidden
      open(id);
      history.replaceState(null, "", "#c" + id);
      article(id).focus();
    });
  }

  // Arrow keys step through the front, from point to point, or from one open controller to the next.
  addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const from = document.activeElement;
    const at = points.findIndex((point) => point === from || article(point.dataset.id) === from);
    if (!step || at < 0) return;
    event.preventDefault();
    const next = points[(at + step + points.length) % points.length];
    open(next.dataset.id);
    (points.includes(from) ? next : article(next.dataset.id)).focus();
  });

  root.classList.add("js");
  open(document.querySelector(".point.pick").dataset.id);
  addEventListener("hashchange", fromAddress);
  if (location.hash.startsWith("#c")) fromAddress();
})();
