// Wide tables and formulas scroll by themselves; the keyboard must reach them for that.
addEventListener("load", () => {
  const scrolled = document.querySelectorAll(".md-typeset__scrollwrap, math[display=block]");
  for (const one of scrolled) one.tabIndex = 0;
});
