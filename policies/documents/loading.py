"""From text to a `Document`, or to a refusal that names field and rule. Pure."""

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
# What a document has many of: one that is wrong says nothing of the others.
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
    """The checked document. `${NAME}` in any text is replaced from `variables`;
    `further` are checks that need more than the text.

    Raises `InvalidPolicy` for text that is not strict YAML, an unknown variable or
    field, a floor below its profile, fewer people than a tier needs, and any name or
    condition that does not fit the rest of the document. Its errors are of every
    stage, each with the line of the text that it is about.
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
    """A document that was checked when it was saved, read back as it was. What later
    releases refuse in new documents does not end what is in force.

    Raises `InvalidPolicy` for what no release stored.
    """
    try:
        return Document.model_validate(data)
    except ValidationError as error:
        raise InvalidPolicy(errors=_located(error, data)) from None


def _validate(data: Any, further: Check) -> tuple[Document | None, list[FieldError]]:
    """The document, or what is wrong with it. Parts whose fields are wrong are left out
    so that the rest is checked as well."""
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
    """Whether it may be a consequence of what was left out alone."""
    return any(name in text for name in left_out for text in problem)


def _without_wrong(data: Any, error: ValidationError) -> tuple[Any, set[str]]:
    """The data without the tools, rules and other parts in which something is wrong,
    and their names; none where the whole itself is wrong."""
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


def _read(text: str) -> tuple[Any, Lines]:
    """What the text says, and on which line it says what."""
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
    """The variables that are set, and the errors of those that are not."""

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
        at(
            path_of(part["loc"], data, lacking=part["type"] == "missing"),
            rephrase(part),
        )
        for part in error.errors(include_url=False, include_input=False)
    ]


def _refused(path: str, message: str) -> InvalidPolicy:
    return InvalidPolicy(errors=[at(path, message)])
