"use strict";

// Reads the researcher's page again every few seconds while it is visible, and replaces what changed.

(() => {
  const SECONDS = 10;

  const isBusy = () => {
    const active = document.activeElement;
    return document.hidden || (active && active.matches("main button, main a, main input"));
  };

  async function refresh() {
    if (isBusy()) return;
    let html;
    try {
      const response = await fetch(location.href, {
        headers: { "Rejoinder-Request": "fragment" },
        credentials: "same-origin",
      });
      if (!response.ok) return;
      html = await response.text();
    } catch {
      return; // the server may be starting again
    }
    const next = new DOMParser().parseFromString(html, "text/html").getElementById("content");
    const now = document.getElementById("content");
    if (next && !isBusy() && next.innerHTML !== now.innerHTML) {
      now.replaceWith(document.adoptNode(next));
    }
  }

  setInterval(refresh, SECONDS * 1000);
  document.addEventListener("visibilitychange", refresh);
})();
