/* Keys, clocks and focus. Each page works without them. */
"use strict";
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

  /* Live regions exist from the start. Two parts of one answer say a text once; later it
     is cleared, so that a repeat is heard. */
  const say = (text, urgent = false) => {
    const region = $(urgent ? "#sr-alert" : "#sr-status");
    if (!region || !text || region.textContent === text) return;
    region.textContent = text;
    setTimeout(() => { if (region.textContent === text) region.textContent = ""; }, 5000);
  };

  /* `data-key` names the usual key (reviews/people/shortcuts.py); a person's own is translated,
     and printed. */
  const root = document.documentElement;
  const { body } = document;
  const chosen = body.dataset.keys || "{}";
  const keysOn = chosen !== "off";
  const mine = keysOn ? JSON.parse(chosen) : {};
  const usual = Object.fromEntries(Object.entries(mine).map(([key, own]) => [own, key]));
  const meant = (key) => usual[key] || (key in mine ? "" : key);
  /* A field is whatever takes keys for itself; the ticks of rows are rows. */
  const TEXT = "input:not([type=radio],[type=checkbox]),textarea,select";
  const writes = (node) => node.closest(TEXT);
  const inField = (node) => node.closest(`${TEXT},input:not([data-row],.swap)`);
  const shown = (node) => node.getClientRects().length > 0 && !node.disabled;
  /* While one is open, only its own keys act. */
  const findPanel = () => $$(".panel,.asks,.halt").find(shown);
  const press = (key) => {
    const found = $$(`[data-key="${CSS.escape(key)}"]`, findPanel());
    const node = found.find(shown) || found.find((one) => one.tagName === "A");
    if (!node) return false;
    if (node.tagName === "A" && !node.hasAttribute("hx-get") && node.pathname !== location.pathname) depart();
    node.matches("input[type=search]") ? node.focus() : node.click();
    return true;
  };
  const step = (selector, by) => {
    const all = $$(selector).filter(shown);
    const at = all.indexOf(document.activeElement);
    const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1)];
    if (!next) return false;
    if (!next.matches("a,input")) next.tabIndex = -1;
    next.focus();
    return true;
  };
  const fold = () => {
    const all = $$("main details:not(.more)");
    const open = all.some((one) => !one.open);
    for (const one of all) one.open = open;
    return all.length > 0;
  };
  /* An open look follows. */
  const go = (by) => step("[data-row]", by) && (!$("#peek a") || acts.v() || true);
  const acts = {
    j: () => go(1),
    k: () => go(-1),
    o: () => document.activeElement.matches("[data-row]") && !document.activeElement.click(),
    Enter: () => document.activeElement === body && step("a[data-row]", 1) && !document.activeElement.click(),
    "[": () => step("main :is(h1,h2)", -1),
    "]": () => step("main :is(h1,h2)", 1),
    ".": fold,
    v: () => { const look = $("[data-peek]", document.activeElement.closest("tr") || body); return look && shown(look) && !look.click(); },
  };
  /* Of a layout without Latin letters, the key in the same place counts. */
  const PLACES = { BracketLeft: "[", BracketRight: "]", Period: ".", Slash: "/" };
  const read = ({ key, code }) => {
    const typed = key.length === 1 ? key.toLowerCase() : key;
    if (!/^[^\0-\x7f\p{Script=Latin}]$/u.test(typed) || usual[typed] || typed in mine) return typed;
    return PLACES[code] || code.replace(/^(Key|Digit)/, "").toLowerCase();
  };
  /* In a panel one digit chooses a preset. A digit that another character follows begins
     a text: the choice is taken back, and all that was typed goes into the note. */
  let digits = [];
  const typeInto = (panel, typed, name) => {
    const option = keysOn && /^[1-9]$/.test(name) && $$(`[data-key="${name}"]`, panel).find(shown);
    if (option && !digits.some(([, one]) => one.name === option.name)) {
      digits.push([name, option, $(`[name="${option.name}"]:checked`, panel)]);
      option.focus();
      option.click();
      return true;
    }
    const note = $("#id_reason", panel);
    if (!note || (typed === " " && !digits.length)) return false;
    for (const [, one, before] of digits) { one.checked = false; if (before) before.checked = true; }
    const text = digits.map(([digit]) => digit).join("") + typed;
    digits = [];
    note.focus();
    return append(note, text);
  };
  /* What is typed before its field has the focus goes on after the text that is there. */
  const append = (field, text) => {
    if (field.matches("textarea")) field.setSelectionRange(1e6, 1e6);
    const parted = field.matches("textarea") && /\S$/.test(field.value);
    return document.execCommand("insertText", false, `${parted ? " " : ""}${text}`);
  };
  const commit = (target) => {
    const button = $("[data-commit]", findPanel());
    /* A field of another form is not the panel's. */
    if (!button || !shown(button) || (writes(target) && target.form !== button.form)) return false;
    button.click();
    return true;
  };
  /* What is typed until the answer is there waits for it: a panel gets all of it, and
     where none is open, a single key acts. */
  let sent, waiting = [], leaving = 0, wrote, torn = false;
  const isWaiting = (target) => writes(target) ? sent && target.closest("#decide") : sent || Date.now() < leaving;
  const resume = () => {
    const [verb, keys] = [sent, waiting];
    sent = undefined;
    waiting = [];
    const panel = findPanel();
    if (!panel && keys.length === 1 && keys[0].key.length === 1) act(keys[0].name);
    if (verb !== "get" || !panel) return;
    replay(panel, keys);
    waiting.push(...keys);
  };
  const replay = (panel, keys) => {
    let begun = false;
    while (keys.length && !sent) {
      const { key, name } = keys.shift();
      const { activeElement } = document;
      if (key === "Enter") commit(activeElement);
      else if (key === "Escape") press(key);
      else if (writes(activeElement)) begun = begun ? document.execCommand("insertText", false, key) : append(activeElement, key);
      else begun = typeInto(panel, key, name);
    }
  };
  /* A key that leads to another page: its form gets what is typed on the way, and only a
     person who sees it confirms it. */
  const depart = () => { leaving = Date.now() + 30000; waiting = []; };
  addEventListener("pagehide", () => {
    const typed = waiting.filter(({ key }) => key.length === 1);
    if (leaving && !sent && typed.length) sessionStorage.setItem("early", JSON.stringify(typed));
  });
  const act = (name) => keysOn && (acts[name]?.() || press(name));
  let chord = 0;
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || event.keyCode === 229 || $("dialog[open]")) return;
    const { key, target, repeat } = event;
    const modified = event.ctrlKey || event.metaKey;
    const commits = key === "Enter" && modified;
    const plain = key.length === 1 && !modified && !event.altKey;
    const name = meant(read(event));
    if (!plain && !/^(Shift|Dead)$/.test(key)) digits = [];
    if (/^(Tab|Esc|Arrow)/.test(key)) torn = false;
    if ((commits || plain || key === "Escape") && isWaiting(target)) {
      event.preventDefault();
      if (!repeat) waiting.push({ key, name });
      return;
    }
    if (commits || key === "Escape") {
      if (!repeat && (commits ? commit(target) : press(key))) event.preventDefault();
      return;
    }
    if (modified || event.altKey || writes(target)) return;
    const panel = findPanel();
    if (panel || torn) {
      if (plain && !repeat && (torn || typeInto(panel, key, name))) event.preventDefault();
      return;
    }
    if (!keysOn || inField(target) || (event.shiftKey && key.toLowerCase() !== key.toUpperCase()) || (repeat && !/[jk[\]]/.test(name))) return;
    const second = Date.now() - chord < 1200;
    chord = name === "g" ? Date.now() : 0;
    if (second ? press(meant(`g ${read(event)}`)) : act(name)) event.preventDefault();
  });
  document.addEventListener("input", ({ target }) => { wrote = target; });
  document.addEventListener("pointerdown", () => { digits = []; torn = false; });
  addEventListener("beforeunload", () => { leaving = Math.max(leaving, Date.now() + 4000); });
  addEventListener("pageshow", () => { leaving = 0; sent = undefined; });
  /* A panel begins at its first field, a form that is unfolded too. On a telephone that
     would open the keyboard over what is to be read. */
  const slim = matchMedia("(max-width: 767px) and (pointer: coarse)");
  const enter = (place, within) => {
    const field = !slim.matches && within && $$(`${TEXT},input`, within).find((one) => shown(one) && !one.readOnly);
    const node = field?.type === "radio" ? $(`[name="${field.name}"]:checked`, within) || field : field || place;
    node?.focus();
    node?.matches("textarea") ? node.setSelectionRange(1e6, 1e6) : node?.select?.();
  };
  document.addEventListener("toggle", ({ target }) => {
    if (target.open && document.activeElement === $("summary", target)) enter(document.activeElement, target);
  }, true);
  const hints = (within) => {
    for (const node of $$("[data-key]", within)) {
      const own = mine[node.dataset.key];
      const hint = own && ($("kbd", node) || (node.nextElementSibling?.matches("kbd") && node.nextElementSibling));
      if (hint) hint.textContent = own.slice(-1).toUpperCase();
    }
  };

  /* Clocks: the server's time plus what has passed here. Only the server decides. */
  let offset = 0;
  const sync = (root) => {
    const node = root.matches?.("[data-now]") ? root : $("[data-now]", root);
    if (node) offset = Date.parse(node.dataset.now) - Date.now();
  };
  const words = (ms) => {
    const s = Math.max(0, Math.ceil(ms / 1000));
    if (root.dataset.timers && s < 86400) {
      const two = (n) => String(n % 60).padStart(2, "0");
      return `${s < 3600 ? "" : `${Math.floor(s / 3600)}:`}${two(Math.floor(s / 60))}:${two(s)}`;
    }
    if (s < 60) return `${s} s`;
    const m = Math.floor(s / 60);
    if (m < 120) return `${m} min`;
    const h = Math.floor(m / 60);
    return h < 48 ? `${h} h` : `${Math.floor(h / 24)} days`;
  };
  const warnings = [[300, "Five minutes left."], [60, "One minute left."], [20, "20 seconds left.", true], [0, "The deadline has passed.", true]];
  const last = new Map();
  const tick = () => {
    for (const node of $$("[data-until]")) {
      const ms = Date.parse(node.dataset.until) - Date.now() - offset;
      const text = (node.dataset.words || "{} left").replace("{}", words(ms));
      if (node.textContent !== text) node.textContent = text;
      if (ms <= 0 && !node.dataset.over) {
        node.dataset.over = "1";
        const live = $("#live");
        if (live && window.htmx) window.htmx.trigger(live, "look");
      }
      if (!("warn" in node.dataset)) continue;
      const before = last.get(node.dataset.until) ?? ms;
      for (const [seconds, note, urgent] of warnings)
        if (before > seconds * 1000 && ms <= seconds * 1000) say(seconds && $("#extend") && !findPanel() ? `${note} ${$("#extend kbd").textContent}, then Ctrl+Enter, extends it.` : note, urgent);
      last.set(node.dataset.until, ms);
    }
    for (const node of $$("[data-since]")) {
      const text = `${words(Date.now() + offset - Date.parse(node.dataset.since))} old`;
      if (node.textContent !== text) node.textContent = text;
    }
  };
  sync(document);
  tick();
  setInterval(tick, 1000);
  addEventListener("beforeprint", () => {
    const now = new Date(Date.now() + offset).toISOString();
    for (const node of $$("[data-printed]")) node.textContent = ` · printed ${now.slice(0, 10)} ${now.slice(11, 19)} UTC`;
  });

  for (const node of $$("[data-zone]")) node.value = Intl.DateTimeFormat().resolvedOptions().timeZone;

  /* A typed note outlives every swap, for the panel that it was typed into. */
  const notes = new Map();
  const panelOf = (root) => ["verdict", "panel", "round"].map((name) => $(`[name=${name}]`, root)?.value || "").join(" ");
  const keepNote = () => {
    const decide = $("#decide"), field = decide && $("textarea[name=reason]", decide), kept = $("#kept");
    if (field && !field.value) field.value = notes.get(panelOf(decide))?.text || "";
    const { text, panel } = [...notes.values()].pop() || {};
    if (!kept || !text) return;
    kept.hidden = false;
    kept.open = true;
    $("textarea", kept).value = text;
    $("[data-typed-for]", kept).textContent = `You typed this text for “${panel}”.`;
  };
  document.addEventListener("input", ({ target }) => {
    const decide = target.matches("textarea[name=reason]") && target.closest("#decide");
    if (!decide) return;
    notes.delete(panelOf(decide));
    notes.set(panelOf(decide), { text: target.value, panel: $("#panel")?.textContent.trim() });
  });

  /* Modify: mark what differs from the proposal, and count it on the button. Whoever
     writes into what was left out means it to be given. */
  const changed = (field) => {
    const differs = $$("[data-was]", field).some((control) => control.value !== control.dataset.was);
    field.classList.toggle("field-changed", differs);
    const was = $(".was", field);
    if (was) was.hidden = !differs;
    const n = $$("#fields .field-changed").length;
    for (const node of $$("[data-count]")) node.textContent = n ? `Approve with my ${n} ${n === 1 ? "change" : "changes"}` : "Approve with my changes";
  };
  document.addEventListener("input", ({ target }) => {
    const field = target.closest("[data-edits]");
    if (!field) return;
    const is = $(".is", field);
    if (is && target !== is && is.dataset.was !== "given") is.value = target.value ? "given" : is.dataset.was;
    changed(field);
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-revert]");
    if (!button) return;
    event.preventDefault();
    event.stopPropagation();
    const controls = $$("[data-was]", button.closest("[data-edits]"));
    for (const control of controls) control.value = control.dataset.was;
    controls[0].dispatchEvent(new Event("input", { bubbles: true }));
    controls[0].focus();
  }, true);
  const prepare = (root) => {
    $$("[data-edits]", root).forEach(changed);
    for (const error of $$("[data-for]", root)) document.getElementById(error.dataset.for)?.setAttribute("aria-invalid", String(!error.hidden));
    keepNote();
    hints(root);
    /* To set what is there already would make the browser style all of the page again. */
    const peeked = $("#peek a")?.href;
    for (const row of $$(".beside [data-row]")) {
      const current = String(row.href === peeked);
      if ((row.ariaCurrent || "false") !== current) row.ariaCurrent = current;
    }
    for (const gone of $$("[data-gone]")) {
      const row = $(`tr[data-request="${gone.dataset.gone}"]`);
      if (row) { row.className = "row-gone"; row.cells[3].textContent = gone.textContent; }
    }
    tick();
  };
  prepare(document);

  /* What went wrong: said above the content. */
  const trouble = (text, link) => {
    const box = $("#trouble");
    if (!box) return;
    if (!box.hidden && box.dataset.text === text) return;
    box.dataset.text = text;
    $("p", box).textContent = text;
    const anchor = $("a", box);
    anchor.hidden = !link;
    if (link) anchor.href = link;
    box.hidden = false;
    say(text, true);
  };
  const clear = () => $("#trouble")?.toggleAttribute("hidden", true);
  const on = (name, handler) => body.addEventListener(`htmx:${name}`, handler);
  on("beforeRequest", (event) => {
    const { elt, requestConfig } = event.detail;
    if (!elt.hasAttribute("data-poll")) return;
    /* A hidden page asks nothing, and one that is told asks only when it is told to, or
       while the answer to its last look is missing. */
    if (document.hidden || (streaming && !elt.unanswered && requestConfig.triggeringEvent?.type !== "look")) event.preventDefault();
  });
  on("afterRequest", ({ detail: { elt, xhr } }) => { elt.unanswered = xhr.status < 200 || xhr.status > 499; });
  on("sendError", () => $("#trouble")?.hidden && trouble(`Not connected since ${new Date().toISOString().slice(11, 19)} UTC. Nothing will be sent.`));
  on("timeout", () => trouble("No answer yet. Reload to see whether it was recorded."));
  on("beforeSwap", (event) => {
    const { xhr } = event.detail;
    /* A whole page where a fragment belongs: signed out, or an error. */
    if (!/^\s*<!doctype/i.test(xhr.responseText)) { clear(); return; }
    event.detail.shouldSwap = false;
    sent = undefined;
    if (/^\w+:..[^/]+.sign-in/.test(xhr.responseURL)) trouble("You are signed out. Nothing will be sent.", signIn());
    else trouble(xhr.status >= 500 ? "The server failed. Reload to see whether it was recorded." : "This failed. Reload the page.");
  });
  on("afterSettle", (event) => {
    const { elt, requestConfig, target } = event.detail;
    sync(elt);
    prepare(document);
    if (target?.id === "help") target.parentNode.showModal();
    refocus();
    listen();
    /* Polls never move the focus; what a person asked for does. */
    const asked = requestConfig?.triggeringEvent && !requestConfig.elt?.matches("[data-poll],.forms form");
    const into = (!beside.has(elt.id) && elt.dataset?.focus) || (target?.isConnected ? target.dataset.focus : "");
    const place = asked && into && $(into);
    if (place && !isChosen()) enter(place, into === "#panel" && findPanel());
    else if (requestConfig?.elt?.matches(".forms form") && document.activeElement === body) $("#live")?.focus();
    if (asked && isDecision(requestConfig) && findVerb(requestConfig) === sent) resume();
  });
  /* Not the preview of an edit, which is answered while the decision is on its way. */
  const isDecision = ({ target, triggeringEvent }) => target?.id === "decide" && /submit|click/.test(triggeringEvent?.type);
  /* A batch opens its panels with the form that commits it. */
  const findVerb = ({ verb, triggeringEvent }) => /^(arm|select)/.test(triggeringEvent.submitter?.value) ? "get" : verb;
  on("confirm", ({ detail }) => { if (!isDecision(detail)) return; if (!sent) waiting = []; sent = findVerb(detail); });
  for (const name of ["sendError", "sendAbort", "timeout", "swapError"]) on(name, ({ detail }) => { if (isDecision(detail.requestConfig)) sent = undefined; });
  /* An answer that leads to another page: the undo comes first. */
  on("beforeOnLoad", (event) => {
    const { elt, xhr } = event.detail;
    const to = sent === "post" && xhr.getResponseHeader("HX-Redirect");
    if (!to || waiting.length !== 1 || waiting[0].name !== "z") return;
    sessionStorage.setItem("undo", "1");
    event.preventDefault();
    location.href = elt.matches("form.decide") ? new URL(".", new URL("..", elt.action)) : to;
  });
  addEventListener("load", () => {
    if (!sessionStorage.getItem("undo")) return;
    sessionStorage.removeItem("undo");
    press("z");
  });
  const announce = (node) => {
    if (node?.dataset?.say) say(node.dataset.say, "urgent" in node.dataset);
  };
  /* A field that a person goes to before the answer has settled keeps the focus: what
     they type there must not end up in another. */
  let landed;
  const isChosen = () => document.activeElement !== landed && writes(document.activeElement);
  on("afterSwap", (event) => { landed = document.activeElement; announce(event.detail.elt); });
  /* Where what had the focus goes away, the same place keeps it. What is swapped beside
     the target takes no focus. */
  const beside = new Set();
  on("beforeOnLoad", () => beside.clear());
  let within = "", writing = false;
  on("oobBeforeSwap", (event) => {
    const { target } = event.detail;
    const { activeElement } = document;
    beside.add(target?.id);
    if (target?.id && target.contains(activeElement)) { within = target.id; writing = activeElement.matches("textarea"); torn = wrote === activeElement; }
  });
  const refocus = () => {
    const home = within && document.getElementById(within);
    within = "";
    if (!home || document.activeElement !== body) return;
    const place = (writing && $("#kept:not([hidden]) textarea", home)) || (home.dataset.focus && $(home.dataset.focus));
    if (place) place.focus();
  };

  /* As seen: the page's own token goes with whatever is asked from it. On a small touch
     screen what is high waits until the change and the way back were scrolled by. */
  on("configRequest", ({ detail }) => {
    const seen = $("#seen");
    if (seen) detail.headers["X-Seen"] = seen.value;
    if (slim.matches && detail.elt.id === "decide") detail.parameters.narrow = "1";
  });
  const review = $(".review");
  /* Beside the text, why it is asked stands below the decision, in one rail. */
  const why = $(".review > .why");
  if (why) {
    const wide = matchMedia("(min-width: 1200px)");
    const place = document.createComment("");
    why.before(place);
    const seat = () => wide.matches ? $(".rail").append(why) : place.before(why);
    wide.addEventListener("change", seat);
    seat();
  }
  const opened = findPanel();
  const early = JSON.parse(sessionStorage.getItem("early") || "[]");
  sessionStorage.removeItem("early");
  if (opened && (!$("[autofocus]") || $("[autofocus]:is(h1,h2)"))) early.length ? enter(undefined, opened) || replay(opened, early) : requestAnimationFrame(() => enter(undefined, opened));
  else if (review && !$("[autofocus]")) $("#h1", review)?.focus({ preventScroll: true });
  if (review && "scroll" in review.dataset && slim.matches) {
    const left = new Set($$("#r2,#r3"));
    const watch = new IntersectionObserver((found) => {
      for (const { isIntersecting, target } of found) if (isIntersecting) left.delete(target);
      review.classList.toggle("unread", left.size > 0);
    }, { rootMargin: "9999999px 0px 0px" });
    left.forEach((node) => watch.observe(node));
    review.classList.add("unread");
  }

  on("oobAfterSwap", (event) => announce(event.detail.target?.id && document.getElementById(event.detail.target.id)));

  /* Live: one stream while this page is visible carries the numbers. When it fails, the
     polls go on. */
  let source, streaming = false, heard = 0, saidAt = 0, later, address;
  const bar = () => $("#fresh[hx-get]");
  const asks = (name) => new URL(bar().getAttribute("hx-get"), location.href).searchParams.get(name);
  /* An answer on its way may be older: look once it is there. */
  const look = (what) => setTimeout(() => { const node = $(what); if (node) $(".htmx-request") ? look(what) : window.htmx.trigger(node, "look"); }, Math.random() * 200);
  const shut = () => { clearTimeout(later); source?.close(); source = undefined; streaming = false; };
  const listen = () => {
    if (!body.dataset.events || document.hidden || document.readyState !== "complete") return;
    const query = new URLSearchParams($$("[data-request]").slice(0, 60).map((node) => ["about", node.dataset.request]));
    if (bar()) query.set("since", asks("since"));
    if (source && address === `${query}`) return;
    shut();
    address = `${query}`;
    source = new EventSource(`${body.dataset.events}?${query}`);
    source.onopen = () => { streaming = true; heard = Math.min(heard, 1); };
    source.onmessage = (event) => told(JSON.parse(event.data));
    source.addEventListener("access", () => probe(0));
    source.onerror = () => {
      streaming = false;
      if (source?.readyState === 2) probe(20000 * (1 + Math.random()));
    };
  };
  /* A stream that was refused or ended for good does not say why: ask. */
  const probe = async (wait) => {
    shut();
    const asking = new AbortController();
    const answer = await fetch(body.dataset.events, { signal: asking.signal }).catch(() => 0);
    asking.abort();
    if (answer.status === 401) trouble("You are signed out. Nothing will be sent.", signIn());
    else if (!source) later = setTimeout(listen, wait);
  };
  const capped = (n) => n > 99 ? "99+" : n || "";
  const print = (id, ...parts) => document.getElementById(id)?.replaceChildren(...parts);
  const told = ({ badges, changed, new: fresh }) => {
    const { queue, soon } = badges;
    const near = soon ? `, ${capped(soon)} expire within 10 minutes` : "";
    for (const [name, n] of Object.entries(badges)) {
      print(`badge-${name}`, capped(n));
      print(`badge-${name}-words`, n ? `, ${capped(n)} pending${name === "queue" ? near : ""}` : "");
    }
    const pie = document.createElement("span");
    pie.className = "pie pie-1";
    print("badge-queue-soon", ...(soon ? [pie, capped(soon)] : []));
    print("badge-narrow", capped(queue));
    $("#badge-narrow")?.setAttribute("aria-label", `Queue, ${capped(queue) || 0} pending${near}`);
    document.title = (queue ? `(${capped(queue)}) ` : "") + document.title.replace(/^\(\d+\+?\) /, "");
    if (bar() && fresh !== undefined) {
      const link = document.createElement("a");
      link.href = asks("back");
      link.textContent = `${capped(fresh)} new · show`;
      bar().replaceChildren(...(fresh ? [link] : []));
      if (fresh && Date.now() - saidAt > 30000) { say(`${capped(fresh)} new`); saidAt = Date.now(); }
    }
    /* What happened while nobody listened is looked up; so is what changed. */
    if (changed || heard === 1) look("#fresh[hx-get]");
    if (changed || heard < 2) look("#live");
    heard = 2;
  };
  document.addEventListener("visibilitychange", () => { document.hidden ? shut() : listen(); });
  addEventListener("pagehide", shut);
  addEventListener("pageshow", () => { claimed = 0; setTimeout(listen); });

  /* The hold: taken once a panel is open, renewed while somebody acts, given back on
     leaving. And drafts: kept on blur, and every 5 s while somebody types. */
  const post = (url, data) => fetch(url, { method: "POST", keepalive: true, headers: JSON.parse(body.getAttribute("hx-headers")), body: new URLSearchParams(data) })
    .then((answer) => { if (!answer.ok || answer.redirected) throw answer; });
  let stirred = 0, beaten = 0, warnedOf = "", typed = false, claimed;
  const beat = (mark) => {
    const form = $("#hold");
    form.elements.beat.value = mark;
    window.htmx?.trigger(form, "beat");
    form.elements.beat.value = "";
  };
  const claim = () => {
    const panel = $("form[data-draft]"), grip = $("#grip");
    if (!panel || !grip || document.hidden) return;
    const { hold } = grip.dataset, token = panel.elements.hold;
    if (hold && token) token.value = hold;
    if (!hold && panel !== claimed) { claimed = panel; beat(""); }
  };
  on("afterSettle", claim);
  for (const name of ["load", "visibilitychange"]) addEventListener(name, claim);
  for (const name of ["keydown", "pointerdown", "wheel"])
    addEventListener(name, () => { stirred = Date.now(); }, true);
  setInterval(() => {
    const { held } = $("#grip[data-held]")?.dataset || {};
    if (!held || document.hidden) return;
    const left = Date.parse(held) - Date.now() - offset;
    if (stirred > beaten && left < 240000) beat(1);
    else if (left > 0 && left < 60000 && warnedOf !== held) {
      warnedOf = held;
      say("Your claim ends in one minute. Any key extends it.");
    }
  }, 1000);
  on("configRequest", ({ detail: { elt, headers } }) => {
    if (elt.closest(".forms")) Object.assign(headers, JSON.parse($("#live").getAttribute("hx-headers") || "{}"));
  });
  on("beforeRequest", (event) => {
    if (event.detail.elt.id === "hold") document.hidden ? event.preventDefault() : beaten = Date.now();
    if (event.detail.elt.matches("form[data-draft]")) typed = false;
  });
  on("beforeOnLoad", ({ detail: { elt, xhr } }) => {
    if (!elt.dataset.draft || xhr.status >= 400) return;
    elt.elements.verdict ? notes.clear() : notes.delete(panelOf(elt));
  });
  const keepDraft = () => {
    const form = $("form[data-draft]");
    if (!typed || !form) return;
    typed = false;
    const data = new FormData(form);
    for (const name of ["password", "one_time_code", "passkey", "seen"]) data.delete(name);
    post(form.dataset.draft, data).then(clear, (answer) => { typed = true; notSaved(form, answer); });
  };
  document.addEventListener("input", (event) => { if (event.target.closest("form[data-draft]")) typed = true; });
  document.addEventListener("focusout", keepDraft);
  /* A part beside an answer takes the panel away, as another version does. */
  on("oobBeforeSwap", ({ detail: { target } }) => { if (target?.id === "decide") keepDraft(); });
  setInterval(keepDraft, 5000);
  addEventListener("pagehide", () => {
    keepDraft();
    const grip = $("#grip[data-held]");
    if (grip) post($("#release").action, { hold: grip.dataset.hold, leaving: 1 }).catch(() => {});
  });

  /* Text outlives the session: kept for the form's address and its person until it was
     taken, and forgotten at the sign-out. */
  const SIGN_OUT = "form[action$='/sign-out/']";
  const owner = $(`${SIGN_OUT} button`)?.textContent.trim();
  const keptAs = (form) => {
    const { pathname, search } = new URL(form.getAttribute("action") || location.href, location.href);
    return `typed ${owner} ${pathname}${search} ${panelOf(form)}`.trim();
  };
  /* An edit, and a written answer, are about one version. */
  const about = (form, { name }) => name + (/^(arg\.|written)/.test(name) ? ` ${form.elements.version?.value}` : "");
  const textsOf = (form) => [...form.elements].filter((one) => one.name && !one.readOnly && one.matches("textarea,input:not([type]),input[type=text]"));
  const keepTyped = (form) => sessionStorage.setItem(keptAs(form), JSON.stringify(textsOf(form).map((field) => [about(form, field), field.value])));
  const restoreTyped = () => {
    for (const form of $$("form[method=post]")) {
      const kept = owner && JSON.parse(sessionStorage.getItem(keptAs(form)));
      for (const [name, value] of kept || []) {
        const field = textsOf(form).find((one) => about(form, one) === name);
        if (!field || field.value === value || field.value !== field.defaultValue) continue;
        field.value = value;
        field.dispatchEvent(new Event("input", { bubbles: true }));
      }
    }
  };
  /* Where to go on after signing in: the panel that is open, too. */
  const here = () => {
    const { verdict, panel } = $("form[data-draft]")?.elements || {};
    const arm = (verdict || panel)?.value;
    return arm ? `${location.pathname.replace(/(decide\/)?$/, "decide/")}?arm=${arm}` : location.pathname + location.search;
  };
  const signIn = () => `/sign-in/?next=${encodeURIComponent(here())}`;
  const notSaved = (form, answer) => {
    if (!(answer instanceof Response)) return;
    keepTyped(form);
    if (answer.redirected || answer.status === 401 || answer.status === 403) trouble("Not saved: you are signed out, or signed in again. Your text is kept in this tab.", signIn());
    else trouble("Not saved. Your text is kept in this tab.");
  };
  document.addEventListener("submit", ({ target }) => {
    if (target.matches(SIGN_OUT)) for (const key of Object.keys(sessionStorage)) if (key.startsWith("typed ")) sessionStorage.removeItem(key);
    if (!owner || target.method !== "post" || target.matches(SIGN_OUT)) return;
    keepTyped(target);
    sessionStorage.setItem("sent", keptAs(target));
  }, true);
  on("beforeOnLoad", ({ detail: { elt, xhr } }) => {
    const form = elt.closest("form[method=post]");
    if (!form) return;
    sessionStorage.removeItem("sent");
    if (xhr.status < 400 && !xhr.responseURL.includes("/sign-in/")) sessionStorage.removeItem(keptAs(form));
    else keepTyped(form);
  });
  /* A form that led to a page was taken, unless that is the sign-in or an error. */
  const taken = sessionStorage.getItem("sent");
  if (taken) {
    sessionStorage.removeItem("sent");
    if (owner && !$("[data-testid=error]")) sessionStorage.removeItem(taken);
  }
  restoreTyped();
  on("afterSettle", restoreTyped);

  /* The search of every page: its hits below the field, walked with the arrows. */
  const seek = $("#find"), hits = $("#hits");
  document.addEventListener("keydown", (event) => {
    const { key, target } = event;
    if (key === "k" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && !writes(target) && !$("dialog[open]")) {
      event.preventDefault();
      press("/");
    }
    const place = target.closest?.(".find");
    if (!place || !/^(ArrowDown|ArrowUp|Escape)$/.test(key)) return;
    event.preventDefault();
    if (key === "Escape") { seek.focus(); hits.hidden = true; return; }
    const all = [seek, ...$$("a", hits).filter(shown)];
    all[(all.indexOf(target) + (key === "ArrowDown" ? 1 : all.length - 1)) % all.length].focus();
  });
  on("afterSwap", ({ detail: { target } }) => {
    if (target !== hits) return;
    hits.hidden = !seek.matches(":focus");
    const n = $$("a", hits).length;
    if (seek.value) say(`${n} result${n === 1 ? "" : "s"}`);
  });
  /* The person's own menu closes on Escape, and once a click or the focus is elsewhere. */
  const own = $(".me");
  const closeOwn = ({ target }) => { if (own && !own.contains(target)) own.open = false; };
  addEventListener("click", closeOwn);
  addEventListener("focusin", closeOwn);
  addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !own?.open) return;
    event.stopImmediatePropagation();
    own.open = false;
    $("summary", own).focus();
  }, true);
  seek?.addEventListener("focus", () => { hits.hidden = !hits.childElementCount; });
  seek?.closest(".find").addEventListener("focusout", ({ currentTarget, relatedTarget }) => { if (!currentTarget.contains(relatedTarget)) hits.hidden = true; });

  /* Next and previous go on in the queue as it was filtered last. */
  if ($("#queue-table")) sessionStorage.setItem("queue", location.search);
  const filters = $("#step [name=filters]");
  if (filters) filters.value = sessionStorage.getItem("queue") || "";
  /* A batch: Enter opens a row, Shift ticks up to the one before, and what was armed
     for another choice cannot be committed. */
  let ticked, newest = 0;
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.ctrlKey || event.metaKey || !event.target.matches(".tick")) return;
    event.preventDefault();
    const row = event.target.closest("tr");
    $("[data-open]", row).offsetParent ? $("[data-open]", row).click() : $("summary", row.nextElementSibling).click();
  });
  /* The newest press wins over an older one that had to wait, and over its answer. */
  on("beforeRequest", (event) => {
    const { elt, xhr, requestConfig } = event.detail;
    if (!elt.matches("#batch,.items")) return;
    xhr.at = requestConfig.triggeringEvent.timeStamp;
    xhr.at < newest ? event.preventDefault() : newest = xhr.at;
  });
  on("beforeSwap", ({ detail }) => { if (detail.xhr.at < newest) detail.shouldSwap = false; });
  /* At once: its button goes. */
  on("afterSwap", ({ detail: { target } }) => {
    if (!target?.matches(".items tr")) return;
    $("summary", target.nextElementSibling)?.focus();
    target.dispatchEvent(new Event("change", { bubbles: true }));
  });
  document.addEventListener("click", ({ target, shiftKey }) => {
    if (!target.matches(".tick")) return;
    const all = $$(".tick");
    const [from, to] = [all.indexOf(ticked), all.indexOf(target)].sort((a, b) => a - b);
    if (shiftKey && from >= 0) for (const one of all.slice(from, to)) one.checked = target.checked;
    ticked = target;
    const commit = $("[data-commit]");
    if (commit) commit.disabled = true;
  });
})();
