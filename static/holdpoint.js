/* The desk's keys, clocks and focus. Everything here is a convenience: each page works
   without it. Nothing decides here; a key arms or presses a button that is on the page. */
"use strict";
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const store = {
    get: (name) => { try { return localStorage.getItem(name); } catch { return null; } },
    set: (name, value) => { try { localStorage.setItem(name, value); } catch { /* private mode */ } },
  };

  /* Live regions exist from the start; a text is cleared so that a repeat is heard. */
  const say = (text, urgent = false) => {
    const region = $(urgent ? "#sr-alert" : "#sr-status");
    if (!region || !text) return;
    region.textContent = text;
    setTimeout(() => { if (region.textContent === text) region.textContent = ""; }, 5000);
  };

  /* Keys: the registry is the page itself, `data-key` on what a key presses. */
  const typing = (node) => node.closest("input:not([type=radio],[type=checkbox],[type=submit]),textarea:not([readonly]),select,[contenteditable]");
  const keysOn = () => store.get("holdpoint.keys") !== "off";
  const shown = (node) => node.getClientRects().length > 0 && !node.disabled;
  const press = (key) => {
    const found = $$(`[data-key="${CSS.escape(key)}"]`);
    const node = found.find(shown) || found.find((one) => one.tagName === "A");
    if (!node) return false;
    node.matches("input[type=search]") ? node.focus() : node.click();
    return true;
  };
  const move = (step) => {
    const rows = $$("[data-row]");
    const at = rows.indexOf(document.activeElement);
    const next = rows[at < 0 ? 0 : Math.min(Math.max(at + step, 0), rows.length - 1)];
    if (next) next.focus();
    return Boolean(next);
  };
  let chord = 0;
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    const { key, target } = event;
    if (key === "Enter" && (event.ctrlKey || event.metaKey)) {
      const commit = $("[data-commit]");
      if (commit && shown(commit)) { event.preventDefault(); commit.click(); }
      return;
    }
    if (key === "Escape" && press("Escape")) { event.preventDefault(); return; }
    if (event.ctrlKey || event.metaKey || event.altKey || typing(target) || !keysOn()) return;
    const name = key.length === 1 ? key.toLowerCase() : key;
    const second = Date.now() - chord < 1200;
    chord = name === "g" ? Date.now() : 0;
    const done = (second && press(`g ${name}`)) || (name === "j" && move(1)) || (name === "k" && move(-1)) || press(name);
    if (done) event.preventDefault();
  });
  const toggle = $("[data-keys]");
  if (toggle) {
    const print = () => { toggle.textContent = `Single-key shortcuts: ${keysOn() ? "on" : "off"}`; };
    toggle.hidden = false;
    toggle.addEventListener("click", () => { store.set("holdpoint.keys", keysOn() ? "off" : "on"); print(); });
    print();
  }

  /* Clocks: the server's time plus what has passed here. Only the server decides. */
  let offset = 0;
  const sync = (root) => {
    const node = root.matches?.("[data-now]") ? root : $("[data-now]", root);
    if (node) offset = Date.parse(node.dataset.now) - Date.now();
  };
  const words = (ms) => {
    const s = Math.max(0, Math.ceil(ms / 1000));
    if (s < 60) return `${s} s`;
    const m = Math.floor(s / 60);
    if (m < 120) return `${m} min`;
    const h = Math.floor(m / 60);
    return h < 48 ? `${h} h` : `${Math.floor(h / 24)} days`;
  };
  const warnings = [[300, "Five minutes left."], [60, "One minute left."], [20, "20 seconds left.", true], [0, "Time is up. Nothing was executed.", true]];
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
      if (!node.dataset.warn) continue;
      const before = last.get(node.dataset.until) ?? ms;
      for (const [seconds, note, urgent] of warnings)
        if (before > seconds * 1000 && ms <= seconds * 1000) say(note, urgent);
      last.set(node.dataset.until, ms);
    }
  };
  sync(document);
  tick();
  setInterval(tick, 1000);

  /* A note that was typed outlives every swap of the panel, on this page only. */
  let note = "";
  const keepNote = (root) => {
    const field = $("textarea[name=reason]", root);
    if (field && !field.value && note) field.value = note;
    const kept = $("#kept", root);
    if (kept && note) { kept.hidden = false; $("textarea", kept).value = note; }
  };
  document.addEventListener("input", (event) => {
    if (event.target.matches("#decide textarea[name=reason]")) note = event.target.value;
  });

  /* Modify: mark what differs from the proposal, and count it on the button. Whoever
     writes into what was left out means it to be given. */
  const changed = (field) => {
    const differs = $$("[data-was]", field).some((control) => control.value !== control.dataset.was);
    field.classList.toggle("field-changed", differs);
    const was = $(".was", field);
    if (was) was.hidden = !differs;
    const label = $("[data-count]");
    if (!label) return;
    const n = $$("#fields .field-changed").length;
    label.textContent = n ? `Approve with my ${n} ${n === 1 ? "change" : "changes"}` : "Approve with my changes";
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
    keepNote(root);
    tick();
  };
  prepare(document);

  /* What went wrong on the way: said in one place, above the content. */
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
  const clear = () => { const box = $("#trouble"); if (box) box.hidden = true; };
  const body = document.body;
  const on = (name, handler) => body.addEventListener(`htmx:${name}`, handler);
  on("beforeRequest", (event) => {
    if (document.hidden && event.detail.elt.hasAttribute("data-poll")) event.preventDefault();
  });
  on("sendError", () => trouble("Not connected. Nothing you press is sent."));
  on("timeout", () => trouble("No answer yet. Reload this page to see whether it was recorded."));
  on("beforeSwap", (event) => {
    const { xhr } = event.detail;
    /* A whole page where a fragment belongs: signed out, or a failure on our side. */
    if (!/^\s*<!doctype/i.test(xhr.responseText)) { clear(); return; }
    event.detail.shouldSwap = false;
    const signIn = new URL(xhr.responseURL || location.href, location.href).pathname.startsWith("/sign-in");
    if (signIn) trouble("You are signed out. Nothing you press is sent.", `/sign-in/?next=${encodeURIComponent(location.pathname)}`);
    else trouble(xhr.status >= 500 ? "Something failed on our side. Reload to see whether it was recorded." : "This did not work. Reload the page.");
  });
  on("afterSettle", (event) => {
    const { elt, requestConfig, target } = event.detail;
    sync(elt);
    prepare(document);
    refocus();
    /* Polls never move the focus; what a person asked for does. */
    const asked = requestConfig?.triggeringEvent && !requestConfig.elt?.hasAttribute("data-poll");
    const into = elt.dataset?.focus || (target?.isConnected ? target.dataset.focus : "");
    const place = asked && into && $(into);
    if (place) place.focus();
  });
  const announce = (node) => {
    if (node?.dataset?.say) say(node.dataset.say, "urgent" in node.dataset);
  };
  on("afterSwap", (event) => announce(event.detail.elt));
  /* What had the focus may go away under it: then the same place keeps it. */
  let within = "";
  on("oobBeforeSwap", (event) => {
    const { target } = event.detail;
    if (target?.id && target.contains(document.activeElement)) within = target.id;
  });
  const refocus = () => {
    const home = within && document.getElementById(within);
    within = "";
    if (!home || document.activeElement !== body) return;
    const place = $("#kept:not([hidden]) textarea", home) || (home.dataset.focus && $(home.dataset.focus));
    if (place) place.focus();
  };
  on("oobAfterSwap", (event) => announce(event.detail.target?.id && document.getElementById(event.detail.target.id)));
})();
