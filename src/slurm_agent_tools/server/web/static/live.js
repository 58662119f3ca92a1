// Brings what changes on a page up to date every few seconds, while somebody can see it. Without it the page reloads.
"use strict";

(() => {
  const LONGEST = 30000;
  const shown = document.querySelector("[data-live]");
  const PAUSE = 1000 * Number(shown.dataset.every);
  const said = document.getElementById("said");
  let mark = null;
  let told = null;
  let pause = PAUSE;

  function say(text) {
    if (said.textContent !== text) said.textContent = text;
  }

  // What a person opened, chose or scrolled stays as it was: elements are known again by their place among their kind.
  function kept() {
    const boxes = [...shown.querySelectorAll(".scroll")].map((box) => [box.scrollLeft, box.scrollTop]);
    const open = [...shown.querySelectorAll("details")].map((one) => one.open);
    const all = [...shown.querySelectorAll("a, summary, .scroll")];
    return { boxes, open, focus: all.indexOf(document.activeElement) };
  }

  function restore(before) {
    shown.querySelectorAll(".scroll").forEach((box, place) => {
      if (before.boxes[place]) [box.scrollLeft, box.scrollTop] = before.boxes[place];
    });
    shown.querySelectorAll("details").forEach((one, place) => {
      if (before.open[place]) one.open = true;
    });
    if (before.focus >= 0) {
      const all = shown.querySelectorAll("a, summary, .scroll");
      if (all[before.focus]) all[before.focus].focus({ preventScroll: true });
    }
  }

  // The form before a list stays where it is, with the words that a person types; only what follows it is new.
  function fill(parts) {
    const form = shown.querySelector(":scope > form");
    const after = parts.findIndex((part) => part.nodeName === "FORM") + 1;
    if (form === null || after === 0) {
      shown.replaceChildren(...parts);
      return;
    }
    while (form.nextSibling !== null) form.nextSibling.remove();
    form.after(...parts.slice(after));
  }

  function replace(text) {
    const before = kept();
    fill([...new DOMParser().parseFromString(text, "text/html").body.childNodes]);
    restore(before);
    const now = shown.querySelector("[data-said]");
    const words = now === null ? null : now.dataset.said;
    if (told !== null && words !== null && words !== told) say(words);
    told = words;
  }

  async function look() {
    const headers = mark === null ? {} : { "If-None-Match": mark };
    const answer = await fetch(shown.dataset.live, { headers, cache: "no-store", credentials: "same-origin" });
    if (answer.status === 401 || answer.status === 403) {
      say("You are not signed in any more: this page stands still.");
      return false;
    }
    if (answer.status === 429 || (answer.status >= 500 && !answer.headers.has("ETag"))) throw new Error("later");
    if (answer.status !== 304) {
      mark = answer.headers.get("ETag");
      replace(await answer.text());
    }
    if (pause > PAUSE) say("");
    pause = PAUSE;
    return true;
  }

  async function tick() {
    let on = true;
    if (document.visibilityState === "visible") {
      try {
        on = await look();
      } catch {
        pause = Math.min(LONGEST, pause * 2);
        say("The server does not answer: what stands here is older.");
      }
    }
    if (on) setTimeout(tick, pause);
  }

  told = shown.querySelector("[data-said]")?.dataset.said ?? null;
  setTimeout(tick, PAUSE);
})();
