// Search in pages that were opened from the disk (file://), where browsers allow no workers: the
// worker's script runs in a hidden frame of the page instead. Elsewhere nothing is changed.
"use strict";

if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const own = new URL(url, location); // what it imports is relative to this
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "search";
      document.documentElement.append(frame);
      const scope = frame.contentWindow;
      this.scope = scope;
      this.ready = [];

      // what a worker's script expects to find
      scope.postMessage = (data) => this.tell(data);
      scope.importScripts = (...names) =>
        names.reduce((before, name) => before.then(() => load(name)), Promise.resolve());

      const load = (name) =>
        new Promise((resolve, reject) => {
          const script = frame.contentDocument.createElement("script");
          script.onload = resolve;
          script.onerror = () => reject(new Error(`${name} can't be read`));
          script.src = new URL(name, own);
          frame.contentDocument.body.append(script);
        });

      load(own).then(
        () => {
          const waiting = this.ready;
          this.ready = null;
          waiting.forEach((data) => this.postMessage(data));
        },
        (error) => this.dispatchEvent(new ErrorEvent("error", { message: String(error) })),
      );
    }

    // from the page to the script
    postMessage(data) {
      if (this.ready) this.ready.push(data);
      else this.scope.dispatchEvent(new MessageEvent("message", { data }));
    }

    // from the script to the page
    tell(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      if (this.onmessage) this.onmessage(event);
    }

    terminate() {
      this.scope.frameElement.remove();
    }
  };
  window.IFrameWorker = window.Worker; // by this name the search script knows that it is in a frame
}
