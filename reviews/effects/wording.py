"""Sentences of Counterseal's words and marked values.

A template can set the values bold without any markup inside a text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from string import Formatter
from typing import NamedTuple

from reviews.quorum import StepData

MAX_DEPTH = 6


class WordingPart(NamedTuple):
    """A piece of a sentence; a value is set bold, and one that has a page links to
    it."""

    text: str
    value: bool = False
    url: str = ""


def build_wording(pattern: str, **values: str | WordingPart) -> tuple[WordingPart, ...]:
    """Build parts from a pattern; empty values are left out. `build_wording("{who}
    approved", who="Rita")` gives a value and a text."""
    parts: list[WordingPart] = []
    for text, name, *_ in Formatter().parse(pattern):
        value = values.get(name or "", "")
        value = WordingPart(value, True) if isinstance(value, str) else value
        parts += [WordingPart(text), value]
    return tuple(part for part in parts if part.text)


def format_people(count: int, word: str = "person") -> str:
    """Format a number of people: `1 person`, `3 people`, `2 supervisors`."""
    if count == 1:
        return f"1 {word}"
    many = word.removesuffix("person") + "people" if word.endswith("person") else ""
    return f"{count} {many or word + 's'}"


def format_required_people(steps: Iterable[StepData]) -> str:
    """Format whom the steps ask for: `1 reviewer and 2 supervisors`. Each role appears
    once, however many steps ask for it."""
    counted: Counter[str] = Counter()
    for step in steps:
        counted[step["role"]] += step["required"]
    return " and ".join(format_people(count, role) for role, count in counted.items())


def format_names(names: Sequence[str], *, most: int) -> str:
    """Format names: `Rita, Tom and Sue`; beyond `most` only how many more there are."""
    shown = list(names[:most])
    if len(names) > most:
        shown.append(f"{len(names) - most} more")
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if shown[1:] else shown)


def format_duration(value: timedelta | None) -> str:
    """Format a duration in its largest useful unit: `11 min`; empty for None."""
    if value is None:
        return ""
    seconds = max(int(value.total_seconds()), 0)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 120 * 60:
        return f"{seconds // 60} min"
    if seconds < 48 * 3600:
        return f"{seconds // 3600} h"
    return f"{seconds // 86400} days"


def format_delay(seconds: int) -> str:
    """Format a delay exactly: `10 minutes`, but `90 seconds`."""
    if seconds and seconds % 60 == 0:
        return format_people(seconds // 60, "minute")
    return format_people(seconds, "second")


def flatten_value(
    value: object, path: str = "", *, empty: str = "none"
) -> Iterator[tuple[str, str]]:
    """Flatten structured data into rows of path and value, never JSON. `empty` is the
    word for no value."""
    depth = path.count(".") + path.count(" ")
    if isinstance(value, dict) and value and depth < MAX_DEPTH:
        for key, inner in value.items():
            below = f"{path}.{key}" if path else str(key)
            yield from flatten_value(inner, below, empty=empty)
    elif isinstance(value, list) and value and depth < MAX_DEPTH:
        for number, inner in enumerate(value, 1):
            yield from flatten_value(inner, f"{path} {number}".strip(), empty=empty)
    else:
        yield path or "value", format_scalar(value, empty=empty)


def format_scalar(value: object, *, empty: str = "none") -> str:
    """Format one value in words; no value is `empty`."""
    if value is None or value in ("", {}, []):
        return empty
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def format_short_hash(value: str) -> str:
    """Format the first eight digits of a digest in two groups, to compare by eye."""
    digits = value.removeprefix("sha256:")[:8]
    return f"{digits[:4]}-{digits[4:]}" if len(digits) == 8 else digits
