"""From text to a `Document`, or to a refusal that names field and rule. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml
from pydantic import ValidationError

from journal import canonical
from journal.errors import FieldError, InvalidJson, Policy, at

from .checks import problems
from .document import Document

MAX_LETTERS = 512 * 1024
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class InvalidPolicy(Policy):
    """This is not a policy that can be followed. Nothing was saved.
    See `errors` for where."""


def parse(
    source: str | Mapping[str, Any], *, variables: Mapping[str, str] | None = None
) -> Document:
    """The checked document. `${NAME}` in any text is replaced from `variables`.

    Raises `InvalidPolicy` for text that is not strict YAML, an unknown variable or
    field, a floor below its profile, fewer people than a tier needs, and any name or
    condition that does not fit the rest of the document.
    """
    data = _read(source) if isinstance(source, str) else source
    try:
        document = Document.model_validate(_substitute(data, variables or {}, ""))
    except ValidationError as error:
        raise InvalidPolicy(errors=_located(error, data)) from None
    found = [at(path, message) for path, message in problems(document)]
    if found:
        raise InvalidPolicy(errors=found)
    _check_storable(document)
    return document


class _Strict(yaml.SafeLoader):
    """Plain YAML without repeated keys, anchors and aliases."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise yaml.MarkedYAMLError(
                problem="anchors and aliases are not read",
                problem_mark=event.start_mark,
            )
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        mapping = super().construct_mapping(node, deep=True)
        if len(mapping) != len(node.value):
            raise yaml.MarkedYAMLError(
                problem="a key stands twice here", problem_mark=node.start_mark
            )
        return mapping


def _read(text: str) -> Any:
    if len(text) > MAX_LETTERS:
        raise _refused("", f"a policy has at most {MAX_LETTERS} characters")
    try:
        return yaml.load(text, Loader=_Strict)  # noqa: S506 (a SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise _refused(where, str(error.problem or error.context)) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _refused("", f"this is not YAML: {type(error).__name__}") from None


def _substitute(value: Any, variables: Mapping[str, str], path: str) -> Any:
    if isinstance(value, Mapping):
        return {
            key: _substitute(part, variables, f"{path}.{key}".lstrip("."))
            for key, part in value.items()
        }
    if isinstance(value, list):
        return [_substitute(part, variables, path) for part in value]
    if not isinstance(value, str):
        return value

    def replace(match: re.Match[str]) -> str:
        try:
            return variables[match[1]]
        except KeyError:
            raise _refused(path, f"the variable {match[1]} is not set") from None

    return _VARIABLE.sub(replace, value)


def _check_storable(document: Document) -> None:
    """That it has one canonical form, and so one digest: no half characters, no
    integers that JSON cannot carry."""
    try:
        canonical.parse(canonical.encode(document.model_dump(mode="json")))
    except InvalidJson as error:
        raise InvalidPolicy(errors=error.errors) from None
    except ValueError:
        raise _refused("", "a value of this policy cannot be written") from None


def _located(error: ValidationError, data: Any) -> list[FieldError]:
    return [
        at(_path(part["loc"], data), _message(part["msg"]))
        for part in error.errors(include_url=False, include_input=False)
    ]


def _path(location: tuple[int | str, ...], data: Any) -> str:
    """`rules.refund.over_500.then.tier`: a rule or class by its name, not by number."""
    steps = []
    for step in location:
        data = _member(data, step)
        named = isinstance(step, int) and isinstance(data, Mapping)
        name = (data.get("id") or data.get("name")) if named else None
        steps.append(str(name or step))
    return ".".join(steps)


def _member(data: Any, step: int | str) -> Any:
    try:
        return data[step]
    except (KeyError, IndexError, TypeError):
        return data if isinstance(step, str) else None  # a step of a union's branch


def _message(message: str) -> str:
    return message.removeprefix("Value error, ")


def _refused(path: str, message: str) -> InvalidPolicy:
    return InvalidPolicy(errors=[at(path, message)])
