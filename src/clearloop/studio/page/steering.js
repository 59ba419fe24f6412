// Sends the player's input to the first side when it changes.

export class Steering {
  #said = 0;

  constructor(studio) {
    this.studio = studio;
  }

  // Called once for each drawn frame; returns the input, from -1 to 1.
  steer(share = this.studio.hand.share()) {
    if (!this.studio.task.playable) return 0;
    const [action] = this.studio.task.actions;
    if (share !== this.#said && this.studio.session.say({ do: "hand", action: { [action.name]: share } }))
      this.#said = share;
    return share;
  }

  rest() {
    this.studio.hand.rest();
    this.steer(0);
  }
}
