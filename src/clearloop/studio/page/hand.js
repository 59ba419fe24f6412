// The player's input as one number from -1 to 1: keys, a drag with the mouse or a finger, buttons, a game pad.

const KEYS = { ArrowLeft: -1, ArrowRight: 1, a: -1, d: 1 };
const DEAD = 0.12; // a stick that is moved by less of its way is at rest
const DRAG = 0.2; // share of the canvas's width that a drag needs for the full force
const PAD = { left: 14, right: 15 }; // buttons of the standard game pad

const busy = (target) => target?.closest?.("input, select, textarea, dialog[open]") ?? null;

export class Hand {
  #keys = new Set();
  #held = 0; // the input of a button on the page
  #drag = null;

  constructor() {
    addEventListener("keydown", (event) => {
      const meant = !event.ctrlKey && !event.metaKey && !event.altKey && !busy(event.target);
      if (!(event.key in KEYS) || !meant) return;
      if (!event.repeat) this.#keys.add(event.key);
      if (event.key.startsWith("Arrow")) event.preventDefault();
    });
    addEventListener("keyup", (event) => this.#keys.delete(event.key));
    addEventListener("blur", () => this.rest());
  }

  rest() {
    this.#keys.clear();
    this.#held = 0;
    this.#drag = null;
  }

  takes(canvas) {
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.#drag = { id: event.pointerId, from: event.clientX, share: 0 };
    });
    canvas.addEventListener("pointermove", (event) => {
      if (this.#drag?.id !== event.pointerId) return;
      const share = (event.clientX - this.#drag.from) / (DRAG * canvas.clientWidth);
      this.#drag.share = Math.max(-1, Math.min(1, share));
    });
    for (const end of ["pointerup", "pointercancel"]) canvas.addEventListener(end, () => (this.#drag = null));
  }

  presses(button, share) {
    button.addEventListener("pointerdown", () => (this.#held = share));
    for (const end of ["pointerup", "pointercancel", "pointerleave"])
      button.addEventListener(end, () => (this.#held = 0));
    button.addEventListener("keydown", (event) => {
      if (event.key === "Enter" || event.key === " ") this.#held = share;
    });
    button.addEventListener("keyup", () => (this.#held = 0));
    button.addEventListener("contextmenu", (event) => event.preventDefault()); // a long press opens no menu
  }

  #pad() {
    for (const pad of navigator.getGamepads?.() ?? []) {
      if (!pad) continue;
      const stick = pad.axes[0] ?? 0, far = (Math.abs(stick) - DEAD) / (1 - DEAD);
      if (far > 0) return Math.sign(stick) * Math.min(1, far);
      const way = (pad.buttons[PAD.right]?.pressed ?? 0) - (pad.buttons[PAD.left]?.pressed ?? 0);
      if (way) return way;
    }
    return 0;
  }

  // Called once for each drawn frame.
  share() {
    let keys = 0;
    for (const key of this.#keys) keys += KEYS[key];
    const share = Math.sign(keys) || this.#held || this.#drag?.share || this.#pad();
    return Math.round(share * 100) / 100;
  }
}
