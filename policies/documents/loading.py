"""Parses a policy document from YAML text or plain data, or refuses it with all of its
errors. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import yaml
from pydantic import ValidationError

from journal import canonical
from journal.errors import FieldError, InvalidJson, Policy, at

from .checks import Problem, problems
from .document import Document
from .places import Lines, line_of, lines_of, path_of
from .wording import rephrase

Check = Callable[[Document], Iterable[Problem]]

MAX_LETTERS = 512 * 1024
# Keys with many members: an error in one member does not affect the others.
_PARTS = ("tools", "rules", "measures", "calendars", "verifiers")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class InvalidPolicy(Policy):
    """This is not a policy that can be followed. Nothing was saved.
    See `errors` for where."""


def parse(
    source: str | Mapping[str, Any],
    *,
    variables: Mapping[str, str] | None = None,
    further: Check = lambda _: (),
) -> Document:
    """Parse and check a document. `${NAME}` in any text is replaced from `variables`;
    `further` are additional checks of the parsed document.

    Raises `InvalidPolicy` for text that is not strict YAML, an unset variable, an
    unknown field, a floor below its profile, fewer people than a tier needs, and any
    name or condition that does not match the rest of the document. It reports the
    errors of all stages together, each with its line in the text.
    """
    data, lines = _read(source) if isinstance(source, str) else (source, {})
    unset: list[FieldError] = []
    data = _substitute(data, _Variables(variables or {}, unset))
    document, found = _validate(data, further)
    known = {one["path"] for one in unset}
    found = [*unset, *(one for one in found if one["path"] not in known)]
    if document is None or found:
        raise InvalidPolicy(errors=[_on_its_line(one, lines) for one in found])
    _check_storable(document)
    return document


def restore(data: Mapping[str, Any]) -> Document:
    """Parse stored data without the checks of a new document, so that a check that a
    later release adds cannot break the active policy.

    Raises `InvalidPolicy` for data that no release stored.
    """
    try:
        return Document.model_validate(data)
    except ValidationError as error:
        raise InvalidPolicy(errors=_located(error, data)) from None


def _validate(data: Any, further: Check) -> tuple[Document | None, list[FieldError]]:
    """The document, or its errors. Members with invalid fields are left out for a
    second attempt, so that the rest is checked as well."""
    found: list[FieldError] = []
    left_out: set[str] = set()
    document = None
    for _ in range(2):
        try:
            document = Document.model_validate(data)
            break
        except ValidationError as error:
            found += _located(error, data)
            data, names = _without_wrong(data, error)
            if not names:
                break
            left_out |= names
    if document is not None:
        stages = (*problems(document), *further(document))
        found += [at(*one) for one in stages if not _is_about(one, left_out)]
    return document if not found else None, found


def _is_about(problem: Problem, left_out: set[str]) -> bool:
    """Whether the problem mentions a left-out member, and so may only be a consequence
    of leaving it out."""
    return any(name in text for name in left_out for text in problem)


def _without_wrong(data: Any, error: ValidationError) -> tuple[Any, set[str]]:
    """The data without the tools, rules and other members that have errors, and their
    names. No names if an error is not inside such a member."""
    wrong: dict[str, set[int | str]] = {}
    for part in error.errors(include_url=False, include_input=False):
        location = part["loc"]
        if len(location) < 2 or location[0] not in _PARTS:
            return data, set()
        wrong.setdefault(str(location[0]), set()).add(location[1])
    kept, names = dict(data), set()
    for place, members in wrong.items():
        inside = data[place]
        names |= {
            path_of((place, one), data).removeprefix(f"{place}.") for one in members
        }
        if isinstance(inside, Mapping):
            kept[place] = {k: v for k, v in inside.items() if k not in members}
        else:
            kept[place] = [v for n, v in enumerate(inside) if n not in members]
    return kept, names


def _on_its_line(error: FieldError, lines: Lines) -> FieldError:
    line = line_of(error["path"], lines)
    return error if line is None else {**error, "line": line}


class _Strict(yaml.SafeLoader):
    """A YAML loader that refuses repeated keys, anchors and aliases."""

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


def _read(text: str) -> tuple[Any, Lines]:
    """The data of a YAML text, and its paths by line."""
    if len(text) > MAX_LETTERS:
        raise _refused("", f"a policy has at most {MAX_LETTERS} characters")
    try:
        return _compose(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise _refused(where, str(error.problem or error.context)) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _refused("", f"this is not YAML: {type(error).__name__}") from None


def _compose(text: str) -> tuple[Any, Lines]:
    loader = _Strict(text)
    try:
        root = loader.get_single_node()
        data = loader.construct_document(root) if root is not None else None
        return data, lines_of(root)
    finally:
        loader.dispose()


class _Variables(NamedTuple):
    """The values of the variables, and the errors collected for those that are not
    set."""

    values: Mapping[str, str]
    unset: list[FieldError]


def _substitute(value: Any, variables: _Variables, path: str = "") -> Any:
    if isinstance(value, Mapping):
        return {
            key: _substitute(part, variables, f"{path}.{key}".lstrip("."))
            for key, part in value.items()
        }
    if isinstance(value, list):
        return [
            _substitute(part, variables, f"{path}.{number}")
            for number, part in enumerate(value)
        ]
    if not isinstance(value, str):
        return value

    def replace(match: re.Match[str]) -> str:
        name = match[1]
        if name not in variables.values:
            message = f"the variable {name} is not set: --set {name}=VALUE"
            variables.unset.append(at(path, message))
        return variables.values.get(name, match[0])

    return _VARIABLE.sub(replace, value)


def _check_storable(document: Document) -> None:
    """Raise InvalidPolicy unless the document has a canonical form, and so a digest: no
    unpaired surrogates, and no integers that JSON cannot carry."""
    try:
        canonical.parse(canonical.encode(document.model_dump(mode="json")))
    except InvalidJson as error:
        raise InvalidPolicy(errors=error.errors) from None
    except ValueError:
        raise _refused("", "a value of this policy cannot be written") from None


def _located(error: ValidationError, data: Any) -> list[FieldError]:
    return [
        at(
            path_of(part["loc"], data, lacking=part["type"] == "missing"),
            rephrase(part),
        )
        for part in error.errors(include_url=False, include_input=False)
    ]


def _refused(path: str, message: str) -> InvalidPolicy:
    return InvalidPolicy(errors=[at(path, message)])
