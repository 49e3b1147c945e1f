"""The queue's filters: tab, filters, order and length. Their whole state is in the
URL."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.urls import reverse

from policies.choices import Risk

PAGE_SIZE = 50
MOST_ROWS = 200
TABS = {
    "mine": "Mine",
    "open": "Open",
    "waiting": "Waiting on others",
    "done": "Resolved",
}
SORTS = {
    "left": "time left",
    "newest": "newest",
    "oldest": "oldest",
    "largest": "largest amount",
    "smallest": "smallest amount",
}
# Requests of one band take about equally long to decide, so the least time left is
# also the least slack.
ORDER_SENTENCES = {
    "left": "Critical, then High, then the rest; least time left first within each.",
    "newest": "Newest first.",
    "oldest": "Oldest first.",
    "largest": "Largest amount first within each currency; without an amount last.",
    "smallest": "Smallest amount first within each currency; without an amount last.",
}
DONE_SENTENCE = (
    "Requests that you decided or that expired in the last 7 days, newest first."
)
MAX_LENGTHS = {"q": 128, "tool": 64, "agent": 64}


@dataclass(frozen=True, slots=True)
class QueueFilters:
    """One view of the queue."""

    tab: str = "open"
    risk: str = ""
    tool: str = ""
    agent: str = ""
    q: str = ""
    same: str = ""  # a repeat key: list each of the identical proposals
    sort: str = "left"
    show: int = PAGE_SIZE

    @classmethod
    def read(cls, query: Mapping[str, str]) -> QueueFilters:
        """Parse the URL's query. An invalid value is ignored and never causes an
        error."""
        allowed = {"tab": TABS, "risk": [r.value for r in Risk], "sort": SORTS}
        typed = {
            name: query[name].strip().replace("\0", "")[: MAX_LENGTHS.get(name, 40)]
            for name in ("tab", "risk", "tool", "agent", "q", "same", "sort")
            if query.get(name)
        }
        fits = {n: v for n, v in typed.items() if n not in allowed or v in allowed[n]}
        fits["same"] = _parse_repeat_key(fits.get("same", ""))
        show = query.get("show", "")
        most = int(show) if show.isdecimal() and len(show) < 5 else PAGE_SIZE
        return cls(**fits, show=min(max(most, PAGE_SIZE), MOST_ROWS))

    def query(self, **changes: Any) -> str:
        """Format the filters as a query string, without those at their default."""
        values = {name: getattr(self, name) for name in self.__slots__} | changes
        usual = QueueFilters()
        changed = {n: v for n, v in values.items() if v != getattr(usual, n)}
        return urlencode(changed)

    def url(self, **changes: Any) -> str:
        """The queue's URL with these filters, changed by `changes`."""
        query = self.query(**changes)
        return reverse("reviews:queue") + (f"?{query}" if query else "")

    @property
    def narrow(self) -> bool:
        """Whether anything but the tab and the order narrows the list."""
        return self.picks or bool(self.q)

    @property
    def picks(self) -> bool:
        """Whether anything but the tab, the order and the search narrows the list."""
        return any((self.risk, self.tool, self.agent, self.same))

    @property
    def differs(self) -> bool:
        """Whether filters or order differ from the default, so that the view is worth
        saving."""
        return self.narrow or self.sort != QueueFilters().sort

    @property
    def collapses(self) -> bool:
        """Whether identical proposals share a row. Not while the person searches for
        one."""
        return self.tab == "open" and not self.q and not self.same

    @property
    def gathers(self) -> bool:
        """Whether the requests of one batch share a row. They may differ in risk and
        amount, so not while one risk is selected or the list is sorted by amount."""
        return self.collapses and not self.risk and not self.amount_order

    @property
    def amount_order(self) -> str:
        """How the list is sorted by amount, as ARIA names it; empty if it is not."""
        if self.tab == "done":
            return ""
        return {"largest": "descending", "smallest": "ascending"}.get(self.sort, "")

    @property
    def amount_url(self) -> str:
        """This list by amount, or the other way round; the list of what is done has one
        order."""
        if self.tab == "done":
            return ""
        return self.url(sort="smallest" if self.sort == "largest" else "largest")

    @property
    def order_said(self) -> str:
        """The sentence that describes the order of the list."""
        return DONE_SENTENCE if self.tab == "done" else ORDER_SENTENCES[self.sort]


def _parse_repeat_key(key: str) -> str:
    try:
        return str(UUID(key)) if key else ""
    except ValueError:
        return ""
