"""Text on a terminal. All that comes from a gate may be written by an agent or by
somebody outside: it is printed as inert characters, in lines of the terminal's width.
"""

from __future__ import annotations

import os
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TextIO

NARROWEST = 12  # columns
TAKES_NO_ROOM = ("Mn", "Me")  # categories of characters drawn over the one before
# Characters of other categories than "C" that show as nothing: the combining grapheme
# joiner, Hangul and Khmer fillers, Mongolian and other variation selectors, the empty
# Braille pattern.
INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {
    chr(code)
    for start, end in ((0x180B, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
    for code in range(start, end + 1)
}


def escape_text(text: str) -> str:
    """Text that a terminal only prints: control characters, which could move the cursor
    or hide a line, characters that turn the direction, line breaks and characters that
    nobody sees become escapes such as `\\x1b`."""
    return "".join(
        character.encode("unicode_escape").decode()
        if _is_active(character)
        else character
        for character in text
    )


def _is_active(character: str) -> bool:
    if character == " ":
        return False
    return character in INVISIBLE or unicodedata.category(character)[0] in "CZ"


class Style(StrEnum):
    """How a line looks where colours are shown; the values are SGR parameters."""

    PLAIN = ""
    STRONG = "1"
    FAINT = "2"
    WARNING = "33"
    REMOVED = "31"
    ADDED = "32"


@dataclass(frozen=True, slots=True)
class Line:
    """A line to print. `quoted` marks words of an agent or from outside, which get a
    bar at the left, in every line that they take. `copied` marks a command or an
    address, which is not cut, so that a person can copy it."""

    text: str = ""
    indent: int = 0
    style: Style = Style.PLAIN
    quoted: bool = False
    copied: bool = False


def render_line(line: Line, width: int, *, colour: bool = False) -> Iterator[str]:
    """The lines of at most `width` columns that show this one."""
    margin = " " * line.indent + ("| " if line.quoted else "")
    room = sys.maxsize if line.copied else width - len(margin) - 2
    for number, part in enumerate(wrap_text(escape_text(line.text), room)):
        shown = f"{'  ' if number else ''}{part}"
        if colour and line.style:
            shown = f"\x1b[{line.style.value}m{shown}\x1b[0m"
        yield f"{margin}{shown}".rstrip(" ")


def wrap_text(text: str, width: int) -> Iterator[str]:
    """Cut a text into lines of at most `width` columns, at spaces where there are any.
    Every character but the spaces at the cuts is kept."""
    while True:
        cut = _find_cut(text, max(width, 2))
        if cut == len(text):
            yield text
            return
        yield text[:cut].rstrip(" ")
        text = text[cut:].lstrip(" ")


def _find_cut(text: str, width: int) -> int:
    """How many characters fit into one line."""
    used = 0
    for place, character in enumerate(text):
        used += measure_character(character)
        if used > width:
            space = text.rfind(" ", 0, place + 1)
            return space if text[: max(space, 0)].strip(" ") else max(place, 1)
    return len(text)


def measure_character(character: str) -> int:
    """How many columns a character takes."""
    if unicodedata.category(character) in TAKES_NO_ROOM:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def measure_text(text: str) -> int:
    """How many columns a text takes."""
    return sum(map(measure_character, text))


class Screen:
    """Prints lines to a stream: on a terminal as wide as it is, and in colours unless
    NO_COLOR is set; elsewhere each line as one, without colours."""

    def __init__(
        self, stream: TextIO, *, environment: Mapping[str, str] | None = None
    ) -> None:
        environment = os.environ if environment is None else environment
        self._stream = stream
        columns = max(shutil.get_terminal_size().columns, NARROWEST)
        self.width = columns if stream.isatty() else sys.maxsize
        plain = environment.get("NO_COLOR") or environment.get("TERM") == "dumb"
        self.colour = stream.isatty() and not plain

    def print_line(self, line: Line | str = "") -> None:
        """Print a line; a text is escaped like every other."""
        line = Line(line) if isinstance(line, str) else line
        for shown in render_line(line, self.width, colour=self.colour):
            self._write(f"{shown}\n")

    def print_lines(self, lines: Iterable[Line | str]) -> None:
        """Print lines, one after the other."""
        for line in lines:
            self.print_line(line)

    def print_whole(self, text: str) -> None:
        """Print a text of this program's own as it is: code, or JSON in ASCII."""
        self._write(f"{text}\n")

    def _write(self, text: str) -> None:
        # Of another encoding than UTF-8, what it cannot say becomes an escape.
        encoding = self._stream.encoding or "utf-8"
        self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        self._stream.flush()


def ask_line(question: str) -> str:
    """Ask the person at the terminal. Raises EOFError at the end of the input."""
    discard_typed()
    sys.stderr.write(question)
    sys.stderr.flush()
    answer = sys.stdin.readline()
    if not answer:
        raise EOFError
    return answer.strip()


def discard_typed() -> None:
    """Forget what was typed before the question: nobody has answered what they had not
    read."""
    if not sys.stdin.isatty():
        return
    try:
        import termios
    except ImportError:  # Windows
        return
    termios.tcflush(sys.stdin, termios.TCIFLUSH)
