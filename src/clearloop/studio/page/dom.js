// Makes elements. All data becomes text here, never markup.

const SVG = "http://www.w3.org/2000/svg";

const fill = (element, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
};

export const make = (tag, attributes = {}, ...children) =>
  fill(document.createElement(tag), attributes, children);

export const draw = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS(SVG, tag), attributes, children);

// Sets a text that is given at every frame but seldom changes.
export const put = (element, text) => {
  if (element.textContent !== text) element.textContent = text;
};

export const button = (text, does, attributes = {}) =>
  make("button", { type: "button", onclick: does, ...attributes }, text);

export const counted = (number, thing) => `${number.toLocaleString("en")} ${thing}${number === 1 ? "" : "s"}`;

// Fills a select with choices {value, text, group}; the present choice stays if it is still among them.
export const choices = (select, options, wanted = select.value) => {
  const groups = new Map();
  select.replaceChildren();
  for (const { value, text, group } of options) {
    if (group && !groups.has(group)) {
      groups.set(group, make("optgroup", { label: group }));
      select.append(groups.get(group));
    }
    (groups.get(group) ?? select).append(make("option", { value }, text));
  }
  if (options.some((option) => option.value === wanted)) select.value = wanted;
};
