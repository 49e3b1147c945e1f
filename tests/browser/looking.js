// What one page holds that nobody should find there; see inspecting.py.
() => {
  const SLACK = 8;  // px; a preserved space at the end of a line hangs out
  const OURS = ".region, .strip, .decide, .dock, .head, .foot, .note, body > header";
  const invisible = new RegExp(
    "[\\p{Default_Ignorable_Code_Point}\\p{Cf}\\p{Cc}\\p{Co}\\p{Cs}\\p{Zl}\\p{Zp}"
    + "\\p{Noncharacter_Code_Point}\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000"
    + "\\u2800\\ufffc]", "u");
  const drawn = /[\n\t\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2]/;
  const unseen = new Set();
  const see = (text, where) => {
    for (const char of text)
      if (invisible.test(char) && !drawn.test(char))
        unseen.add(`U+${char.codePointAt(0).toString(16)} in ${where}`);
  };
  const elements = new Set();
  const allowed = new Set(["SPAN", "U", "MARK", "BDI"]);
  const odd = "img,iframe,object,embed,video,audio,picture,canvas,base,style,applet,"
    + "frame,template,math,image,isindex,keygen,portal,marquee,[srcdoc],[onclick]";
  for (const one of document.querySelectorAll(odd)) elements.add(one.tagName);
  for (const one of document.querySelectorAll("bdi *"))
    if (!allowed.has(one.tagName)) elements.add(`${one.tagName} in a text`);
  for (const one of document.querySelectorAll("*")) {
    for (const { name, value } of one.attributes) {
      if (name.startsWith("on")) elements.add(`${one.tagName} ${name}`);
      const acts = /^(data-)?hx-/.test(name) && name !== "hx-disable";
      if (acts && one.closest("[hx-disable]"))
        elements.add(`${one.tagName} ${name} within a text`);
      if (/^(src|href|action|formaction)$/.test(name)
          && new URL(value, location.href).origin !== location.origin)
        elements.add(`${one.tagName} ${name}=${value.slice(0, 60)}`);
      see(value, `${one.tagName} ${name}`);
    }
    if ("value" in one && typeof one.value === "string") see(one.value, one.tagName);
  }
  const walker = document.createTreeWalker(document, NodeFilter.SHOW_TEXT);
  const texts = [];
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (["SCRIPT", "STYLE"].includes(node.parentElement?.tagName)) continue;
    see(node.data, node.parentElement?.tagName || "document");
    texts.push(node.data);
  }
  // What may hold a word of ours only, and what must never be wider than it may be.
  const spoken = [...document.querySelectorAll(
      "h1, button, title, nav, summary.btn, caption, [role=status], [role=alert]")]
    .map((one) => {
      const ours = one.cloneNode(true);
      for (const quoted of ours.querySelectorAll(".chip")) quoted.remove();
      return ours.textContent;
    });
  for (const name of ["aria-label", "title", "alt", "placeholder", "href", "data-say",
                      "data-label", "download"])
    for (const one of document.querySelectorAll(`[${name}]`))
      spoken.push(one.getAttribute(name));
  const boxes = (selector) => [...document.querySelectorAll(selector)]
    .map((one) => [one, one.getBoundingClientRect()]).filter(([, box]) => box.height);
  const over = [];
  // The innermost of those that leave their place.
  const out = [...document.querySelectorAll("main *")].filter((one) =>
    one.getBoundingClientRect().right > innerWidth + 1
    && !one.closest(".patch, .side ol, .scroll"));
  const inner = out.filter((one) => !out.some((o) => o !== one && one.contains(o)));
  if (inner.length)
    over.push(`the page's edge: ${inner.length} x, ${inner[0].outerHTML.slice(0, 160)}`);
  for (const one of document.querySelectorAll("main, .region, .foreign, td, th, h1, dd"))
    if (one.scrollWidth > one.clientWidth + SLACK && one.clientWidth
        && getComputedStyle(one).overflowX === "visible"
        && getComputedStyle(one).display !== "inline")
      over.push(`the edge of ${one.outerHTML.slice(0, 200)}, `
        + `by ${one.scrollWidth - one.clientWidth} px`);
  const apart = (a, b) => a.left >= b.right - 1 || b.left >= a.right - 1
    || a.top >= b.bottom - 1 || b.top >= a.bottom - 1;
  const floats = (one) => ["sticky", "fixed"].includes(getComputedStyle(one).position);
  for (const [fenced, a] of boxes(".untrusted"))
    for (const [ours, b] of boxes(OURS))
      if (!ours.contains(fenced) && !floats(ours) && !apart(a, b))
        over.push(`${ours.dataset.testid || ours.className}`);
  // The end of a text is in sight however long it is.
  for (const one of document.querySelectorAll(".foreign")) {
    const inSight = one.cloneNode(true);
    for (const fold of inSight.querySelectorAll("details")) fold.remove();
    const end = one.textContent.replace(/\s+/g, "").slice(-6);
    if (!inSight.textContent.replace(/\s+/g, "").endsWith(end))
      over.push(`a fold, at its end ${end}`);
  }
  // Tokens that are not drawn although the text round them is.
  const blind = [...document.querySelectorAll(".ctl")].filter((one) => {
    const box = one.getBoundingClientRect();
    const drawn = one.parentElement.getBoundingClientRect();
    return drawn.height && drawn.width && !(box.height && box.width);
  }).map((one) => one.textContent.slice(0, 40));
  return {
    ran: window.ran, unseen: [...unseen], elements: [...elements], over, blind,
    text: texts.join(""), spoken,
  };
}
