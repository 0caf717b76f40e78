// Browsers start no worker for a page that was opened as a file: a hidden frame runs the script of
// the worker instead, so that search works there, too.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      const isOpen = new Promise((resolve) => { frame.onload = resolve; });
      document.body.append(frame);
      this.started = isOpen.then(() => this.start(frame.contentWindow, address));
    }

    start(inside, address) {
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = inside.document.createElement("script");
      script.src = new URL(address, location);
      return new Promise((resolve, reject) => {
        script.onload = () => resolve(inside);
        script.onerror = () => reject(new Error(`${script.src} cannot be read`));
        inside.document.head.append(script);
      });
    }

    postMessage(data) {
      this.started.then((inside) => {
        inside.dispatchEvent(new inside.MessageEvent("message", { data }));
      });
    }
  };
}
