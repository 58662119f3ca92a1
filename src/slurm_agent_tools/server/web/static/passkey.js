// Asks a passkey for a yes to what the page shows, or makes a new passkey. The server decides whether it counts.
"use strict";

(() => {
  const said = document.getElementById("said");

  function say(text) {
    said.textContent = text;
  }

  async function send(button, step, body) {
    const sent = await fetch(`${button.dataset.base}yes/${step}/${button.dataset.question}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      credentials: "same-origin",
      body: JSON.stringify(body),
    });
    const told = await sent.json().catch(() => ({ message: `The answer was ${sent.status}. Load the page again in a minute.` }));
    if (!sent.ok) throw new Error(told.message);
    return told;
  }

  async function asked(button, options) {
    try {
      if (button.dataset.make) {
        const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options);
        return { answer: (await navigator.credentials.create({ publicKey })).toJSON() };
      }
      const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options);
      return { answer: (await navigator.credentials.get({ publicKey })).toJSON() };
    } catch (error) {
      return { failed: error.name };
    }
  }

  // What is shown may be put in anew while the page is open, so the button is found when it is pressed.
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("#yes");
    if (button === null) return;
    button.disabled = true;
    say("Waiting for the passkey.");
    try {
      const begun = await send(button, "begin", { shown: button.dataset.shown });
      const done = await send(button, "finish", { number: begun.number, ...(await asked(button, begun.options)) });
      say(done.message);
    } catch (error) {
      say(`This was not done. ${error.message}`);
      button.disabled = false;
    }
  });

  if (document.getElementById("yes") === null) return;
  if (location.hostname === "127.0.0.1") {
    say("A passkey needs a name: open these pages as http://localhost.");
  } else if (window.PublicKeyCredential === undefined) {
    say("This browser has no passkeys for this page.");
  }
})();
