"""A message that leaves: who gets it, row by row, and what it says. Pure.

HTML is never shown as HTML: its text is, and what it would have loaded is counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlsplit

from policies.classes import Recipients

from .common import Subject, present, sentence, tags
from .leaves import Leaf, cell
from .scripts import skeleton
from .shapes import Cell, Part, Presentation, Row, Tag, Value

# In the order of a header. Bcc has a row also when nobody is in it.
_HEADERS = ("from", "reply_to", "to", "cc", "bcc")
_RECIPIENTS = ("to", "cc", "bcc")
_ALWAYS = {"to", "bcc"}
_MARKUP = re.compile(r"<(?:[a-zA-Z!/][^>]*)>")
_HOST = re.compile(r"[a-z0-9.-]{1,80}")
_SKIPPED = {"script", "style", "head", "title", "template"}
_BREAKS = {"br", "p", "div", "tr", "li", "h1", "h2", "h3", "table", "section"}
# Letters that look like others side by side, beyond single look-alikes.
_PAIRS = (("rn", "m"), ("vv", "w"), ("cl", "d"), ("0", "o"), ("1", "l"), ("i", "l"))


def show(subject: Subject) -> Presentation:
    """Headers in their usual order, then subject and text."""
    recipients = list(_addresses(subject))
    outside = _outside(subject, recipients)
    said = {"to": _said(subject, recipients, outside)} if recipients else {}
    return present(
        subject,
        sentence=sentence(subject, said),
        tags=tags(subject, *_called_out(subject, recipients, outside)),
        other=tuple(_rows(subject)),
    )


@dataclass
class Reading(HTMLParser):
    """The text of an HTML message, and what it would have asked the network for."""

    source: str
    text: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    links: int = 0
    images: int = 0
    _skipping: int = 0

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.feed(self.source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._skipping += tag in _SKIPPED
        self.links += tag == "a"
        self.images += tag in ("img", "source", "link", "iframe")
        if tag in _BREAKS:
            self.text.append("\n")
        found = (_host(value or "") for name, value in attrs if name in ("href", "src"))
        self.hosts += [host for host in found if host and host not in self.hosts]

    def handle_endtag(self, tag: str) -> None:
        self._skipping -= tag in _SKIPPED and self._skipping > 0

    def handle_data(self, data: str) -> None:
        if not self._skipping:
            self.text.append(data)

    @property
    def summary(self) -> str:
        """`HTML not shown: 4 links, 1 image; evil.example`."""
        hosts = f"; {', '.join(self.hosts[:5])}" if self.hosts else ""
        links = f"{self.links} link{'' if self.links == 1 else 's'}"
        images = f"{self.images} image{'' if self.images == 1 else 's'}"
        return f"HTML not shown: {links}, {images}{hosts}"


def _rows(subject: Subject) -> Iterator[Row]:
    """The headers first, an empty Bcc included; then everything else."""
    rows = {row.path: row for row in subject.rows.other}
    for name in _HEADERS:
        own = [path for path in rows if re.split(r"[.\[]", path)[0] == name]
        yield from (_noted(rows.pop(path)) for path in own)
        if not own and name in _ALWAYS and name not in subject.args:
            yield Row(subject.label(name), name, cell(None))
    for row in rows.values():
        yield from _body(subject, row)


def _body(subject: Subject, row: Row) -> Iterator[Row]:
    if row.cell.kind != "text" or not _MARKUP.search(row.cell.text):
        yield row
        return
    reading = Reading(row.cell.text)
    text = "".join(reading.text).strip()
    yield Row(f"{row.label}, as text", row.path, Cell(text, "text", True))
    yield Row(f"{row.label}, source", row.path, row.cell, reading.summary)


def _noted(row: Row) -> Row:
    """A domain that is not plain is shown in both its forms."""
    domain = _domain(row.cell.text)
    if not domain or (domain.isascii() and "xn--" not in domain):
        return row
    return Row(row.label, row.path, row.cell, f"The domain is {_other_form(domain)}")


def _other_form(domain: str) -> str:
    try:
        if domain.isascii():
            return domain.encode("ascii").decode("idna")
        return domain.encode("idna").decode("ascii")
    except UnicodeError:
        return "not a valid name"


def _addresses(subject: Subject) -> Iterator[str]:
    for leaf in subject.leaves:
        if leaf.name in _RECIPIENTS and isinstance(leaf.value, str) and leaf.value:
            yield leaf.value


def _outside(subject: Subject, recipients: list[str]) -> int | None:
    """How many are in none of the tool's recipient classes; None without classes."""
    forms = [c.when for c in subject.definition.classes or ()]
    known = [form for form in forms if isinstance(form, Recipients)]
    if not known:
        return None
    ours = [a for a in recipients if any(_matches(form, a) for form in known)]
    return len(recipients) - len(ours)


def _matches(form: Recipients, address: str) -> bool:
    return form.matches({form.recipients[0]: [address]})


def _said(subject: Subject, recipients: list[str], outside: int | None) -> Part:
    leaf = Leaf("to", "to", recipients[0])
    if len(recipients) == 1 and subject.cell(leaf).kind == "text":
        return Value(recipients[0])
    note = f" ({outside} outside the company)" if outside is not None else ""
    return Value(f"{len(recipients)} recipients{note}", untrusted=False)


def _called_out(
    subject: Subject, recipients: list[str], outside: int | None
) -> Iterator[Tag]:
    if outside:
        word = "recipient" if outside == 1 else "recipients"
        yield Tag(f"{outside} {word} outside the company")
    if any(_poses(address, subject) for address in recipients):
        yield Tag("A recipient's domain imitates one of ours", loud=True)
    sender, answers = _first(subject.args, "from"), _first(subject.args, "reply_to")
    if answers and sender != answers:
        yield Tag("Answers go to another address", loud=True)
    if any(_is_html(leaf.value) for leaf in subject.leaves):
        yield Tag("Contains HTML, shown as text", loud=True)


def _poses(address: str, subject: Subject) -> bool:
    """Whether the domain looks like one of ours and is not."""
    forms = [c.when for c in subject.definition.classes or ()]
    ours = {d for form in forms if isinstance(form, Recipients) for d in form.domains}
    domain = _domain(address)
    return domain not in ours and any(_alike(domain, own) for own in ours)


def _alike(domain: str, own: str) -> bool:
    shown = _folded(_other_form(domain) if "xn--" in domain else domain)
    name = _folded(own.partition(".")[0])
    inside = re.search(rf"(^|[.-]){re.escape(name)}([.-]|$)", shown)
    return _near(shown, _folded(own)) or (len(name) > 5 and inside is not None)


def _folded(domain: str) -> str:
    text = skeleton(domain)
    for pair, read in _PAIRS:
        text = text.replace(pair, read)
    return text


def _near(one: str, other: str) -> bool:
    """Equal, or one letter more, less, other or swapped with its neighbour."""
    start = 0
    while one[start : start + 1] == other[start : start + 1] != "":
        start += 1
    left, right = one[start:], other[start:]
    swapped = left[1::-1] + left[2:]
    return right in (left, left[1:], swapped) or right[1:] in (left, left[1:])


def _first(args: Mapping[str, Any], name: str) -> Any:
    value = args.get(name)
    return value[0] if isinstance(value, list) and value else value


def _domain(address: str) -> str:
    return address.rpartition("@")[2].strip(" >").lower()


def _is_html(value: Any) -> bool:
    return isinstance(value, str) and _MARKUP.search(value) is not None


def _host(url: str) -> str:
    """A host for a note of ours, so only in plain characters."""
    try:
        host = urlsplit(url.strip()).hostname or ""
    except ValueError:
        host = "?"
    return host if not host or _HOST.fullmatch(host) else "an unreadable address"
