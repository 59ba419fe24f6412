// The page's side of a live session: sends what has changed; after a lost connection, it sends all again.

import { Connection } from "./connection.js";

const say = {
  first: (controller) => ({ do: "drive", side: 0, controller }),
  second: (controller) => ({ do: "drive", side: 1, controller }),
  speed: (factor) => ({ do: "speed", factor }),
  sensors: (sensors) => ({ do: "sensors", ...sensors }),
  pause: (on) => ({ do: "pause", on }),
};

export class Session {
  #connection = null;
  #said = {};
  #wanted = {};

  constructor({ frame, error, status }) {
    this.frame = frame;
    this.error = error;
    this.status = status;
  }

  open(task) {
    this.close();
    this.#wanted = {};
    const address = new URL(`/live?${new URLSearchParams({ task })}`, location.href);
    address.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    this.#connection = new Connection(address.href, {
      receive: (message) => ("error" in message ? this.error(message.error) : this.frame(message)),
      status: (status, reason) => {
        this.#said = {};
        this.#speak();
        this.status(status, reason);
      },
    });
  }

  close() {
    this.#connection?.close();
    this.#connection = null;
  }

  // Sets any of: first, second, speed, sensors, pause; and setpoint, {name: value}.
  want(wishes) {
    Object.assign(this.#wanted, wishes);
    this.#speak();
  }

  // Sends a message once; it is lost if there is no connection.
  say(message) {
    return this.#connection?.send(message) ?? false;
  }

  #speak() {
    const { pause, setpoint = {}, ...others } = this.#wanted;
    for (const [name, value] of Object.entries(pause === undefined ? others : { pause, ...others })) this.#once(name, value, () => say[name](value));
    for (const [state, value] of Object.entries(setpoint))
      this.#once(`setpoint ${state}`, value, () => ({ do: "setpoint", state, value }));
  }

  #once(name, value, message) {
    const text = JSON.stringify(value);
    if (this.#said[name] !== text && this.say(message())) this.#said[name] = text;
  }
}
