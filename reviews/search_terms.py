"""What a text can be found by, and what a search asks for: the same words. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

# A word may hold an order's hyphen, an amount's point, a path's slash.
_WORD = re.compile(r"[^\W_]+(?:[.\-@:/'][^\W_]+)*")
_PART = re.compile(r"[^\W_]+")
_FIGURE = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_THOUSANDS = re.compile(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))")
LONGEST, MOST = 64, 256  # letters of a word, words of an entry
SHORTEST_START = 3  # letters that a word may be found by


def of(texts: Iterable[str]) -> list[str]:
    """The words of these texts, each once. `C-1017` is found by its parts as well,
    `75.00` as `75`."""
    found = dict.fromkeys(word for text in texts for word in _spelt(text))
    return [word for word in found if len(word) <= LONGEST][:MOST]


def query(text: str) -> str:
    """What PostgreSQL matches with such words: all that were typed, letters by their
    beginning, figures whole. Empty where there is no word."""
    words = dict.fromkeys(_WORD.findall(_folded(text)))
    return " & ".join(_asked(word) for word in words if len(word) <= LONGEST)


def _spelt(text: str) -> Iterator[str]:
    for word in _WORD.findall(_folded(text)):
        yield word
        whole, _, decimals = word.partition(".")
        if _FIGURE.fullmatch(word):
            if decimals and not decimals.strip("0"):
                yield whole
        elif not _PART.fullmatch(word):
            yield from _PART.findall(word)


def _asked(word: str) -> str:
    quoted = "'" + word.replace("'", "''") + "'"
    starts = word.isalpha() and len(word) >= SHORTEST_START
    return f"{quoted}:*" if starts else quoted


def _folded(text: str) -> str:
    return _THOUSANDS.sub("", unicodedata.normalize("NFKC", text).casefold())
