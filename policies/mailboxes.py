"""Normalises mail addresses to mailboxes, so that two spellings that reach the same
person are equal. Pure."""

from __future__ import annotations

import unicodedata

_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")


def fold_text(text: str) -> str:
    """The text in NFKC and case-folded, without invisible characters, and with its
    white space collapsed to single spaces."""
    plain = unicodedata.normalize("NFKC", text)
    seen = (char for char in plain if not _is_invisible(char))
    folded = unicodedata.normalize("NFKC", "".join(seen).casefold())
    return " ".join(folded.split())


def fold_mailbox(address: str) -> str:
    """The mailbox that an address reaches; an empty text stays empty.

    Case, a `+tag`, quotes around the local part and a dot after the domain make no
    difference. Dots in the local part do.
    """
    folded = fold_text(address)
    local, at, domain = folded.rpartition("@")
    if not at:
        return folded
    local = local.strip(' "')
    name, _, _ = local.partition("+")
    return f"{name or local}@{_decode_domain(domain.strip(' .'))}"


def _decode_domain(domain: str) -> str:
    """A domain decoded from punycode; unchanged if it is not encoded."""
    try:
        return domain.encode("ascii").decode("idna")
    except UnicodeError:
        return domain


def _is_invisible(char: str) -> bool:
    if char in "\t\n\r":
        return False
    return unicodedata.category(char) in {"Cf", "Cc"} or char in _INVISIBLE
