"""The strings of T14, and whether a page shows them whole."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests import corpora
from tests.browser.hostile import kept
from tests.reviews.presenters.test_inert import BRACKETS, HIDDEN

# All that nobody sees and that intake takes, a few a line, each after a letter.
WHOLE = [code for code in HIDDEN if code and not 0xD800 <= code <= 0xDFFF]
UNSEEN = [
    "".join(f"a{chr(code)}" for code in WHOLE[start : start + 40])
    for start in range(0, len(WHOLE), 40)
]
HIDDEN_CODES = frozenset(HIDDEN)
# What a terminal would obey: its letters are part of a token.
_OBEYED = re.compile(r"[\x1b\x9b]\[?[0-?]*[ -/]*[@-~]")


def strings() -> list[str]:
    """Every one of the corpora, and every character that nobody sees."""
    trojan = [
        text for family in corpora.trojan_source().values() for text in family.values()
    ]
    return [*corpora.flat(corpora.naughty()), *trojan, *UNSEEN]


def check_shown(batch: Sequence[str], text: str, *, redacted: bool = True) -> None:
    """Nothing is swallowed: letters stand there, what nobody sees is named."""
    plain = re.sub(r"\s+", " ", text)
    for one in map(kept, batch) if redacted else batch:
        words = re.findall(r"[A-Za-z]{4,}", _OBEYED.sub(" ", one))
        longest = max(words, key=len, default="")[:60]
        assert longest in plain, one
        hidden = [c for c in one if ord(c) in HIDDEN_CODES and c not in "\n\t\r"]
        for char in hidden[:5]:
            name = f"U+{ord(char):04X}"
            assert name in plain or "more⟧" in plain, (one, name)


def is_seen(text: str) -> bool:
    """Whether every character of a file or a mail can be seen; signs of ours can."""
    hidden = HIDDEN_CODES - {*BRACKETS, 0x0A, 0x0D}
    return not any(ord(char) in hidden for char in text)
