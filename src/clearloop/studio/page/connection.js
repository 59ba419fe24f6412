// A websocket that connects again when it is lost.

const FIRST_WAIT = 500, LONGEST_WAIT = 5000; // ms

export class Connection {
  #socket = null;
  #wait = FIRST_WAIT;
  #closed = false;

  constructor(address, { receive, status }) {
    this.address = address;
    this.receive = receive;
    this.status = status;
    this.#open();
  }

  #open() {
    if (this.#closed) return;
    const socket = new WebSocket(this.address);
    this.#socket = socket;
    socket.addEventListener("open", () => {
      this.#wait = FIRST_WAIT;
      this.status("open");
    });
    socket.addEventListener("message", (event) => this.receive(JSON.parse(event.data)));
    socket.addEventListener("close", () => {
      if (this.#closed) return;
      this.status("lost");
      setTimeout(() => this.#open(), this.#wait);
      this.#wait = Math.min(2 * this.#wait, LONGEST_WAIT);
    });
  }

  send(message) {
    if (this.#socket.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify(message));
    return true;
  }

  close() {
    this.#closed = true;
    this.#socket.close();
  }
}
