"""Domain names: letters and punycode, and imitations of our own domains. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from .unicode import compute_skeleton

# Letters, and pairs of letters, that look like others beyond single look-alikes.
_PAIRS = (("rn", "m"), ("vv", "w"), ("cl", "d"), ("0", "o"), ("1", "l"), ("i", "l"))


def is_plain_domain(domain: str) -> bool:
    """Whether the name reads as it is written: ASCII only, and no punycode."""
    return domain.isascii() and "xn--" not in domain


def to_other_form(domain: str) -> str:
    """Convert a punycode name to letters, and a name in letters to punycode."""
    try:
        if domain.isascii():
            return domain.encode("ascii").decode("idna")
        return domain.encode("idna").decode("ascii")
    except UnicodeError:
        return "not a valid name"


def is_imitation(domain: str, ours: Iterable[str]) -> bool:
    """Whether the domain looks like one of `ours` without being one."""
    own = set(ours)
    return domain not in own and any(_is_lookalike(domain, name) for name in own)


def _is_lookalike(domain: str, own: str) -> bool:
    shown = _fold_lookalikes(to_other_form(domain) if "xn--" in domain else domain)
    name = _fold_lookalikes(own.partition(".")[0])
    inside = re.search(rf"(^|[.-]){re.escape(name)}([.-]|$)", shown)
    return _is_one_edit_apart(shown, _fold_lookalikes(own)) or (
        len(name) > 5 and inside is not None
    )


def _fold_lookalikes(domain: str) -> str:
    text = compute_skeleton(domain)
    for pair, read in _PAIRS:
        text = text.replace(pair, read)
    return text


def _is_one_edit_apart(one: str, other: str) -> bool:
    """Whether two names are equal or one edit apart.

    One edit is one letter more, less, different or swapped with its neighbour.
    """
    start = 0
    while one[start : start + 1] == other[start : start + 1] != "":
        start += 1
    left, right = one[start:], other[start:]
    swapped = left[1::-1] + left[2:]
    return right in (left, left[1:], swapped) or right[1:] in (left, left[1:])
