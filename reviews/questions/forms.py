"""The form of an answer: which JSON Schemas a question may bring, and whether an answer
fits. Pure.

An agent writes the schema, so it is small and flat, has no pattern to run, and no text
that a person reads is stored unredacted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from journal.canonical import MAX_INTEGER
from journal.errors import FieldError, InvalidInput, build_field_error
from policies import schemas
from reviews import redaction
from reviews.presenters import unicode

MAX_FIELDS = 20
MAX_SCHEMA_BYTES = 16_384
MAX_ANSWER_BYTES = 65_536
MAX_TITLE = 200  # characters of a title or an option
MAX_DESCRIPTION = 500
MAX_OPTIONS = 100  # of one field
MAX_ITEMS = 20  # entries of one list
MAX_TEXT = 10_000  # characters of one text in an answer
FORMATS = ("date", "date-time", "email", "uri")
# The fields in the agent's order, which the database does not keep for an object.
ORDER = "propertyOrder"
VISIBLE_RULE = "without line breaks and characters that nobody sees"
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_TYPES = ("string", "number", "integer", "boolean", "array")
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_LENGTHS = {"minLength": MAX_TEXT, "maxLength": MAX_TEXT}
_COUNTS = {"minItems": MAX_ITEMS, "maxItems": MAX_ITEMS}
_ROOT_KEYS = {"$schema", "$defs", "type", "title", "description", "properties"}
_ROOT_KEYS |= {"required", "additionalProperties", ORDER}
_WORDS = {"title": MAX_TITLE, "description": MAX_DESCRIPTION}
_FIELD_KEYS = {
    *[*_WORDS, *_BOUNDS, *_LENGTHS, *_COUNTS],
    *["type", "enum", "enumNames", "format", "items", "uniqueItems", "default"],
}
_LATER = {
    "pattern": "leave it out and check the answer in the agent: a question runs no"
    " pattern of an agent. `format` and `enum` narrow a text",
    "properties": "a field is a text, a number, a yes or no, or a list of texts;"
    " make each member a field of its own",
}

Redact = Callable[[str], str]
Schema = Mapping[str, Any]


def build_form_schema(schema: Schema, redact: Redact) -> dict[str, Any]:
    """Check the schema of an answer, and return what is stored of it: references
    resolved, titles and descriptions redacted. Raises InvalidInput, which names each
    place and its repair."""
    if len(json.dumps(schema, ensure_ascii=False).encode()) > MAX_SCHEMA_BYTES:
        rule = f"at most {MAX_SCHEMA_BYTES // 1024} KiB; ask for less"
        raise InvalidInput(errors=[build_field_error("schema", rule)])
    form = _FormSchema(schema, redact)
    stored = form.build()
    if form.errors:
        raise InvalidInput(errors=form.errors)
    return stored


def check_answer(schema: Schema, answer: Any) -> None:
    """Raise InvalidInput unless an answer fits the stored schema of its question."""
    if len(json.dumps(answer, ensure_ascii=False).encode()) > MAX_ANSWER_BYTES:
        rule = f"at most {MAX_ANSWER_BYTES // 1024} KiB; shorten it"
        raise InvalidInput(errors=[build_field_error("answer", rule)])
    errors = {
        f"answer.{name}": "enter an answer"
        for name in schema.get("required", ())
        if isinstance(answer, Mapping) and name not in answer
    }
    validator = schemas.compile_schema(schema)
    for error in schemas.list_errors(validator, answer, root="answer"):
        errors.setdefault(error["path"], error["message"])
    if errors:
        raise InvalidInput(errors=[build_field_error(*pair) for pair in errors.items()])


class _FormSchema:
    """One walk through a schema, which collects every error."""

    def __init__(self, schema: Schema, redact: Redact) -> None:
        self.root = schema
        self.redact = redact
        self.errors: list[FieldError] = []

    def build(self) -> dict[str, Any]:
        root = self.root
        if root.get("type") != "object":
            self._refuse("schema.type", 'write "object": an answer has named fields')
        if root.get("$schema", schemas.DIALECT) != schemas.DIALECT:
            self._refuse("schema.$schema", f"leave it out, or write {schemas.DIALECT}")
        if root.get("additionalProperties", False) not in (False, True):
            self._refuse("schema.additionalProperties", "leave it out, or write false")
        self._refuse_unknown(root, _ROOT_KEYS, "schema")
        fields = root.get("properties")
        if not isinstance(fields, Mapping) or not 1 <= len(fields) <= MAX_FIELDS:
            self._refuse("schema.properties", f"1 to {MAX_FIELDS} named fields")
            return {}
        properties, nullable = {}, set()
        for name, part in fields.items():
            place = f"schema.properties.{name[:64]}"
            if not NAME.fullmatch(name):
                rule = "a name is a letter, then up to 63 letters, digits and `_`"
                self._refuse(place, rule)
                continue
            field, may_be_null = self._resolve(part, place)
            if may_be_null:
                nullable.add(name)
            properties[name] = self._build_field(field, place)
        return {
            "type": "object",
            **self._build_words(root, "schema"),
            "properties": properties,
            ORDER: list(properties),
            "required": self._build_required(properties, nullable),
            "additionalProperties": False,
        }

    def _build_required(self, properties: Schema, nullable: set[str]) -> Sequence[str]:
        """A field that may be null may be left out instead: nobody types a null."""
        required = self.root.get("required", [])
        if not isinstance(required, list) or not all(
            isinstance(name, str) and name in properties for name in required
        ):
            self._refuse("schema.required", "list names of `properties`")
            return []
        return [name for name in dict.fromkeys(required) if name not in nullable]

    def _resolve(self, part: Any, place: str) -> tuple[dict[str, Any], bool]:
        """A field without references and null branches, its titled options as an
        `enum`, and whether it may be null."""
        field = dict(schemas.resolve_reference(part, self.root))
        branches = field.pop("anyOf", None) or field.pop("oneOf", None)
        if branches is None:
            return self._drop_null_type(field)
        if not isinstance(branches, list) or not all(
            isinstance(branch, Mapping) for branch in branches
        ):
            self._refuse(place, "each alternative is a schema")
            return {}, False
        others = [branch for branch in branches if branch.get("type") != "null"]
        nullable = len(others) < len(branches)
        if others and all("const" in branch for branch in others):
            field["enum"] = [branch["const"] for branch in others]
            names = [branch.get("title", branch["const"]) for branch in others]
            field["enumNames"] = names
            return field, nullable
        if len(others) != 1:
            rule = "one type for each field; list a closed set in `enum`"
            self._refuse(place, rule)
            return {}, nullable
        inner = schemas.resolve_reference(others[0], self.root)
        return {**inner, **field}, nullable

    @staticmethod
    def _drop_null_type(field: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        kinds = field.get("type")
        if isinstance(kinds, list) and "null" in kinds and len(kinds) == 2:
            return {**field, "type": next(k for k in kinds if k != "null")}, True
        return field, False

    def _build_field(self, field: Schema, place: str) -> dict[str, Any]:
        kind = field.get("type")
        if kind is None and "enum" in field:
            kind = "string"
        if not isinstance(kind, str) or kind not in _TYPES:
            words = ", ".join(_TYPES)
            self._refuse(f"{place}.type", f"one of {words}")
            return {}
        self._refuse_unknown(field, _FIELD_KEYS, place)
        built = {"type": kind, **self._build_words(field, place)}
        if kind == "array":
            built |= self._build_list(field, place)
        else:
            built |= self._build_scalar(kind, field, place)
        return built | self._build_default(built, field, place)

    def _build_scalar(self, kind: str, field: Schema, place: str) -> dict[str, Any]:
        built: dict[str, Any] = {}
        if "enum" in field and kind != "boolean":
            built["enum"] = self._build_options(kind, field["enum"], place)
            built |= self._build_option_names(built["enum"], field, place)
        if kind == "string":
            built |= self._build_counts(field, _LENGTHS, place)
            if (name := field.get("format")) is not None:
                if name not in FORMATS:
                    self._refuse(f"{place}.format", f"one of {', '.join(FORMATS)}")
                built["format"] = name
        elif kind in {"number", "integer"}:
            built |= self._build_bounds(field, place)
        return built

    def _build_list(self, field: Schema, place: str) -> dict[str, Any]:
        items, _ = self._resolve(field.get("items"), f"{place}.items")
        if items.get("type", "string") != "string":
            self._refuse(f"{place}.items.type", 'write "string": a list has texts only')
            return {}
        self._refuse_unknown(
            items, _FIELD_KEYS - {"items", "default"}, f"{place}.items"
        )
        entry = {
            "type": "string",
            **self._build_words(items, f"{place}.items"),
            **self._build_scalar("string", items, f"{place}.items"),
        }
        counts = self._build_counts(field, _COUNTS, place)
        counts.setdefault("maxItems", MAX_ITEMS)
        unique = {"uniqueItems": True} if field.get("uniqueItems") is True else {}
        return {"items": entry, **counts, **unique}

    def _build_options(self, kind: str, options: Any, place: str) -> list[Any]:
        place = f"{place}.enum"
        if not isinstance(options, list) or not 1 <= len(options) <= MAX_OPTIONS:
            self._refuse(place, f"1 to {MAX_OPTIONS} options")
            return []
        if len({json.dumps(option) for option in options}) < len(options):
            self._refuse(place, "each option once")
        for number, option in enumerate(options):
            if problem := _find_option_problem(kind, option):
                self._refuse(f"{place}[{number}]", problem)
        return options

    def _build_option_names(
        self, options: Sequence[Any], field: Schema, place: str
    ) -> dict[str, Any]:
        """What people read instead of the values, as MCP's elicitation names them."""
        names = field.get("enumNames")
        if names is None:
            return {}
        if (
            not isinstance(names, list)
            or len(names) != len(options)
            or not all(isinstance(n, str) and 1 <= len(n) <= MAX_TITLE for n in names)
        ):
            rule = f"a text of 1 to {MAX_TITLE} characters for each of `enum`"
            self._refuse(f"{place}.enumNames", rule)
            return {}
        for number, name in enumerate(names):
            if any(unicode.is_hidden(char) for char in name):
                self._refuse(f"{place}.enumNames[{number}]", VISIBLE_RULE)
        return {"enumNames": [self.redact(name) for name in names]}

    def _build_words(self, part: Schema, place: str) -> dict[str, str]:
        built = {}
        for key, longest in _WORDS.items():
            words = part.get(key)
            if words is None:
                continue
            if not isinstance(words, str) or len(words) > longest:
                self._refuse(
                    f"{place}.{key}", f"a text of at most {longest} characters"
                )
                continue
            built[key] = self.redact(words)
        return built

    def _build_counts(
        self, field: Schema, limits: Mapping[str, int], place: str
    ) -> dict[str, int]:
        built = {}
        for key, most in limits.items():
            value = field.get(key)
            if value is None:
                continue
            if type(value) is not int or not 0 <= value <= most:
                self._refuse(f"{place}.{key}", f"a whole number from 0 to {most}")
            else:
                built[key] = value
        lower, upper = limits
        if lower in built and upper in built and built[lower] > built[upper]:
            self._refuse(f"{place}.{lower}", f"at most `{upper}`")
        return built

    def _build_bounds(self, field: Schema, place: str) -> dict[str, int | float]:
        built = {}
        for key in _BOUNDS:
            value = field.get(key)
            if value is None:
                continue
            if not _is_number(value):
                rule = f"a number between -{MAX_INTEGER} and {MAX_INTEGER}"
                self._refuse(f"{place}.{key}", rule)
            else:
                built[key] = value
        return built

    def _build_default(
        self, built: Schema, field: Schema, place: str
    ) -> dict[str, Any]:
        """The value that the form begins with, if it is one that the field takes."""
        value = field.get("default")
        if value is None or (built["type"] == "array" and value == []):
            return {}
        if built["type"] == "array":
            self._refuse(f"{place}.default", "leave it out: a list begins empty")
            return {}
        alone = {"type": "object", "properties": {"value": built}}
        problem = _find_text_problem(value) if isinstance(value, str) else ""
        try:
            errors = schemas.list_errors(
                schemas.compile_schema(alone), {"value": value}
            )
        except schemas.InvalidSchema:
            errors = []  # refused at its own place
        if problem or errors:
            self._refuse(f"{place}.default", problem or errors[0]["message"])
        return {"default": value}

    def _refuse_unknown(self, part: Schema, known: set[str], place: str) -> None:
        for key in part:
            if key not in known:
                rule = _LATER.get(key, "leave it out: questions do not use it")
                self._refuse(f"{place}.{key[:64]}", rule)

    def _refuse(self, place: str, rule: str) -> None:
        self.errors.append(build_field_error(place, rule))


def _find_option_problem(kind: str, option: Any) -> str:
    if kind != "string":
        whole = kind == "number" or type(option) is int
        return "" if whole and _is_number(option) else f"an option of this {kind}"
    if not isinstance(option, str) or not 1 <= len(option) <= MAX_TITLE:
        return f"a text of 1 to {MAX_TITLE} characters"
    return _find_text_problem(option)


def _find_text_problem(text: str) -> str:
    """Why a text that is both shown and returned may not be what it is."""
    if any(unicode.is_hidden(char) for char in text):
        return VISIBLE_RULE
    if kinds := redaction.list_kinds(text):
        what = ", ".join(kinds)
        return f"holds personal data or a credential ({what}); use a name for it"
    return ""


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and abs(value) <= MAX_INTEGER
    )
