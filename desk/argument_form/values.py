"""Values as the text of an input, and typed text as values. Pure.

The conversion loses nothing: a text that a browser would change is never put into an
input.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from journal.canonical import MAX_INTEGER
from policies import money
from reviews.presenters import unicode

from .schema import MISSING, NUMBERS, FieldSpec

LONG_TEXT = 80  # characters; a longer text gets the whole width
LONG_LINE = 300  # characters; what may be longer gets a text area
# Parts of a pattern that may match a line break.
_BREAK_SIGNS = ("\n", "[^", "(?s", *(f"\\{letter}" for letter in "nrsWDpPxu"))
_WITHOUT_BREAKS = re.compile(r"\[\^[^\]\\]*(?:\\[^n][^\]\\]*)*\\n[^\]]*\]")  # `[^\r\n]`
_WHOLE = re.compile(r"[+-]?[0-9]{1,20}")
_NUMBER = re.compile(
    r"[+-]?(?:[0-9]{1,40}(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?"
)
_MOMENT = re.compile(
    r"(?P<local>[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-5][0-9])"
    r"(?P<zone>Z|[+-][0-9]{2}:[0-9]{2})"
)
_LOCAL = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(?::[0-9]{2})?")
_AMOUNT = re.compile(r"[0-9]+(?:\.[0-9]+)?")


class BadValue(ValueError):
    """The typed text has another type than the argument; says what to type."""


def format_value(value: Any) -> str:
    """A value as the text of its input."""
    if value is MISSING or value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def loses_characters(value: Any) -> bool:
    """Whether a browser would change or hide characters of this text."""
    return isinstance(value, str) and any(
        unicode.is_hidden(char) and char not in "\n\t" for char in value
    )


def is_moment(text: str) -> bool:
    """Whether a date-time input with a separate zone can hold this text."""
    match = _MOMENT.fullmatch(text)
    return bool(
        match and _is_date(match["local"][:10]) and _is_local_time(match["local"])
    )


def split_moment(text: str) -> tuple[str, str]:
    """The local part and the zone of a date and time; `("", "Z")` for other text."""
    match = _MOMENT.fullmatch(text)
    return (match["local"], match["zone"]) if match else ("", "Z")


def join_moment(local: str, zone: str) -> str:
    """Local part and zone as RFC 3339; a browser omits seconds that are zero."""
    if not local:
        return ""
    if _LOCAL.fullmatch(local) and len(local) == 16:
        local += ":00"
    return local + (zone.strip() or "Z")


def shorten_local_time(local: str) -> str:
    """A local part as browsers write it: without seconds that are zero."""
    return local[:16] if len(local) == 19 and local.endswith(":00") else local


def choose_input_type(spec: FieldSpec, text: str) -> str:
    """The native input type that returns this text unchanged."""
    match spec.schema.get("format"):
        case "date" if not text or _is_date(text):
            return "date"
        # A browser rewrites international domain names and trims spaces.
        case "email" if text.isascii() and text == text.strip():
            return "email"
        case "uri" if text.isascii() and text == text.strip():
            return "url"
    return "text"


def choose_inputmode(spec: FieldSpec, *, money: bool) -> str:
    """The phone keyboard for the input: most numeric ones have no minus sign."""
    if money:
        return "decimal"
    if spec.kind not in NUMBERS:
        return ""
    least = spec.schema.get("minimum", spec.schema.get("exclusiveMinimum", -1))
    if not isinstance(least, int | float) or least < 0:
        return "text"
    return "numeric" if spec.kind == "integer" else "decimal"


def is_multiline(spec: FieldSpec, text: str) -> bool:
    """Whether the text has, or may well need, several lines. In the field of a title,
    Enter must not put a line break into it."""
    if "\n" in text:
        return True
    pattern = spec.schema.get("pattern")
    if spec.kind != "string" or "format" in spec.schema or _is_one_line(pattern):
        return False
    most = spec.schema.get("maxLength")
    return len(text) > LONG_TEXT if most is None else most > LONG_LINE


def is_wide(spec: FieldSpec, text: str) -> bool:
    longest = max(len(text), spec.schema.get("maxLength", 0))
    return is_multiline(spec, text) or (spec.kind == "string" and longest > LONG_TEXT)


def _is_one_line(pattern: Any) -> bool:
    """Whether a pattern of the whole text allows no line break."""
    if not isinstance(pattern, str) or not (pattern[:1] == "^" and pattern[-1:] == "$"):
        return False
    rest = _WITHOUT_BREAKS.sub("", pattern)
    return not any(sign in rest for sign in _BREAK_SIGNS)


def build_options(spec: FieldSpec) -> list[tuple[str, str, Any]]:
    """The options of a closed set: each option's text, its label and its value."""
    if spec.kind == "boolean":
        return [("yes", "Yes", True), ("no", "No", False)]
    texts = [format_value(item) for item in spec.options]
    options = []
    for number, (text, item) in enumerate(zip(texts, spec.options, strict=True)):
        clear = text and texts.count(text) == 1 and text[0] != "#"
        words = text.replace("_", " ") or "empty text"
        options.append((text if clear else f"#{number}", words, item))
    return options


def parse_value(spec: FieldSpec, text: str, *, money: bool) -> Any:
    """The typed text as a value of the argument's type. Raises BadValue."""
    if money:
        return _parse_amount(text.strip())
    if spec.kind == "integer":
        return _parse_whole(text.strip())
    if spec.kind == "number":
        return _parse_number(text.strip())
    return text


def parse_minor_amount(spec: FieldSpec, text: str, currency: str) -> int:
    """A typed amount in the currency's own units as minor units. Raises BadValue."""
    try:
        minor = money.parse(_parse_amount(text), currency).minor
    except money.InvalidMoney as error:
        raise BadValue(str(error)) from None
    least, most = spec.schema.get("minimum"), spec.schema.get("maximum")
    too_little = least is not None and minor < least
    if too_little or (most is not None and minor > most):
        raise BadValue(f"must be {_format_minor_range(spec, currency)}")
    return minor


def build_minor_hint(spec: FieldSpec, currency: str) -> str:
    """The unit in which the form takes an amount that is sent in minor units."""
    if not currency:
        return (
            "In the smallest unit of its currency: 4200 is 42.00 USD, 4200 JPY and"
            " 4.200 KWD"
        )
    limits = _format_minor_range(spec, currency)
    unit = f"In {currency}: the tool receives {format_minor(1, currency)} as 1"
    return f"{unit}. {limits[:1].upper()}{limits[1:]}" if limits else unit


def format_minor(value: Any, currency: str) -> str:
    return str(money.Money(value, currency))


def _format_minor_range(spec: FieldSpec, currency: str) -> str:
    least, most = (
        format_minor(bound, currency) if isinstance(bound, int) else ""
        for bound in (spec.schema.get("minimum"), spec.schema.get("maximum"))
    )
    if least and most:
        return f"from {least} to {most}"
    return (least and f"at least {least}") or (most and f"at most {most}")


def build_hint(spec: FieldSpec) -> str:
    """The schema's description, or its limits in words."""
    schema = spec.schema
    if description := schema.get("description"):
        return str(description)
    if spec.kind == "string" and "maxLength" in schema and "format" not in schema:
        return f"At most {schema['maxLength']} characters"
    if spec.kind in NUMBERS:
        return _format_range(schema)
    return ""


def _format_range(schema: Mapping[str, Any]) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and most is not None:
        return f"{least} to {most}"
    if most is not None:
        return f"At most {most}"
    return "" if least is None else f"At least {least}"


def _parse_amount(text: str) -> str:
    if not _AMOUNT.fullmatch(text):
        raise BadValue("enter an amount like 1000.00, without thousands separators")
    return text


def _parse_whole(text: str) -> int:
    if not _NUMBER.fullmatch(text) or float(text) % 1:
        raise BadValue("must be a whole number like 1000, without separators")
    return _check_bounds(int(text) if _WHOLE.fullmatch(text) else int(float(text)))


def _parse_number(text: str) -> int | float:
    if _WHOLE.fullmatch(text):
        return _check_bounds(int(text))
    if not _NUMBER.fullmatch(text):
        raise BadValue("must be a number like 1000.5, without thousands separators")
    value = float(text)
    if not math.isfinite(value):
        raise BadValue("must be a smaller number")
    return value


def _check_bounds(value: int) -> int:
    if abs(value) > MAX_INTEGER:
        raise BadValue(f"whole numbers go up to {MAX_INTEGER}")
    return value


def _is_date(text: str) -> bool:
    try:
        return len(text) == 10 and date.fromisoformat(text).year > 0
    except ValueError:
        return False


def _is_local_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
