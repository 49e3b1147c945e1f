"""Template filters: money, times, addresses, and foreign text made harmless.

Customers and agents wrote that text. A page shows every character of it, and no
character acts on the page.
"""

from __future__ import annotations

import json
import unicodedata

from django.template import Library

from . import records
from .database import format_amount

register = Library()
register.filter("amount", format_amount)

HIDDEN = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
"""Unicode categories of characters that are spelled out."""


@register.filter
def visible(text: str) -> str:
    """The text with control, invisible and direction characters spelled out."""
    return "".join(map(_spell_out, text))


def _spell_out(character: str) -> str:
    if character in "\n\t" or unicodedata.category(character) not in HIDDEN:
        return character
    return f"⟨U+{ord(character):04X}⟩"


@register.filter
def timestamp(stamp: str) -> str:
    """A stored time as people read it; HTML accepts this form too."""
    return stamp.replace("T", " ")


@register.filter
def address(stored: str) -> str:
    return visible(records.format_address(json.loads(stored)))


@register.filter
def mailboxes(stored: str) -> str:
    """A stored list of mail addresses on one line."""
    return ", ".join(json.loads(stored))
