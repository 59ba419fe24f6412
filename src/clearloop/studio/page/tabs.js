// The five tabs. The address names the open one and its contents: #watch?a=published/lqr

export class Tabs {
  panels;
  #links = [...document.querySelectorAll("header nav a")];
  open = null;

  constructor(panels) {
    this.panels = panels;
    addEventListener("hashchange", () => this.#follow());
  }

  get names() {
    return Object.keys(this.panels);
  }

  get panel() {
    return this.panels[this.open];
  }

  start() {
    this.#follow();
  }

  go(name, query = {}) {
    const text = new URLSearchParams(query).toString();
    const hash = text ? `#${name}?${text}` : `#${name}`;
    if (location.hash === hash) this.#follow();
    else location.hash = hash;
  }

  // Changes the address without a new entry in the browser's history.
  remember(query) {
    const text = new URLSearchParams(query).toString();
    history.replaceState(null, "", text ? `#${this.open}?${text}` : `#${this.open}`);
  }

  #follow() {
    const [wanted, query] = location.hash.slice(1).split("?");
    const name = wanted in this.panels ? wanted : "play";
    if (this.open !== name) {
      this.panel?.leave?.();
      this.open = name;
      for (const other of this.names) document.getElementById(other).hidden = other !== name;
      for (const link of this.#links) {
        if (link.hash === `#${name}`) link.setAttribute("aria-current", "page");
        else link.removeAttribute("aria-current");
      }
      document.title = `${name[0].toUpperCase()}${name.slice(1)} · clearloop studio`;
    }
    this.panel.enter?.(Object.fromEntries(new URLSearchParams(query ?? "")));
  }
}
