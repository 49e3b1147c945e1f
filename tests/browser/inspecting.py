"""What a real browser made of hostile text: whether anything of it ran, was fetched,
became an element, or cannot be seen. Independent of the code under test: the browser's
own Unicode tables say what is invisible."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Page

# Before any page: what the corpora call, and what the policy of the page had to stop.
_WATCH = """
window.ran = [];
window.xqz = () => { window.ran.push("xqz"); };
document.addEventListener("securitypolicyviolation", (event) => {
  window.ran.push(`${event.violatedDirective} ${event.blockedURI}`);
});
"""
_LOOK = r"""
() => {
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
  const boxes = (selector) => [...document.querySelectorAll(selector)]
    .map((one) => [one, one.getBoundingClientRect()]).filter(([, box]) => box.height);
  const over = [];
  const apart = (a, b) => a.left >= b.right - 1 || b.left >= a.right - 1
    || a.top >= b.bottom - 1 || b.top >= a.bottom - 1;
  const floats = (one) => ["sticky", "fixed"].includes(getComputedStyle(one).position);
  for (const [fenced, a] of boxes(".untrusted"))
    for (const [ours, b] of boxes(".region, .strip, .decide"))
      if (!ours.contains(fenced) && !floats(ours) && !apart(a, b))
        over.push(`${ours.dataset.testid || ours.className}`);
  const spoken = [...document.querySelectorAll("h1, button, title, nav, summary.btn")]
    .map((one) => one.textContent);
  return {
    ran: window.ran, unseen: [...unseen], elements: [...elements], over,
    text: texts.join(""), spoken,
    height: document.documentElement.scrollHeight / innerHeight,
  };
}
"""


@dataclass
class Found:
    """What was seen over many pages, to be counted at the end."""

    pages: int = 0
    ran: list[str] = field(default_factory=list)
    fetched: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    elements: list[str] = field(default_factory=list)
    over: list[str] = field(default_factory=list)

    @property
    def nothing(self) -> bool:
        return not (
            self.ran or self.fetched or self.unseen or self.elements or self.over
        )


class Inspector:
    """One browser page through which every hostile page is looked at."""

    def __init__(self, page: Page, base: str) -> None:
        self.page = page
        self.base = base
        self.found = Found()
        page.add_init_script(_WATCH)
        page.on("dialog", self._dialog)
        page.on("request", self._request)

    def look(self, path: str) -> dict[str, Any]:
        """Open a page and add what is wrong with it to what was found."""
        answer = self.page.goto(self.base + path)
        assert answer is not None
        assert answer.status == 200, (path, answer.status)
        return self.look_here(path)

    def look_here(self, name: str) -> dict[str, Any]:
        """The same of the page that is open."""
        self.page.evaluate(
            "for (const d of document.querySelectorAll('details')) d.open = 1"
        )
        seen: dict[str, Any] = self.page.evaluate(_LOOK)
        found = self.found
        found.pages += 1
        found.ran += [f"{name}: {one}" for one in seen["ran"]]
        found.unseen += [f"{name}: {one}" for one in seen["unseen"]]
        found.elements += [f"{name}: {one}" for one in seen["elements"]]
        found.over += [f"{name}: {one}" for one in seen["over"]]
        return seen

    def _dialog(self, dialog: Any) -> None:
        self.found.ran.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self.base, "data:", "about:")):
            self.found.fetched.append(request.url)
