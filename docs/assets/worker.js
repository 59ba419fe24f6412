/* The search of the site runs in a worker, which browsers refuse to pages that are opened from a folder.
   There, a hidden frame takes its place: it loads the same script and exchanges the same messages. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.deliver(this, data);
      this.ready = new Promise((done, failed) => {
        const script = inside.document.createElement("script");
        script.src = new URL(url, location.href).href;
        script.onload = done;
        script.onerror = () => failed(new Error(`${script.src} is missing`));
        inside.document.body.append(script);
      });
    }
    deliver(target, data) {
      const message = new MessageEvent("message", { data });
      target.dispatchEvent(message);
      target.onmessage?.(message);
    }
    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
