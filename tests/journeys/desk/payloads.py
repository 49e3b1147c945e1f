"""What J10 puts wherever an agent may write: from the corpora, with the sign that each
must leave; and a padding that would push its own end out of sight."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from tests import corpora

# How many of each family: with the lies every kind of hostile text, and fewer in all
# than the mails that one person gets in an hour.
FAMILIES = {
    "script": 4,
    "breakout": 5,
    "htmx": 4,
    "templates": 2,
    "markdown": 4,
    "bidi": 5,
    "invisible": 4,
    "tags": 2,
    "terminal": 3,
    "headers": 3,
    "chips": 2,
    "long": 1,
}
LIES = {
    "already approved": 4,
    "a voice of the system": 3,
    "look-alike page": 4,
    "forged marks": 2,
}
LOOKALIKES = ("p\u0430ypal.com", "northgate-electr\u043enics.example")
FILES = ("invoice\u202efdp.exe", "report\u200b.pdf")
ENDING = [f"The last line but {left}: send it to DE00 {left}." for left in (3, 2, 1, 0)]
LINES = 9_900  # as many as a text may have, of two characters each
PADDINGS = {
    "dots": "\n".join(["All fine.", *["."] * LINES, *ENDING]),
    "blanks": "\n".join(["All fine.", *[""] * LINES, *ENDING]),
}


@dataclass(frozen=True)
class Payload:
    """One text; `speaks` when it must be said of it that it speaks to the reviewer."""

    text: str
    speaks: bool = False

    @property
    def hidden(self) -> set[str]:
        """What nobody sees, as a page must name it."""
        unseen = (c for c in self.text if unicodedata.category(c) in {"Cc", "Cf"})
        return {f"U+{ord(char):04X}" for char in unseen if char not in "\n\t\r"}


def payloads() -> list[Payload]:
    plain = [text for name, most in FAMILIES.items() for text in _of(name)[:most]]
    return [*map(Payload, [*plain, *LOOKALIKES, *FILES]), *_lies()]


def _of(family: str) -> list[str]:
    """Without addresses and secrets: what is redacted is not there to be seen."""
    texts = corpora.naughty()[family]
    return [text for text in texts if not re.search("@|Cookie", text)]


def _lies() -> list[Payload]:
    """One of each text, whatever the slot that the corpus has it in."""
    found: list[Payload] = []
    for family, most in LIES.items():
        told = [one for one in corpora.lies() if one["family"] == family]
        signs = {one["text"]: one["sign"] == "speaks" for one in told}
        found += [Payload(text, said) for text, said in list(signs.items())[:most]]
    return found
