"""A message that is sent: its recipients, row by row, and its text. Pure.

HTML is never shown as HTML: the page shows its text and counts what it would have
loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from policies.effect_classes import breaks_header

from . import markup
from .arguments import Leaf, build_cell, format_count
from .common import RECIPIENTS, Subject, build_loud_tags, build_presentation
from .sentence import build_sentence
from .shapes import Presentation, SentencePart, Tag, ValuePart, ValueRow
from .unicode import is_plain_domain, to_other_form

# In the order of a mail header. Bcc has a row even if it is empty.
_HEADERS = ("from", "reply_to", "to", "cc", "bcc", "thread")
_ALWAYS_SHOWN = {"to", "bcc"}
_EVERYBODY = re.compile(r"@(?:everyone|here|channel|all)\b|<!(?:channel|here|everyone)")
_EXECUTABLE_ENDING = re.compile(
    r"\.(?:exe|com|scr|bat|cmd|ps1|vbs|js|jse|jar|msi|lnk|iso|img|hta|docm|xlsm|pptm"
    r"|html?|svg|zip|rar|7z|apk|dmg|sh|py)$",
    re.IGNORECASE,
)
_DOUBLE_ENDING = re.compile(
    r"\.(?:pdf|docx?|xlsx?|txt|jpe?g|png)\.\w{2,4}$", re.IGNORECASE
)
_LINK = re.compile(r"(?:\bhttps?://|\bwww\.)[^\s<>\"]{1,2000}", re.IGNORECASE)
_COMMENT = re.compile(r"\s*\([^()]*\)\s*$")  # of a mail address: `a@b.example (Dana)`
_HOST = re.compile(r"[a-zA-Z0-9-]+(\.[a-zA-Z0-9-]+)+")
MOST_ADDRESS = 1000  # characters of a recipient that are searched for its domain
UNUSUAL_FACTOR = 3  # times the usual number of recipients


def show(subject: Subject) -> Presentation:
    """Present the headers in their usual order, then subject and text."""
    recipients = list(_list_recipients(subject))
    outside = _count_outside(subject, recipients)
    to, replaced = subject.path("to"), {}
    if recipients and to:
        replaced[to] = _build_recipients_part(subject, recipients, outside)
    return build_presentation(
        subject,
        *_build_recipient_tags(subject, recipients, outside),
        *_build_content_tags(subject),
        sentence=build_sentence(subject, replaced),
        other=tuple(_build_message_rows(subject)),
        makes="What will be sent",
    )


def _build_message_rows(subject: Subject) -> Iterator[ValueRow]:
    """The headers first, including an empty Bcc; then everything else."""
    rows = {row.path: row for row in subject.rows.other}
    is_mail = subject.definition.presenter == "email"
    for role in _HEADERS:
        own = [leaf.path for leaf in subject.under(role)]
        yield from (
            _add_address_notes(subject, rows.pop(path)) for path in own if path in rows
        )
        if not own and role in _ALWAYS_SHOWN and is_mail:
            yield ValueRow(subject.label(role), role, build_cell(None).settled)
    for row in rows.values():
        yield from _build_body_rows(subject, row)


def _build_body_rows(subject: Subject, row: ValueRow) -> Iterator[ValueRow]:
    if any(leaf.path == row.path for leaf in subject.under("attachments")):
        yield replace(row, warns=tuple(_list_attachment_warnings(row.cell.text)))
        return
    if row.cell.kind != "text" or not markup.is_html(row.cell.text):
        yield _add_link_hosts(row)
        return
    reading = markup.parse_html(row.cell.text)
    if not reading.is_read:
        yield replace(row, note=reading.summary)
        return
    hides = ("It may hide text from its reader",) if reading.hides else ()
    shown = replace(row.cell, text=reading.text, long=True)
    yield ValueRow(f"{row.label}, as text", row.path, shown, "", hides)
    label = f"{row.label}, source"
    yield replace(row, label=label, note=reading.summary, also=reading.addresses)


def _add_link_hosts(row: ValueRow) -> ValueRow:
    matches = _LINK.findall(row.cell.text) if row.cell.kind == "text" else []
    links = [link.rstrip(".,;:!?)]}'") for link in matches]
    if not links:
        return row
    urls = [url if "://" in url else f"https://{url}" for url in links]
    hosts = list(dict.fromkeys(filter(None, map(markup.parse_host, urls))))
    note = f"{format_count(len(links), 'link')} to"
    return replace(row, note=note, also=markup.format_hosts(hosts))


def _add_address_notes(subject: Subject, row: ValueRow) -> ValueRow:
    """Note the other form of a domain, and warn of a misleading address."""
    text = row.cell.text
    domain, warns, notes = _parse_domain(text), [*row.warns], []
    name, bracket, _ = text.partition("<")
    if bracket and "@" in name:
        warns.append("The name shows another address")
    also = to_other_form(domain) if domain and not is_plain_domain(domain) else ""
    ours = subject.definition.own_domains
    if ours and domain and domain not in ours and not row.cell.imitates:
        notes.append("outside")
    if also:
        notes.append("the domain is")
    return replace(row, note=", ".join(notes), warns=tuple(warns), also=also)


def _list_recipients(
    subject: Subject, roles: Sequence[str] = RECIPIENTS
) -> Iterator[str]:
    """List the recipients; a name beside an address (`{name, email}`) is not one."""
    for leaf in (leaf for role in roles for leaf in subject.under(role)):
        named = "." in leaf.path and "@" not in str(leaf.value)
        if isinstance(leaf.value, str) and leaf.value and not named:
            yield leaf.value


def _count_outside(subject: Subject, recipients: list[str]) -> int | None:
    """Count the recipients in none of the tool's recipient classes; None without
    classes."""
    if not subject.recipient_classes:
        return None
    return sum(not subject.is_inside(address) for address in recipients)


def _build_recipients_part(
    subject: Subject, recipients: list[str], outside: int | None
) -> SentencePart:
    path = subject.path("to")
    leaf = Leaf(path, path, recipients[0])
    if len(recipients) == 1 and subject.cell(leaf).kind == "text":
        return ValuePart(recipients[0])
    note = f" ({outside} outside)" if outside is not None else ""
    return ValuePart(f"{len(recipients)} recipients{note}", untrusted=False)


def _build_recipient_tags(
    subject: Subject, recipients: list[str], outside: int | None
) -> Iterator[Tag]:
    if outside:
        yield Tag(f"{format_count(outside, 'recipient')} outside the company")
    if hidden := _count_outside(subject, list(_list_recipients(subject, ("bcc",)))):
        text = f"{format_count(hidden, 'hidden recipient')} (Bcc) outside the company"
        yield Tag(text, loud=True)
    headers = [subject.value(role) for role in ("subject", *_HEADERS)]
    sender, answers = (_find_first(subject.value(r)) for r in ("from", "reply_to"))
    usual, number = subject.fact("usual_recipients"), len(recipients)
    many = isinstance(usual, int) and number > UNUSUAL_FACTOR * max(usual, 1)
    texts = _list_texts(subject, "body", "to")
    yield from build_loud_tags(
        (
            any(map(breaks_header, headers)),
            "A line break in a header can add recipients",
        ),
        (answers and sender != answers, "Replies go to another address"),
        (many, f"{number} recipients, usually {usual}"),
        (any(map(_EVERYBODY.search, texts)), "Notifies everyone in the channel"),
    )


def _build_content_tags(subject: Subject) -> Iterator[Tag]:
    names = _list_texts(subject, "attachments")
    warnings = [
        warning for name in names for warning in _list_attachment_warnings(name)
    ]
    yield from build_loud_tags(
        (any(map(markup.is_html, subject.texts)), "Contains HTML, shown as text"),
        (warnings, "An attachment can run a program"),
    )
    attached = subject.value("attachments")
    if attached:
        number = len(attached) if isinstance(attached, list) else 1
        yield Tag(format_count(number, "attachment"))


def _list_attachment_warnings(name: str) -> Iterator[str]:
    if _DOUBLE_ENDING.search(name):
        yield "Two file extensions: the last one counts"
    if _EXECUTABLE_ENDING.search(name):
        yield "Can run a program"


def _list_texts(subject: Subject, *roles: str) -> list[str]:
    leaves = [leaf for role in roles for leaf in subject.under(role)]
    return [leaf.value for leaf in leaves if isinstance(leaf.value, str)]


def _find_first(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else value


def _parse_domain(address: str) -> str:
    """The domain of an address, in lower case; "" for a name or a handle (`@dana`)."""
    local, _, domain = _COMMENT.sub("", address[-MOST_ADDRESS:]).rpartition("@")
    if local.strip() or _HOST.fullmatch(domain):
        return domain.strip(" >").lower()
    return ""
