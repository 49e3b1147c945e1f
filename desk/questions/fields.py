"""The inputs of a question's form, made from its stored schema, and the answer that a
person typed into them.

Every input keeps what was typed, so that no refusal loses it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from django.core.exceptions import ValidationError
from django.http import QueryDict
from django.utils import timezone

from journal.errors import FieldError
from reviews.presenters.arguments import humanise_name
from reviews.questions import forms

from ..forms import TIME_ERRORS, TimeField

PREFIX = "answer."
RADIOS = 6  # options of one field that are listed; more are a menu
LONG_TEXT = 120  # characters from which a text has several lines
_WHOLE = re.compile(r"[+-]?[0-9]{1,16}")
_NUMBER = re.compile(r"[+-]?[0-9]{1,16}(\.[0-9]{1,16})?")
_TYPES = {"date": "date", "date-time": "datetime-local", "email": "email", "uri": "url"}
_YES_NO = (("true", "Yes"), ("false", "No"))


class UnreadableInput(Exception):
    """What was typed is no value of its field; the text says what to enter."""


@dataclass(frozen=True, slots=True)
class FieldOption:
    """One of the values of a closed set."""

    value: str
    label: str
    chosen: bool


@dataclass(frozen=True)
class AnswerField:
    """One input, or a group of check boxes or radio buttons."""

    key: str
    spec: Mapping[str, Any]
    required: bool
    typed: Sequence[str]
    error: str = ""

    @property
    def name(self) -> str:
        return PREFIX + self.key

    @property
    def id(self) -> str:
        return f"id_answer_{self.key}"

    @property
    def label(self) -> str:
        return str(self.spec.get("title") or humanise_name(self.key))

    @property
    def description(self) -> str:
        return str(self.spec.get("description", ""))

    @property
    def text(self) -> str:
        return self.typed[0] if self.typed else ""

    @property
    def block(self) -> str:
        """What was typed into several lines."""
        return "\n".join(self.typed)

    @cached_property
    def kind(self) -> str:
        """How it is drawn: checks, radios, menu, lines, text or line."""
        spec, pairs = self.spec, self._pairs
        if spec["type"] == "array":
            return "checks" if pairs else "lines"
        if pairs:
            return "radios" if len(pairs) <= RADIOS else "menu"
        longest = spec.get("maxLength", LONG_TEXT + 1)
        is_plain = spec["type"] == "string" and "format" not in spec
        return "text" if is_plain and longest > LONG_TEXT else "line"

    @property
    def input_type(self) -> str:
        """A browser drops a typed text that is no value of the type."""
        if self.text and not _is_moment(self.text):
            return "text"
        return _TYPES.get(self.spec.get("format", ""), "text")

    @property
    def inputmode(self) -> str:
        modes = {"integer": "numeric", "number": "decimal"}
        return modes.get(self.spec["type"], "")

    @property
    def rule(self) -> str:
        """The limits of the field, in words."""
        spec, rules = self.spec, []
        if self.kind == "lines":
            rules.append("one entry on each line")
        if spec.get("format") == "date-time":
            rules.append(f"in the time zone {timezone.get_current_timezone_name()}")
        for key, words in _LIMITS.items():
            if key in spec and (key != "maxItems" or self.kind != "checks"):
                rules.append(words.format(spec[key]))
        sentence = ", ".join(rules)
        return sentence[:1].upper() + sentence[1:]

    @property
    def options(self) -> list[FieldOption]:
        return [
            FieldOption(value, label, value in self.typed)
            for value, label in self._pairs
        ]

    @property
    def shown(self) -> str:
        """What was typed or chosen, as text."""
        names = dict(self._pairs)
        return ", ".join(names.get(text, text) for text in self.typed if text)

    @cached_property
    def _pairs(self) -> Sequence[tuple[str, str]]:
        """The values of a closed set, as they are sent and as people read them."""
        if self.spec["type"] == "boolean":
            return _YES_NO
        entry = self.spec["items"] if self.spec["type"] == "array" else self.spec
        values = entry.get("enum", ())
        names = entry.get("enumNames", values)
        pairs = zip(values, names, strict=True)
        return [(_format_value(value), str(name)) for value, name in pairs]

    def read(self) -> Any:
        """The value, or None for an empty field. Raises UnreadableInput."""
        texts = [text.replace("\r\n", "\n") for text in self.typed]
        if self.spec["type"] == "array":
            lines = texts if self.kind == "checks" else "\n".join(texts).split("\n")
            return [line.strip() for line in lines if line.strip()] or None
        text = texts[0] if texts else ""
        if not text.strip():
            return None
        if self.spec["type"] == "string" and "format" not in self.spec:
            return text
        return _READERS[self.spec.get("format") or self.spec["type"]](text.strip())


_LIMITS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} entries",
    "maxItems": "at most {} entries",
}


def _format_value(value: Any) -> str:
    return value if isinstance(value, str) else str(json.dumps(value))


def _read_integer(text: str) -> int:
    if not _WHOLE.fullmatch(text):
        raise UnreadableInput("Enter a whole number, such as 12.")
    return int(text)


def _read_number(text: str) -> int | float:
    if _WHOLE.fullmatch(text):
        return int(text)
    if not _NUMBER.fullmatch(text):
        raise UnreadableInput("Enter a number, such as 12.50.")
    return float(text)


def _read_boolean(text: str) -> bool:
    if text not in dict(_YES_NO):
        raise UnreadableInput("Choose yes or no.")
    return text == "true"


def _is_moment(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _read_moment(text: str) -> str:
    try:
        moment: datetime = TimeField(error_messages=TIME_ERRORS).clean(text)
    except ValidationError as error:
        raise UnreadableInput(error.messages[0]) from None
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


_READERS: Mapping[str, Callable[[str], Any]] = {
    "integer": _read_integer,
    "number": _read_number,
    "boolean": _read_boolean,
    "date-time": _read_moment,
    "date": str,
    "email": str,
    "uri": str,
    "string": str,
}


@dataclass(frozen=True)
class AnswerForm:
    """All inputs of one question. `above` are the errors that belong to no input."""

    fields: Sequence[AnswerField]
    above: Sequence[str] = ()

    @property
    def typed(self) -> str:
        """What was typed, as one text for a page that no longer has the inputs."""
        return "\n".join(
            f"{field.label}: {field.shown}" for field in self.fields if field.shown
        )

    def read(self) -> tuple[dict[str, Any], list[FieldError]]:
        """The answer without its empty fields, and an error for each unreadable one."""
        answer: dict[str, Any] = {}
        errors: list[FieldError] = []
        for field in self.fields:
            try:
                value = field.read()
            except UnreadableInput as error:
                errors.append({"path": PREFIX + field.key, "message": str(error)})
                continue
            if value is not None:
                answer[field.key] = value
        return answer, errors


def build_form(
    schema: Mapping[str, Any],
    *,
    sent: QueryDict | None = None,
    answer: Mapping[str, Any] | None = None,
    errors: Iterable[FieldError] = (),
) -> AnswerForm:
    """The form of a stored schema, filled with its defaults, with what was `sent`, or
    with a given `answer`. `errors` are shown at their inputs."""
    known = {key: schema["properties"][key] for key in schema[forms.ORDER]}
    at, above = _place_errors(errors, known)
    fields = [
        AnswerField(
            key=key,
            spec=spec,
            required=key in schema["required"],
            typed=_find_typed(key, spec, sent, answer),
            error=" ".join(at.get(key, ())),
        )
        for key, spec in known.items()
    ]
    return AnswerForm(fields, above)


def _place_errors(
    errors: Iterable[FieldError], known: Mapping[str, Any]
) -> tuple[dict[str, list[str]], list[str]]:
    at: dict[str, list[str]] = {}
    above = []
    for error in errors:
        key = re.split(r"[.\[]", error["path"].removeprefix(PREFIX))[0]
        message = error["message"]
        sentence = message[:1].upper() + message[1:].removesuffix(".") + "."
        if error["path"].startswith(PREFIX) and key in known:
            at.setdefault(key, []).append(sentence)
        else:
            above.append(sentence)
    return at, above


def _find_typed(
    key: str,
    spec: Mapping[str, Any],
    sent: QueryDict | None,
    answer: Mapping[str, Any] | None,
) -> list[str]:
    if sent is not None:
        return sent.getlist(PREFIX + key)
    value: Any = spec.get("default") if answer is None else answer.get(key)
    if value is None:
        return []
    if spec.get("format") == "date-time" and answer is None:
        local = timezone.localtime(datetime.fromisoformat(value))
        return [local.strftime("%Y-%m-%dT%H:%M")]
    values = value if isinstance(value, list) else [value]
    return [_format_value(item) for item in values]
