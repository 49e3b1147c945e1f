"""What a page says in our own words, and what it says in an agent's; and the same page
of another request without what is another's on every one."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import Page

# Signs say what the words further down try, so they differ with the words.
_UNSIGN = r"""
  const unsign = (one) => {
    const signs = ".sign, [aria-label=Warnings] > li";
    for (const sign of one.querySelectorAll(signs)) {
      const list = sign.parentElement;
      sign.remove();
      if (!list.children.length) list.remove();
    }
    return one;
  };
"""
# The regions that are ours: what happens, what changes, what if, why asked.
_FACTS = rf"""
() => {{ {_UNSIGN}
  const ours = "[aria-labelledby=h1], [data-testid=diff], [data-testid=reversal],"
    + " [data-testid=why-asked]";
  const all = [...document.querySelectorAll(ours)];
  const found = all.map((one) => unsign(one.cloneNode(true)));
  const signs = [...document.querySelectorAll(".sign")];
  return {{
    signs: signs.map((one) => one.textContent),
    html: found.map((one) => one.outerHTML).join("\n"),
    text: found.map((one) => one.textContent).join("\n"),
    marked: found.flatMap((one) => [...one.querySelectorAll(".ctl, .mixed, .tag-loud")])
      .map((one) => one.textContent),
    loud: [...document.querySelectorAll(".tag-loud")].map((one) => one.textContent),
  }};
}}
"""
# Every fenced text: under which heading, what stands in sight, and how it is marked.
_FENCED = r"""
() => [...document.querySelectorAll(".untrusted .foreign")].map((one) => {
  const inSight = one.cloneNode(true);
  for (const fold of inSight.querySelectorAll("details")) fold.remove();
  for (const sign of inSight.querySelectorAll(".ctl"))
    if (sign.textContent === "line continues") sign.remove();
  const before = one.previousElementSibling;
  return {
    heading: before?.tagName === "DT" ? before.textContent : "",
    item: one.closest("details.item")?.querySelector("summary").textContent || "",
    text: one.textContent, inSight: inSight.textContent,
    speaks: one.textContent.includes("Addressed to the reviewer"),
    tokens: one.querySelectorAll(".ctl").length,
  };
})
"""
# All that is selected, without what is fenced, what is asked for again and again, and
# what says of the fenced words that they speak to the reviewer.
_OURS = rf"""
(selector) => {{ {_UNSIGN}
  const found = [...document.querySelectorAll(selector)].map((one) => {{
    const ours = unsign(one.cloneNode(true));
    for (const other of ours.querySelectorAll(".untrusted, .news")) other.remove();
    return ours.outerHTML;
  }});
  return found.join("\n");
}}
"""
# Ids, digests, marks of a form, times, and what a clock says.
_CHANGING = re.compile(
    r" htmx-[a-z]+|(?<=value=\")[^\"]*|(?<=/log/)(?:new/)?\d+|(?<=class=\"hash\">)\d+"
    r"|as-seen/\d+"
    r"|\b[a-z]-[0-9a-hjkmnp-tv-z]{20}\b|sha256:\w+|\b[0-9a-f]{4}-[0-9a-f]{4}\b"
    r"|\d\d:\d\d(:\d\d)?|\d{4}-\d\d-\d\dT[\d:.+]+|pie-\d|\b\d+ (?:s|min|h|days)\b"
)


def settled(html: str) -> str:
    """The same of any request that asks for the same."""
    return _CHANGING.sub("~", html)


def facts(page: Page) -> dict[str, Any]:
    """What this page says of the effect, as markup and text, and what it calls out."""
    found: dict[str, Any] = page.evaluate(_FACTS)
    found["html"] = settled(found["html"])
    return found


def fenced(page: Page) -> list[dict[str, Any]]:
    """Every text of an agent on this page."""
    found: list[dict[str, Any]] = page.evaluate(_FENCED)
    return found


def ours(page: Page, selector: str) -> str:
    """What is ours within the elements selected, as markup."""
    found: str = page.evaluate(_OURS, selector)
    assert found, selector
    return settled(found)
