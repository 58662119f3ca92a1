// An answer of a tool as a view in a chat (MCP Apps): a host shows this page in a frame, and both speak JSON-RPC.
"use strict";

(() => {
  const MARKUP = "slurm-agent-tools/view";
  const SLOWEST = 60000;
  const TAGS = new Set(
    ("caption code dd div dl dt figure figcaption h2 h3 li meter p pre progress section span strong table tbody td th" +
      " thead time tr ul svg g line path rect text title").split(" "),
  );
  const ATTRIBUTES = new Set(
    ("aria-label class colspan d datetime fill font-family font-size font-weight height high id max min role scope" +
      " stroke tabindex text-anchor value viewBox width x x1 x2 y y1 y2").split(" "),
  );
  const COLOURS = {
    "--color-background-primary": "--ground",
    "--color-background-secondary": "--raised",
    "--color-border-primary": "--line",
    "--color-text-primary": "--text",
    "--color-text-secondary": "--quiet",
  };

  // The one policy that may make markup of text, which is then only read. After it nothing else of this page may, and
  // no script but this one runs: not from markup, not from an attribute. A host's own policy allows inline scripts.
  const reader = window.trustedTypes?.createPolicy("slurm-agent-tools", { createHTML: (text) => text });
  const wall = document.createElement("meta");
  wall.httpEquiv = "Content-Security-Policy";
  wall.content =
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; trusted-types 'none';" +
    " require-trusted-types-for 'script'";
  document.head.append(wall);

  const main = document.querySelector("main");
  const shown = document.getElementById("shown");
  const said = document.getElementById("said");
  const again = document.getElementById("again");
  const every = 1000 * Number(main.dataset.every);
  const more = JSON.parse(main.dataset.more);
  const over = main.dataset.over.split(" ");

  let given = null; // the arguments of the call whose answer this is
  let asks = false; // whether the host lets a view call tools
  let busy = false;
  let wants = false; // whether the view has to ask for what it can draw
  let ended = false;
  let inSight = true;
  let last = "";
  let pause = every;
  let timer = 0;

  // --- What the host and this page say to each other ---------------------------------------------------------------

  const waiting = new Map();
  let number = 0;

  function send(body) {
    parent.postMessage({ jsonrpc: "2.0", ...body }, "*");
  }

  function ask(method, params) {
    return new Promise((resolve, reject) => {
      number += 1;
      waiting.set(number, { resolve, reject });
      send({ id: number, method, params });
    });
  }

  const told = {
    "ui/notifications/tool-input": ({ arguments: words }) => {
      given = words ?? {};
      follow();
    },
    "ui/notifications/tool-result": (result) => {
      show(result);
      follow();
    },
    "ui/notifications/tool-cancelled": () => say("The call was cancelled."),
    "ui/notifications/host-context-changed": dress,
  };

  addEventListener("message", ({ source, data }) => {
    if (source !== parent || data?.jsonrpc !== "2.0") return;
    if (data.method === undefined) {
      const asked = waiting.get(data.id);
      waiting.delete(data.id);
      if (data.error) asked?.reject(new Error(data.error.message));
      else asked?.resolve(data.result);
    } else if (data.id === undefined) {
      told[data.method]?.(data.params ?? {});
    } else if (data.method === "ping" || data.method === "ui/resource-teardown") {
      ended ||= data.method !== "ping";
      follow();
      send({ id: data.id, result: {} });
    } else {
      send({ id: data.id, error: { code: -32601, message: "unknown method" } });
    }
  });

  // --- What is seen --------------------------------------------------------------------------------------------------

  function say(text) {
    if (said.textContent !== text) said.textContent = text;
  }

  function dress({ theme, styles }) {
    const root = document.documentElement.style;
    if (theme === "light" || theme === "dark") root.colorScheme = theme;
    const colours = Object.entries(COLOURS).map(([theirs, ours]) => [ours, styles?.variables?.[theirs]]);
    if (colours.some(([, value]) => typeof value !== "string")) return; // some beside ours might not be read
    for (const [name, value] of colours) root.setProperty(name, value);
  }

  // Elements and attributes of the lists, one by one; of all else only the text. Links lead nowhere from a chat.
  function copied(node) {
    if (node.nodeType === Node.TEXT_NODE) return [document.createTextNode(node.data)];
    if (node.nodeType !== Node.ELEMENT_NODE) return [];
    const inner = [...node.childNodes].flatMap(copied);
    if (!TAGS.has(node.localName)) return inner;
    const made = document.createElementNS(node.namespaceURI, node.localName);
    for (const { name, value } of node.attributes) if (ATTRIBUTES.has(name)) made.setAttribute(name, value);
    made.append(...inner);
    return [made];
  }

  function draw(markup) {
    const boxes = [...shown.querySelectorAll(".scroll, .paper")].map((box) => [box.scrollLeft, box.scrollTop]);
    const parsed = new DOMParser().parseFromString(reader ? reader.createHTML(markup) : markup, "text/html");
    shown.replaceChildren(...[...parsed.body.childNodes].flatMap(copied));
    shown.querySelectorAll(".scroll, .paper").forEach((box, place) => {
      if (boxes[place]) [box.scrollLeft, box.scrollTop] = boxes[place];
    });
  }

  function lines(result) {
    const text = document.createElement("pre");
    text.textContent = (result.content ?? []).map((part) => part.text ?? "").join("\n");
    shown.replaceChildren(text);
  }

  // `own`: the view asked itself. An answer without markup (the host did not say that it shows views) stands as text,
  // and the view asks for it once.
  function show(result, own = false) {
    const markup = result._meta?.[MARKUP];
    wants = false;
    ended = over.includes(result.structuredContent?.status);
    if (typeof markup === "string") {
      pause = markup === last ? Math.min(SLOWEST, pause * 1.5) : every;
      if (markup !== last) draw(markup);
      last = markup;
    } else {
      if (result.isError || last === "") lines(result);
      if (result.isError) last = "";
      wants = !own && !result.isError && last === "";
      pause = wants ? 0 : SLOWEST;
    }
    say("");
  }

  // --- Looking again, while somebody can see it ----------------------------------------------------------------------

  async function look() {
    if (busy || given === null) return;
    busy = true;
    try {
      show(await ask("tools/call", { name: main.dataset.tool, arguments: { ...given, ...more } }), true);
    } catch {
      say("The server does not answer: what stands here is older.");
      pause = SLOWEST;
    }
    busy = false;
    follow();
  }

  function follow() {
    clearTimeout(timer);
    again.hidden = !asks || given === null;
    const due = wants || (every > 0 && !ended);
    if (!again.hidden && !busy && due && inSight && document.visibilityState === "visible") {
      timer = setTimeout(look, pause);
    }
  }

  again.addEventListener("click", look);
  document.addEventListener("visibilitychange", follow);
  new IntersectionObserver((entries) => {
    inSight = entries.at(-1).isIntersecting;
    follow();
  }).observe(main);
  new ResizeObserver(() => {
    const { width, height } = document.documentElement.getBoundingClientRect();
    send({ method: "ui/notifications/size-changed", params: { width: Math.ceil(width), height: Math.ceil(height) } });
  }).observe(document.documentElement);

  (async () => {
    const host = await ask("ui/initialize", {
      appInfo: { name: "slurm-agent-tools", version: "1" },
      appCapabilities: {},
      protocolVersion: "2026-01-26",
    });
    asks = Boolean(host.hostCapabilities?.serverTools);
    dress(host.hostContext ?? {});
    send({ method: "ui/notifications/initialized", params: {} });
    follow();
  })();
})();
