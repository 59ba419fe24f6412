// A websocket that connects again when it is lost. It counts as open from the first message on, because the server
// accepts also those that it then closes with a reason.

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
    let heard = false;
    socket.addEventListener("message", (event) => {
      if (!heard) {
        heard = true;
        this.#wait = FIRST_WAIT;
        this.status("open");
      }
      this.receive(JSON.parse(event.data));
    });
    socket.addEventListener("close", ({ reason }) => {
      if (this.#closed) return;
      this.status("lost", reason);
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
