"use strict";

// Everything works without this file. With it, answers are sent without loading a new page, keys of
// the keyboard choose, and an answer that could not be sent is kept in the browser and sent again.

(() => {
  const PREFIX = "rejoinder:";
  const KEEP_DAYS = 30;
  const FIRST_WAIT = 1000;
  const LONGEST_WAIT = 60000;
  const REQUEST_TIMEOUT = 30000;

  const body = document.body;
  const main = () => document.getElementById("content");
  const taskForm = () => document.querySelector("form[data-send]");
  const root = body.dataset.root;

  // ---- what the browser keeps

  const memory = new Map();
  let durable = true;

  const keep = {
    read(key) {
      try {
        return JSON.parse(localStorage.getItem(key) ?? "null") ?? memory.get(key) ?? null;
      } catch {
        return memory.get(key) ?? null;
      }
    },
    write(key, value) {
      memory.set(key, value);
      try {
        localStorage.setItem(key, JSON.stringify(value));
      } catch {
        durable = false;
      }
    },
    remove(key) {
      memory.delete(key);
      try {
        localStorage.removeItem(key);
      } catch {
        durable = false;
      }
    },
    keys() {
      const found = new Set(memory.keys());
      try {
        for (let i = 0; i < localStorage.length; i++) found.add(localStorage.key(i));
      } catch {
        durable = false;
      }
      return [...found].filter((key) => key.startsWith(PREFIX));
    },
  };

  const answerKey = (lease) => `${PREFIX}answer:${body.dataset.storage}:${lease}`;
  const draftKey = (lease) => `${PREFIX}draft:${body.dataset.storage}:${lease}`;

  function removeOld() {
    const oldest = Date.now() - KEEP_DAYS * 24 * 3600 * 1000;
    for (const key of keep.keys()) {
      const value = keep.read(key);
      if (!value || !(value.time > oldest)) keep.remove(key);
    }
  }

  // ---- how long a page was visible

  let visibleSince = document.visibilityState === "visible" ? performance.now() : null;
  let visible = 0;

  function seconds() {
    const now = visibleSince === null ? 0 : performance.now() - visibleSince;
    return ((visible + now) / 1000).toFixed(2);
  }

  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible") {
      visibleSince = performance.now();
    } else if (visibleSince !== null) {
      visible += performance.now() - visibleSince;
      visibleSince = null;
    }
  });

  function restartClock() {
    visible = 0;
    if (visibleSince !== null) visibleSince = performance.now();
  }

  // ---- messages

  function say(message, retry) {
    const banner = document.getElementById("banner");
    banner.replaceChildren();
    if (!message) return;
    const text = document.createElement("p");
    text.textContent = message;
    banner.append(text);
    if (retry) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = body.dataset.again;
      button.addEventListener("click", retry);
      banner.append(button);
    }
  }

  // ---- sending

  let sending = null;
  let timer = null;
  let wait = FIRST_WAIT;

  function fieldsOf(form) {
    return [...new FormData(form)].filter(([, value]) => typeof value === "string");
  }

  function lock(locked) {
    const button = taskForm()?.querySelector("button[type=submit]");
    if (!button) return;
    button.disabled = locked;
    button.setAttribute("aria-busy", String(locked));
  }

  // Send a kept answer. It is removed once the server says what became of it.
  async function send(lease, shown) {
    const kept = keep.read(answerKey(lease));
    if (!kept || sending !== null) return;
    clearTimeout(timer);
    sending = lease;
    const fields = new URLSearchParams(kept.fields);
    fields.set("csrf", body.dataset.csrf);
    let response = null;
    let text = "";
    const stop = new AbortController();
    const timeout = setTimeout(() => stop.abort(), REQUEST_TIMEOUT);
    try {
      response = await fetch(`${root}/answer`, {
        method: "POST",
        body: fields,
        headers: { "Rejoinder-Request": "fragment" },
        credentials: "same-origin",
        redirect: "error",
        signal: stop.signal,
      });
      text = await response.text();
    } catch {
      response = null;
    }
    clearTimeout(timeout);
    sending = null;
    const outcome = response?.headers.get("Rejoinder-Answer");
    if (outcome) {
      wait = FIRST_WAIT;
      keep.remove(answerKey(lease));
      if (outcome !== "refused") keep.remove(draftKey(lease));
      say("");
      if (shown || outcome === "refused") show(text);
      else if (!sendNext() && !taskForm()) location.reload();
      return;
    }
    if (response && response.status < 500 && ![408, 425, 429].includes(response.status)) {
      // the session is gone: the answer waits for the person to open the link again
      if (response.status === 403) {
        say(body.dataset.noSession);
        return;
      }
      keep.remove(answerKey(lease));
      lock(false);
      say(body.dataset.rejected);
      return;
    }
    const again = () => send(lease, shown);
    say(response?.status === 507 ? body.dataset.diskFull : body.dataset.notSent, again);
    timer = setTimeout(again, wait * (0.75 + Math.random() / 2));
    wait = Math.min(2 * wait, LONGEST_WAIT);
  }

  // Send answers that an earlier visit could not send, that of the shown task first. Return whether
  // there are any.
  function sendNext() {
    const prefix = answerKey("");
    const kept = keep.keys().filter((key) => key.startsWith(prefix));
    if (!kept.length) return false;
    const waiting = kept.map((key) => key.slice(prefix.length));
    const current = taskForm()?.elements.lease.value;
    const isShown = waiting.includes(current);
    if (isShown) lock(true);
    send(isShown ? current : waiting[0], isShown);
    return true;
  }

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.matches("form[data-send]")) return;
    event.preventDefault();
    if (sending !== null) return;
    form.elements.seconds.value = seconds();
    const lease = form.elements.lease.value;
    keep.write(answerKey(lease), { time: Date.now(), fields: fieldsOf(form) });
    lock(true);
    say("");
    send(lease, true);
  });

  window.addEventListener("online", () => {
    wait = FIRST_WAIT;
    if (sending === null) sendNext();
  });

  window.addEventListener("beforeunload", (event) => {
    if (durable) return;
    if (keep.keys().length) event.preventDefault();
  });

  // ---- the next page

  function show(html) {
    const page = new DOMParser().parseFromString(html, "text/html");
    const next = page.getElementById("content");
    if (!next) {
      location.assign(`${root}/`);
      return;
    }
    document.title = page.title;
    const focus = next.querySelector("[data-focus]");
    main().replaceWith(document.adoptNode(next));
    const instructions = document.querySelector("details.instructions");
    if (instructions) instructions.open = false;
    window.scrollTo(0, 0);
    restartClock();
    prepare();
    const error = next.querySelector("[aria-invalid]");
    const wrong = error?.querySelector("input, textarea") ?? error;
    if (wrong) wrong.focus();
    else (focus ?? next).focus({ preventScroll: true }); // what is said at the top stays in view
  }

  // ---- drafts

  function saveDraft(form) {
    const lease = form.elements.lease.value;
    const skip = new Set(["csrf", "lease", "seconds"]);
    const fields = fieldsOf(form).filter(([name]) => !skip.has(name));
    keep.write(draftKey(lease), { time: Date.now(), fields });
  }

  function restoreDraft(form) {
    const draft = keep.read(draftKey(form.elements.lease.value));
    if (!draft || form.querySelector("[aria-invalid]")) return;
    let restored = false;
    for (const [name, value] of draft.fields) {
      const field = form.elements[name];
      if (!field) continue;
      for (const each of field instanceof RadioNodeList ? field : [field]) {
        if (each.type === "radio" || each.type === "checkbox") {
          if (each.value === value && !each.checked) each.checked = restored = true;
        } else if (each.value !== value) {
          each.value = value;
          restored = restored || each.type !== "hidden";
          const details = each.closest("details");
          if (details && value) details.open = true;
        }
      }
    }
    if (restored) say(body.dataset.restored);
  }

  document.addEventListener("input", (event) => {
    const form = event.target.closest("form[data-send]");
    if (!form) return;
    saveDraft(form);
    count(event.target);
  });

  // ---- textareas

  const segmenter = window.Intl?.Segmenter ? new Intl.Segmenter() : null;

  // The number of characters as the server counts them: letters with their accents, on one line.
  function characters(text) {
    const line = text.replace(/\s*[\n\r\t]+\s*/g, " ").normalize("NFC").trim();
    return segmenter ? [...segmenter.segment(line)].length : [...line].length;
  }

  function count(field) {
    const counter = document.getElementById(`${field.id}-count`);
    if (!counter) return;
    const length = characters(field.value);
    counter.textContent = String(length);
    counter.parentElement.hidden = false;
    const wrong = length > 0 && (length < field.dataset.min || length > field.dataset.max);
    counter.parentElement.classList.toggle("wrong", wrong);
  }

  for (const kind of ["paste", "drop"]) {
    document.addEventListener(kind, (event) => {
      const form = event.target.closest?.("form[data-send]");
      const mark = form?.elements[event.target.name?.replace(/^reply-/, "pasted-")];
      if (mark && mark !== event.target) mark.value = "1";
    });
  }

  // ---- keyboard

  const questions = () => [...document.querySelectorAll("form[data-send] [data-question]")];
  const answered = (question) => question.querySelector("input:checked") !== null;

  function currentQuestion() {
    const focused = document.activeElement?.closest?.("[data-question]");
    return focused ?? questions().find((each) => !answered(each)) ?? questions().at(-1);
  }

  function choose(key) {
    const toggle = document.querySelector(`form[data-send] input[data-toggle="${CSS.escape(key)}"]`);
    const question = currentQuestion();
    const chosen =
      toggle ?? question?.querySelector(`input[data-key~="${CSS.escape(key)}"]`);
    if (!chosen) return false;
    chosen.checked = toggle ? !chosen.checked : true;
    chosen.dispatchEvent(new Event("input", { bubbles: true }));
    chosen.dispatchEvent(new Event("change", { bubbles: true }));
    if (toggle) {
      chosen.focus();
      return true;
    }
    const all = questions();
    const next = all.slice(all.indexOf(question) + 1).find((each) => !answered(each));
    const target =
      next?.querySelector("input") ?? taskForm().querySelector("button[type=submit]");
    target.focus({ preventScroll: true });
    (next ?? target).scrollIntoView({ block: "nearest" });
    return true;
  }

  document.addEventListener("keydown", (event) => {
    const form = taskForm();
    if (!form || event.isComposing || event.altKey) return;
    const typing = event.target.matches("textarea, input:not([type=radio], [type=checkbox]), select");
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      form.requestSubmit();
      return;
    }
    if (typing || event.ctrlKey || event.metaKey) return;
    if (event.key === "Enter") {
      if (event.target.closest("button, a, summary, input")) {
        if (!event.target.matches("input[type=radio], input[type=checkbox]")) return;
      }
      event.preventDefault();
      if (!event.repeat) form.requestSubmit();
      return;
    }
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (choose(key)) event.preventDefault();
  });

  // ---- start

  function prepare() {
    const form = taskForm();
    if (!form) return;
    restoreDraft(form);
    for (const field of form.querySelectorAll("textarea")) count(field);
  }

  removeOld();
  prepare();
  document.querySelector("main [aria-invalid] input, main [aria-invalid]")?.focus();
  if (body.dataset.storage) sendNext();
})();
