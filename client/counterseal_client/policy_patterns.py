"""Regular expressions of JSON Schemas, in the form that the gate's engine takes.

The gate runs patterns in linear time, so it takes no look-around and no back reference,
and none that grows beyond a few megabytes. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

MOST_CHARACTERS = 2000
MOST_GROUPS = 50  # inside one another
LARGEST = 9_200_000  # bytes of the compiled pattern, estimated
_QUANTIFIER = re.compile(r"[*+?]|\{(\d{1,9})(,?)(\d{0,9})\}")
_GROUP = re.compile(r"\(\?(?::|[ims]{1,3}[:)]|P?<([A-Za-z_]\w{0,40})>)")
_FIXED = re.compile(r"x[0-9a-fA-F]{2}|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}")
_PROPERTY = re.compile(
    r"[pP](?:[LMNPSZC]|\{(?:(?:gc=|General_Category=)?(?:[LMNPSZC]|L[ultmo]|M[nce]"
    r"|N[dlo]|P[cdseifo]|S[mcko]|Z[slp]|C[cfo])|Letter|Uppercase_Letter|Lowercase_Letter|Mark|Number"
    r"|Punctuation|Symbol|Separator|Alphabetic|(?:Script=|sc=)(?:Latin|Greek|Cyrillic"
    r"|Han|Hiragana|Katakana|Hangul|Arabic|Hebrew))\})"
)
# Bytes of one character of a class, as the engine compiles it.
_COSTS = {"s": 900, "S": 2300, "w": 200, "W": 1300, "d": 200, "D": 1200, "p": 42_000}
_LITERAL, _RANGE, _ANY = 200, 900, 1200


class UntakenPattern(ValueError):
    """The gate's engine does not take this pattern. The message says why."""


def adapt_pattern(pattern: str) -> str:
    """The same pattern as the gate's engine writes it. Raises UntakenPattern."""
    if len(pattern) > MOST_CHARACTERS:
        raise UntakenPattern(f"it has more than {MOST_CHARACTERS} characters")
    if re.search("[\ud800-\udfff]", pattern):
        raise UntakenPattern("it has half of a character")
    return _Reader(pattern).read()


@dataclass(slots=True)
class _Frame:
    cost: int = 0
    last: int | None = None  # of the part that a quantifier would repeat


@dataclass(slots=True)
class _Reader:
    text: str
    at: int = 0
    parts: list[str] = field(default_factory=list)
    frames: list[_Frame] = field(default_factory=lambda: [_Frame()])
    names: set[str] = field(default_factory=set)

    def read(self) -> str:
        largest = LARGEST // 2 if "(?i" in self.text else LARGEST  # both cases
        while self.at < len(self.text):
            self._next()
            if self.frames[-1].cost > largest:
                raise UntakenPattern("it repeats too much")
        if len(self.frames) > 1:
            raise UntakenPattern("a bracket is never closed")
        return "".join(self.parts)

    def _next(self) -> None:
        char = self.text[self.at]
        if quantifier := _QUANTIFIER.match(self.text, self.at):
            self._repeat(quantifier)
        elif char == "\\":
            self._add(*self._escape(inside=False))
        elif char == "[":
            self._add(*self._class())
        elif char == "(":
            self._open()
        elif char == ")":
            self._close()
        else:
            self._plain(char)

    def _plain(self, char: str) -> None:
        if self.text.startswith("{,", self.at):
            raise UntakenPattern("engines read {, differently")
        self._take(f"\\{char}" if char in "{}" else char, 1)
        self._count(_ANY if char == "." else _LITERAL)
        if char in "|^$":
            self.frames[-1].last = None

    def _take(self, written: str, length: int | None = None) -> None:
        self.parts.append(written)
        self.at += len(written) if length is None else length

    def _count(self, cost: int) -> None:
        self.frames[-1].cost += cost
        self.frames[-1].last = cost

    def _add(self, written: str, cost: int) -> None:
        self.parts.append(written)
        self._count(cost)

    def _repeat(self, match: re.Match[str]) -> None:
        frame = self.frames[-1]
        if frame.last is None:
            raise UntakenPattern("a repetition repeats nothing")
        least, more, most = match[1], match[2], match[3]
        times = int(most or least or 1) + (more == "," and not most)
        if most and int(most) < int(least):
            raise UntakenPattern("a repetition ends before it begins")
        frame.cost += frame.last * max(times - 1, 0)
        frame.last = None
        self._take(match[0])
        if self.text[self.at : self.at + 1] == "?":
            self._take("?")
        if self.text[self.at : self.at + 1] == "+":
            raise UntakenPattern("it has a possessive repetition")

    def _open(self) -> None:
        written = "("
        if self.text.startswith("(?", self.at):
            group = _GROUP.match(self.text, self.at)
            if not group:
                ahead = re.match(r"\(\?<?[=!]", self.text[self.at :])
                kind = "looks ahead or behind" if ahead else "has a group of a kind"
                more = "" if ahead else " that the gate does not take"
                raise UntakenPattern(f"it {kind}{more}")
            if group[1] in self.names:
                raise UntakenPattern("two groups have one name")
            self.names |= {group[1]} if group[1] else set()
            written = group[0]
        self._take(written)
        if written.endswith(")"):  # only flags
            self.frames[-1].last = None
            return
        if len(self.frames) > MOST_GROUPS:
            raise UntakenPattern("its groups are too deep")
        self.frames.append(_Frame())

    def _close(self) -> None:
        if len(self.frames) == 1:
            raise UntakenPattern("a bracket is never opened")
        self._take(")")
        self._count(self.frames.pop().cost)

    def _escape(self, *, inside: bool) -> tuple[str, int]:
        """What stands for the escape at this place, and its cost; moves behind it."""
        rest = self.text[self.at + 1 : self.at + 41]
        char = rest[:1]
        if not char:
            raise UntakenPattern("it ends in the middle of an escape")
        if found := _FIXED.match(rest) or _PROPERTY.match(rest):
            self.at += 1 + found.end()
            return f"\\{found[0]}", _COSTS.get(char.lower(), _LITERAL)
        self.at += 2
        if char in _COSTS and char != "p":
            return f"\\{char}", _COSTS[char]
        is_zero = char == "0" and not rest[1:2].isdigit()
        written = "\\x08" if char == "b" and inside else "\\x00" if is_zero else ""
        if char not in "nrtfvb" + "B" * (not inside):
            written = written or _write_other_escape(char)
        return written or f"\\{char}", _LITERAL

    def _class(self) -> tuple[str, int]:
        """A set of characters. What the gate's engine would read as another set inside
        it is escaped."""
        self.at += 1
        parts, cost = ["["], _LITERAL
        if self.text.startswith("^", self.at):
            self.at += 1
            parts, cost = ["[^"], _ANY
        if self.text.startswith("]", self.at):
            if len(parts[0]) == 1:
                raise UntakenPattern("engines read [] differently")
            self.at += 1
            return "[\\s\\S]", _ANY
        while not self.text.startswith("]", self.at):
            one, spent = self._member()
            cost += spent
            if self._is_range():
                self.at += 1
                other, more = self._member()
                cost += more
                if _is_set(one) or _is_set(other):
                    parts += [one, "\\-", other]
                    continue
                if _read_code(one) > _read_code(other):
                    raise UntakenPattern("a range ends before it begins")
                parts += [one, "-", other]
            else:
                parts.append(one)
        self.at += 1
        return "".join([*parts, "]"]), cost

    def _is_range(self) -> bool:
        return self.text.startswith("-", self.at) and (
            self.text[self.at + 1 : self.at + 2] not in ("]", "")
        )

    def _member(self) -> tuple[str, int]:
        char = self.text[self.at : self.at + 1]
        if not char:
            raise UntakenPattern("a set is never closed")
        if char == "\\":
            return self._escape(inside=True)
        self.at += 1
        written = f"\\{char}" if char in "[&~-^" else char
        return written, 10 if char.isascii() else _RANGE


def _write_other_escape(char: str) -> str:
    """An escape of a sign, which stands for itself. Raises UntakenPattern for one of a
    letter or a figure: engines read it differently."""
    if not char.isascii():
        return char
    if char.isalnum():
        said = "refers back to a group" if char in "123456789k" else f"has \\{char}"
        raise UntakenPattern(f"it {said}")
    return f"\\{char}"


def _is_set(member: str) -> bool:
    return len(member) > 1 and member[1] in "dDwWsSpP"


def _read_code(member: str) -> int:
    """The code point of one member of a set: a character, or an escape of one."""
    if len(member) > 2:
        return int(member[2:], 16)
    named = {"n": 10, "r": 13, "t": 9, "f": 12, "v": 11}
    return named.get(member[1:], ord(member[-1])) if len(member) == 2 else ord(member)
