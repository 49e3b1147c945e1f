"""Words that mix alphabets, or that only look Latin. Pure.

A small reading of UTS 39: scripts by character name, the East Asian combinations that
are ordinary, and the Cyrillic, Greek and Armenian letters that pass for Latin ones.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

MIXED = "mixed alphabets"
LOOKS_LATIN = "letters that only look Latin"
# "é" is one character, or "e" and an accent: they look equal and are other bytes.
DECOMPOSED = "letters in an unusual encoding"

# A word with the marks that stand apart from their letters, which are no part of `\w`.
_MARKED = re.compile(r"[^\s!-/:-@\[-^`{-~]+")
# These write several marks on a letter, in an order that nobody sees; text is typed so.
_POINTED = {"HEBREW", "ARABIC", "SYRIAC"}
_WORD = re.compile(r"\w+")
_TOGETHER = tuple(
    frozenset(names)
    for names in (
        {"LATIN", "CJK", "HIRAGANA", "KATAKANA"},
        {"LATIN", "CJK", "HANGUL"},
        {"LATIN", "CJK", "BOPOMOFO"},
    )
)
# The first words of character names that are no script of their own.
_COMMON = {"MICRO", "FEMININE", "MASCULINE", "MODIFIER", "OHM", "KELVIN", "ANGSTROM"}
_ALIASES = {"KATAKANA-HIRAGANA": "KATAKANA", "IDEOGRAPHIC": "CJK", "HALFWIDTH": ""}
# Latin letters in disguise: bold, full width and the like.
_STYLED = {"MATHEMATICAL", "FULLWIDTH", "DOUBLE-STRUCK", "BLACK-LETTER", "SCRIPT"}

_PAIRS = """
0430a 0435e 043Eo 0440p 0441c 0443y 0445x 0456i 0458j 0455s 0501d 04BBh 04CFl 051Bq
051Dw 043Ak 043Cm 0442t 0432b 043Dh 0410A 0412B 0415E 041AK 041CM 041DH 041EO 0420P
0421C 0422T 0423Y 0425X 0406I 0408J 0405S 03B1a 03BFo 03BDv 03C1p 03B9i 03BAk 03C5u
03C4t 0391A 0392B 0395E 0396Z 0397H 0399I 039AK 039CM 039DN 039FO 03A1P 03A4T 03A5Y
03A7X 0585o 057Du 0570h 0578n 0581g 0131i 0261g
"""
LOOKALIKES = {int(pair[:4], 16): pair[4] for pair in _PAIRS.split()}


class Words:
    """Marks the suspicious words of one text, judged by the whole of it."""

    def __init__(self, text: str) -> None:
        self.foreign_prose = False
        if not text.isascii():
            found = [m[0] for m in _WORD.finditer(text)]
            # Real prose has letters that no Latin letter resembles.
            self.foreign_prose = any(_foreign(w) and not _poses(w) for w in found)

    def mark(self, run: str) -> Iterator[tuple[str, str]]:
        """The run in pieces, each with its note or the empty string."""
        if run.isascii():
            yield run, ""
            return
        composed = unicodedata.is_normalized("NFC", run)
        end = 0
        for match in (_WORD if composed else _MARKED).finditer(run):
            note = self.note(match[0])
            if note:
                yield run[end : match.start()], ""
                yield match[0], note
                end = match.end()
        yield run[end:], ""

    def note(self, word: str) -> str:
        """Why this word is marked, or the empty string."""
        if word.isascii():
            return ""
        if is_decomposed(word):
            return DECOMPOSED
        if is_mixed(word):
            return MIXED
        if _foreign(word) and _poses(word) and not self.foreign_prose:
            return LOOKS_LATIN
        return ""


def is_decomposed(word: str) -> bool:
    """Whether another encoding of the same letters is usual (NFC), so that two values
    that look equal may differ."""
    usual = unicodedata.normalize("NFC", word)
    if usual == word:
        return False
    reordered = len(usual) == len(word) and sorted(usual) == sorted(word)
    return not (reordered and _POINTED & {script_of(char) for char in word})


def is_mixed(word: str) -> bool:
    """Whether its letters, or its digits, come from alphabets that do not belong
    together."""
    scripts = frozenset(script for char in word if (script := script_of(char)))
    digits = {ord(c) - unicodedata.digit(c) for c in word if c.isdecimal()}
    if "STYLED" in scripts or len(digits) > 1:
        return True
    return len(scripts) > 1 and not any(scripts <= group for group in _TOGETHER)


def skeleton(text: str) -> str:
    """The text as a hasty reader sees it, to compare and to search; not for display."""
    plain = unicodedata.normalize("NFKC", text).translate(LOOKALIKES)
    return plain.casefold()


@lru_cache(maxsize=8192)
def script_of(char: str) -> str:
    """The first word of a letter's name, where that is a script; else empty."""
    if char.isascii():
        return "LATIN" if char.isalpha() else ""
    word = unicodedata.name(char, "").partition(" ")[0]
    if word in _STYLED:
        return "STYLED"
    if unicodedata.category(char)[0] != "L" or word in _COMMON:
        return ""
    return _ALIASES.get(word, word)


def _foreign(word: str) -> bool:
    scripts = {script_of(char) for char in word}
    return bool(scripts & {"CYRILLIC", "GREEK", "ARMENIAN"})


def _poses(word: str) -> bool:
    return all(ord(c) in LOOKALIKES for c in word if c.isalpha())
