"""Characters that a reader does not see, or takes for something else. Pure.

Words that mix alphabets or only look Latin are marked, and domain names that imitate
our own are recognised. Of UTS 39 this has the table of confusables, the skeletons and
the usual East Asian combinations of scripts; a script is known by its character's name.

Default-ignorable, control, format, private-use and unassigned code points, line and
paragraph separators, every space but the plain one, and letters that draw nothing
are shown as tokens and never removed.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from functools import cache, lru_cache
from itertools import groupby
from pathlib import Path

MIXED = "mixed alphabets"
LOOKS_LATIN = "letters that only look Latin"
# "é" is one character, or "e" and an accent: they look equal but have other bytes.
DECOMPOSED = "letters in an unusual encoding"

# A word with its combining marks, which are not part of `\w`.
_WORD_WITH_MARKS = re.compile(r"[^\s!-/:-@\[-^`{-~]+")
# Scripts that put several marks on a letter. Ordinary text has them in any order, and
# nobody sees the order.
_MANY_MARK_SCRIPTS = {"HEBREW", "ARABIC", "SYRIAC"}
_WORD = re.compile(r"\w+")
_COMBINABLE_SCRIPTS = (
    {"LATIN", "CJK", "HIRAGANA", "KATAKANA"},
    {"LATIN", "CJK", "HANGUL"},
    {"LATIN", "CJK", "BOPOMOFO"},
)
# First words of character names that do not name a script.
_COMMON = {"MICRO", "FEMININE", "MASCULINE", "MODIFIER", "OHM", "KELVIN", "ANGSTROM"}
_ALIASES = {"KATAKANA-HIRAGANA": "KATAKANA", "IDEOGRAPHIC": "CJK", "HALFWIDTH": ""}
# Styled Latin letters: bold, full width and the like.
_STYLED = {"MATHEMATICAL", "FULLWIDTH", "DOUBLE-STRUCK", "BLACK-LETTER", "SCRIPT"}

# Scripts with enough letters that pass for Latin ones to write whole words.
_LATIN_LOOKING = {"CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU"}

_CONFUSABLES_FILE = Path(__file__).with_name("confusables.txt")


@cache
def load_confusables() -> dict[int, str]:
    """The prototype of each character of UTS 39's table, read on first use."""
    prototypes: dict[int, str] = {}
    for line in _CONFUSABLES_FILE.read_text("utf-8").splitlines():
        if not line.startswith("#"):
            prototype, _, alike = line.partition(":")
            seen = "".join(chr(int(code, 16)) for code in prototype.split())
            prototypes |= {int(code, 16): seen for code in alike.split()}
    return prototypes


# Small forms whose prototype is no Latin letter: Cyrillic and Greek ones of K and M.
_SMALL_FORMS = {"\u0138": "k", "\u028d": "m"}


def _find_latin_letter(char: str) -> str:
    """The one Latin letter that a letter passes for, or the empty string. NFKC has
    already replaced the styled ones."""
    seen = load_confusables().get(ord(char), char)
    other = not char.isascii() and unicodedata.is_normalized("NFKC", char)
    if not other or unicodedata.category(char)[0] != "L" or len(seen) > 1:
        return ""
    if seen == "l" and char != char.lower():  # the prototype of I is l
        return _find_latin_letter(char.lower()) or "I"
    if seen.isascii():
        return seen if seen.isalpha() else ""
    name = unicodedata.name(seen, "")
    small = name.removeprefix("LATIN LETTER SMALL CAPITAL ").lower()
    return small if len(small) == 1 else _SMALL_FORMS.get(seen, "")


@cache
def load_lookalikes() -> dict[int, str]:
    """The Latin letter of each letter of the table that passes for one."""
    prototypes = load_confusables()
    alike = {*map(chr, prototypes), *"".join(prototypes.values())}
    letters = {ord(char): _find_latin_letter(char) for char in sorted(alike)}
    return {code: letter for code, letter in letters.items() if letter}


# Letters of the table that words of their own scripts are full of: one with such a
# letter is no imitation.
_OWN_LETTERS = frozenset("\u0433\u0448\u04ae\u04af\u03b3\u03c3\u0561")
# Letters, and pairs of letters, that look like others beyond the table, or for which it
# has the longer form: a mistyped letter counts as one.
_DOMAIN_PAIRS = {"rn": "m", "vv": "w", "cl": "d", "0": "o", "1": "l", "i": "l"}


class WordMarker:
    """Marks the suspicious words of a text, judged in the context of the whole text."""

    def __init__(self, text: str) -> None:
        self.foreign_prose = False
        if not text.isascii():
            words = [m[0] for m in _WORD.finditer(text) if not m[0].isascii()]
            # Real prose has letters that no Latin letter resembles.
            self.foreign_prose = any(
                _has_foreign_letters(w) and not _is_all_lookalikes(w) for w in words
            )

    def mark(self, run: str) -> Iterator[tuple[str, str]]:
        """Split a run of the text into pieces, each with its note or the empty
        string."""
        if run.isascii():
            yield run, ""
            return
        composed = unicodedata.is_normalized("NFC", run)
        end = 0
        for match in (_WORD if composed else _WORD_WITH_MARKS).finditer(run):
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
            return _describe_mixture(word)
        if self.foreign_prose or not _has_foreign_letters(word):
            return ""
        return LOOKS_LATIN if _is_all_lookalikes(word) else ""


def _describe_mixture(word: str) -> str:
    """Say which letters of other scripts pass for Latin ones, at most two."""
    letters = dict.fromkeys(char for char in word if ord(char) in load_lookalikes())
    scripts = {char: find_script(char) for char in letters}
    foreign = [char for char, script in scripts.items() if script != "LATIN"]
    named = [f"{char} is {scripts[char].capitalize()}" for char in foreign[:2]]
    return f"{MIXED}: {', '.join(named)}" if named else MIXED


def is_decomposed(word: str) -> bool:
    """Whether the word is not in NFC, so that two equal-looking values may differ. In
    Hebrew, Arabic and Syriac a different order of the marks does not count."""
    usual = unicodedata.normalize("NFC", word)
    if usual == word:
        return False
    reordered = len(usual) == len(word) and sorted(usual) == sorted(word)
    return not (reordered and _MANY_MARK_SCRIPTS & {find_script(char) for char in word})


def is_mixed(word: str) -> bool:
    """Whether the letters, or the digits, of a word come from alphabets that do not
    belong together."""
    scripts = {script for char in word if (script := find_script(char))}
    digits = {ord(c) - unicodedata.digit(c) for c in word if c.isdecimal()}
    if "STYLED" in scripts or len(digits) > 1:
        return True
    usual = any(scripts <= group for group in _COMBINABLE_SCRIPTS)
    return len(scripts) > 1 and not usual


def fold_lookalikes(text: str) -> str:
    """The text as a hasty reader of Latin sees it, for comparison and search, not for
    display."""
    if text.isascii():
        return text.casefold()
    letters = load_lookalikes()
    plain = unicodedata.normalize("NFKC", text).translate(letters)
    return plain.casefold().translate(letters)  # some look Latin in lower case only


def compute_skeleton(text: str) -> str:
    """The skeleton of UTS 39, section 4: equal for texts that look equal, in whatever
    script. Composed, so that a letter with an accent counts as one."""
    shown = "".join(c for c in unicodedata.normalize("NFD", text) if not is_hidden(c))
    return unicodedata.normalize("NFC", shown.translate(load_confusables()))


@lru_cache(maxsize=8192)
def find_script(char: str) -> str:
    """The script of a letter, from the first word of its name; empty for others."""
    if char.isascii():
        return "LATIN" if char.isalpha() else ""
    word = unicodedata.name(char, "").partition(" ")[0]
    if word in _STYLED:
        return "STYLED"
    if unicodedata.category(char)[0] != "L" or word in _COMMON:
        return ""
    return _ALIASES.get(word, word)


def _has_foreign_letters(word: str) -> bool:
    return bool(_LATIN_LOOKING & {find_script(char) for char in word})


def _is_all_lookalikes(word: str) -> bool:
    alike = load_lookalikes()
    letters = [char for char in word if char.isalpha()]
    return all(ord(c) in alike and c not in _OWN_LETTERS for c in letters)


# Format characters that are visible: they enclose the digits that follow.
_VISIBLE_FORMAT = frozenset(
    [*range(0x0600, 0x0606), 0x06DD, 0x070F, 0x0890, 0x0891, 0x08E2, 0x110BD, 0x110CD]
)
# Letters, marks and symbols that are invisible although their category says otherwise.
_INVISIBLE = frozenset(
    [
        *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, 0xFFFC),
        *(0x16FE4, 0x1D159, *range(0x180B, 0x1810)),
        *(*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)),
    ]
)
# Counterseal's brackets around a token: an agent that types them would forge one.
_BRACKETS = frozenset("\u27e6\u27e7")
# A terminal's escape sequence is one token with its parameters, instead of a token and
# some stray letters.
_ANSI = re.compile(
    r"(?:\x1b\[[0-?]{0,32}|\x9b[0-?]{1,32})[ -/]{0,4}[@-~]|\x1b[()][0-B]"
)
# A Thai or Hebrew letter has up to three marks; more would overlap the lines above.
MOST_MARKS = 3
# More spaces than any indentation push the end of a line out of sight.
MOST_SPACES = 32


# Characters that programs obey instead of showing, except line breaks and tabs.
_CONTROL_CHARACTERS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
    "|[\U000e0000-\U000e007f]"
)


def has_control_characters(text: str) -> bool:
    """Whether a text contains terminal or direction controls, or hidden letters.
    Special characters of ordinary mail, such as a non-breaking space, do not count."""
    return _CONTROL_CHARACTERS.search(text) is not None


@lru_cache(maxsize=8192)
def is_hidden(char: str) -> bool:
    """Whether a character must be shown as a token."""
    if " " <= char <= "~":
        return False
    code, category = ord(char), unicodedata.category(char)
    if category[0] == "C":
        return code not in _VISIBLE_FORMAT
    if category in ("Zl", "Zp", "Zs") or char in _BRACKETS:
        return True
    return code in _INVISIBLE


def split_hidden_runs(text: str, plain: str = "") -> Iterator[tuple[bool, str]]:
    """Split a text into runs: (whether to show the run as a token, the run). Characters
    in `plain` are never hidden. The joined runs are the text."""
    flags = _compute_hidden_flags(text, plain)
    position = 0
    for hidden, run in groupby(flags):
        length = len(list(run))
        yield hidden, text[position : position + length]
        position += length


def format_hidden_run(run: str) -> str:
    """Format the label of a token: `U+202E U+200B x12`, at most six kinds of
    character."""
    if set(run) == {" "}:
        return f"{len(run)} spaces"
    kinds = [
        "".join(same) if typed else _format_code_point(char, len(list(same)))
        for (typed, char), same in groupby(run, key=_compute_group_key)
    ]
    if len(kinds) <= 6:
        return " ".join(kinds)
    return " ".join([*kinds[:5], f"and {len(kinds) - 5} more"])


def _compute_group_key(char: str) -> tuple[bool, str]:
    # Visible characters, the parameters of an escape sequence, form one group.
    typed = "!" <= char <= "~"
    return typed, "" if typed else char


def _format_code_point(char: str, times: int) -> str:
    code = f"U+{ord(char):04X}"
    return code if times == 1 else f"{code} x{times}"


def _compute_hidden_flags(text: str, plain: str) -> list[bool]:
    flags = [is_hidden(char) and char not in plain for char in text]
    for match in _ANSI.finditer(text):
        flags[match.start() : match.end()] = [True] * len(match.group())
    if text.isascii():
        return flags
    marks = 0
    for index, char in enumerate(text):
        marks = marks + 1 if unicodedata.category(char) in ("Mn", "Me") else 0
        flags[index] = flags[index] or marks > MOST_MARKS
    return flags


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


# How a character may be written in a link, in HTML, in a mail or in JSON.
_PERCENT_RUN = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_QUOTED_RUN = re.compile(r"(?:=[0-9A-Fa-f]{2})+")
_REFERENCE = re.compile(
    r"&(?:#\d{1,7};?|#[xX][0-9A-Fa-f]{1,6};?|[A-Za-z][A-Za-z0-9]{1,30};)"
)
_ESCAPE = re.compile(
    r"(?:\\|%)u([0-9A-Fa-f]{4})|\\u\{([0-9A-Fa-f]{1,6})\}|\\x([0-9A-Fa-f]{2})"
    r"|\\U([0-9A-Fa-f]{8})"
)
_PUNYCODE = re.compile(r"\bxn--[A-Za-z0-9-]{1,59}", re.IGNORECASE)
_SOFT_BREAK = re.compile(r"=[ \t]*\r?\n")
_MOST_ENCODINGS = 3  # one inside the other


def decode_text(text: str) -> str:
    """The text with its encoded characters as characters: percent signs, HTML
    references, quoted-printable and backslash escapes, also one inside the other."""
    for _ in range(_MOST_ENCODINGS):
        before = text
        text = _REFERENCE.sub(lambda match: html.unescape(match[0]), text)
        text = _PERCENT_RUN.sub(lambda match: _decode_bytes(match[0], "%"), text)
        text = _SOFT_BREAK.sub("", text)
        text = _QUOTED_RUN.sub(lambda match: _decode_bytes(match[0], "="), text)
        text = _ESCAPE.sub(_decode_escape, text)
        if text == before:
            break
    return text


def decode_names(text: str) -> str:
    """The text as `decode_text` decodes it, with punycode in letters as well."""
    return _PUNYCODE.sub(lambda match: _decode_label(match[0]), decode_text(text))


def _decode_label(label: str) -> str:
    decoded = to_other_form(label.lower())
    return decoded if decoded.isprintable() and " " not in decoded else label


def _decode_bytes(run: str, sign: str) -> str:
    """The characters of a run of bytes in hexadecimal; the run if they are none."""
    decoded = bytes.fromhex(run.replace(sign, ""))
    try:
        return decoded.decode()
    except UnicodeDecodeError:
        return run


def _decode_escape(match: re.Match[str]) -> str:
    code = int(next(filter(None, match.groups())), 16)
    is_character = code < 0x110000 and not 0xD800 <= code < 0xE000
    return chr(code) if is_character else match[0]


# What every encoding begins with.
_ENCODING = re.compile(r"[%&=\\]")
_DOTS = dict.fromkeys((0x3002, 0xFF0E, 0xFF61, 0x2024), ".")
_DOMAIN = re.compile(r"(?<![\w.-])[\w-]{1,63}(?:\.[\w-]{1,63}){1,9}(?![\w-])")


@lru_cache(maxsize=512)
def list_domains(text: str) -> tuple[str, ...]:
    """The domains in a text, each once in lower case: of links, of addresses, and bare
    ones. Encoded characters count as what they stand for, and hidden ones not at all.
    Cached, because the cell, the tags and the links of one text ask for it in turn."""
    if "." not in text and text.isascii() and not _ENCODING.search(text):
        return ()
    forms = dict.fromkeys((text, decode_text(text)))
    return tuple(
        dict.fromkeys(domain for form in forms for domain in _find_domains(form))
    )


def _find_domains(text: str) -> Iterator[str]:
    if not text.isascii():
        plain = text.translate(_DOTS)
        text = "".join(c for c in plain if c.isspace() or not is_hidden(c))
    for match in _DOMAIN.finditer(text):
        yield unicodedata.normalize("NFC", match[0]).lower()


def list_imitations(texts: Iterable[str], ours: Collection[str]) -> tuple[str, ...]:
    """The domains in these texts that look like one of `ours`, each once."""
    if not ours:
        return ()
    domains = dict.fromkeys(domain for text in texts for domain in list_domains(text))
    return tuple(domain for domain in domains if is_imitation(domain, ours))


def is_imitation(domain: str, ours: Iterable[str]) -> bool:
    """Whether the domain looks like one of `ours` without being one. The domains below
    and above one of ours belong to the same owner."""
    own = [name.lower() for name in ours]
    if any(is_same_owner(domain, name) for name in own):
        return False
    return any(_is_lookalike(domain, name) for name in own)


def is_same_owner(domain: str, other: str) -> bool:
    """Whether one of two domains is the other or lies below it."""
    return f".{domain}".endswith(f".{other}") or f".{other}".endswith(f".{domain}")


# Second labels below which everybody may register: `northgate.co.uk`.
_SHARED_LABELS = frozenset({"ac", "co", "com", "edu", "gov", "net", "org"})
# A shorter name is one edit apart from many that have nothing to do with it.
_FEWEST_FOR_EDIT, _FEWEST_INSIDE, _FEWEST_FOR_LABEL = 5, 6, 9


@lru_cache(maxsize=8192)
def _is_lookalike(domain: str, own: str) -> bool:
    shown = to_other_form(domain) if "xn--" in domain else domain
    names = [fold_lookalikes(n) for n in (shown, own, _find_registered_label(own))]
    if _resembles(*map(_fold_pairs, names)):
        return True
    return not all(map(str.isascii, names)) and _resembles(*map(_fold_skeleton, names))


def _resembles(domain: str, own: str, name: str) -> bool:
    """Whether a domain resembles one of ours, registered as `name`, all folded."""
    labels = domain.split(".")
    if len(name) >= _FEWEST_INSIDE and re.search(
        rf"(^|[.-]){re.escape(name)}([.-]|$)", domain
    ):
        return True
    if len(name) >= _FEWEST_FOR_LABEL and any(
        _is_one_edit_apart(label, name) for label in labels[:-1]
    ):
        return True
    ends = [".".join(labels[n:]) for n in range(len(labels) - 1)]
    if len(name) < _FEWEST_FOR_EDIT:
        return own in ends
    return any(_is_one_edit_apart(end, own) for end in ends)


def _find_registered_label(domain: str) -> str:
    """The label that its owner registered: `northgate` of `mail.northgate.co.uk`."""
    labels = domain.split(".")
    shared = len(labels) > 2 and len(labels[-1]) == 2 and labels[-2] in _SHARED_LABELS
    return labels[-3 if shared else -2] if len(labels) > 1 else domain


def _fold_pairs(domain: str) -> str:
    for pair, read in _DOMAIN_PAIRS.items():
        domain = domain.replace(pair, read)
    return domain


def _fold_skeleton(domain: str) -> str:
    return _fold_pairs(compute_skeleton(domain).casefold())


def _is_one_edit_apart(name: str, other: str) -> bool:
    """Whether two names are equal but for at most one letter more, less, different or
    swapped with its neighbour."""
    start = 0
    while name[start : start + 1] == other[start : start + 1] != "":
        start += 1
    left, right = name[start:], other[start:]
    swapped = left[1::-1] + left[2:]
    return right in (left, left[1:], swapped) or right[1:] in (left, left[1:])
