"""Parses a policy document from YAML text or plain data, or refuses it with all of its
errors. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any, NamedTuple

import yaml
from pydantic import ValidationError

from journal import canonical
from journal.errors import FieldError, InvalidJson, PolicyViolation, build_field_error

from .checks import list_problems
from .document import Document
from .places import LineNumbers, find_line, format_path, map_paths_to_lines
from .wording import Problem, rephrase_error

DocumentCheck = Callable[[Document], Iterable[Problem]]

MAX_CHARACTERS = 512 * 1024
MAX_NODES = 30_000  # keys, values, lists and mappings of a text
MAX_DEPTH = 40
MAX_MEMBERS = 1000  # tools, rules, and keys of any mapping
MAX_ELEMENTS = 5000  # of any other list
MOST_ERRORS = 100
MOST_PATH = 300  # characters of an error's path
MORE_ERRORS = "there are more errors: correct these first"
# Keys with many members: an error in one member does not affect the others.
_PARTS = ("tools", "rules", "measures", "calendars", "verifiers")
# The parser in C, where PyYAML has it, is ten times as fast.
_Parser: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


class InvalidPolicy(PolicyViolation):
    """This is not a policy that can be followed. Nothing was saved.
    See `errors` for where."""


def parse_document(
    source: str | Mapping[str, Any],
    *,
    variables: Mapping[str, str] | None = None,
    further: DocumentCheck = lambda _: (),
) -> Document:
    """Parse and check a document. `${NAME}` in any text is replaced from `variables`;
    `further` are additional checks of the parsed document. Raises `InvalidPolicy` for
    text that is not strict YAML, an unset variable, an unknown field, a floor below its
    profile, fewer people than a tier needs, and any name or condition that does not
    match the rest of the document. It reports the errors of all stages together, each
    with its line in the text."""
    data, lines = _read_text(source) if isinstance(source, str) else (source, {})
    unset: list[FieldError] = []
    data = _substitute_variables(data, _Variables(variables or {}, unset))
    document, errors = _validate_document(data, further)
    known = {error["path"] for error in unset}
    errors = [*unset, *(error for error in errors if error["path"] not in known)]
    if document is None or errors:
        raise InvalidPolicy(errors=_finish_errors(errors, lines))
    _check_storable(document)
    return document


def restore_document(data: Mapping[str, Any]) -> Document:
    """Parse stored data without the checks of a new document, so that a check that a
    later release adds cannot break the active policy. Raises `InvalidPolicy` for data
    that no release stored."""
    try:
        return Document.model_validate(data)
    except ValidationError as error:
        raise InvalidPolicy(errors=_to_field_errors(error, data)) from None


def _validate_document(
    data: Any, further: DocumentCheck
) -> tuple[Document | None, list[FieldError]]:
    """The document, or its errors. Members with invalid fields are left out for a
    second attempt, so that the rest is checked as well."""
    if errors := _list_size_errors(data):
        return None, errors
    left_out: set[str] = set()
    document = None
    for _ in range(2):
        try:
            document = Document.model_validate(data)
            break
        except ValidationError as error:
            errors += _to_field_errors(error, data)
            if len(errors) > MOST_ERRORS:
                break
            data, names = _drop_wrong_parts(data, error)
            if not names:
                break
            left_out |= names
    if document is not None:
        stages = chain(list_problems(document), further(document))
        problems = (p for p in stages if not _mentions_left_out(p, left_out))
        errors += [build_field_error(*p) for p in islice(problems, MOST_ERRORS + 1)]
    return document if not errors else None, errors


def _list_size_errors(data: Any) -> list[FieldError]:
    """Each mapping and list with more members than can be checked in a moment: every
    unknown key and wrong element would be an error of its own."""
    if not isinstance(data, Mapping):
        return []
    return [
        build_field_error(path, f"at most {most:,} are allowed here, not {count:,}")
        for path, count, most in islice(_walk_large(data), MOST_ERRORS)
    ]


def _walk_large(value: Any, path: str = "") -> Iterator[tuple[str, int, int]]:
    """Path, number of members and limit of each part that has too many. The schema of a
    tool's arguments has limits of its own."""
    if not isinstance(value, Mapping | list):
        return
    is_short = isinstance(value, Mapping) or path in _PARTS
    most = MAX_MEMBERS if is_short else MAX_ELEMENTS
    if len(value) > most:
        yield path, len(value), most
        return
    pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
    for name, part in pairs:
        if name != "schema":
            yield from _walk_large(part, f"{path}.{name}".lstrip("."))


def _finish_errors(errors: list[FieldError], lines: LineNumbers) -> list[FieldError]:
    """The first errors with their lines, and a last one if there are more."""
    finished = [_add_line(error, lines) for error in errors[:MOST_ERRORS]]
    if len(errors) > MOST_ERRORS:
        finished.append(build_field_error("", MORE_ERRORS))
    return finished


def _mentions_left_out(problem: Problem, left_out: set[str]) -> bool:
    """Whether the problem may only be a consequence of leaving a member out."""
    return any(name in text for name in left_out for text in problem)


def _drop_wrong_parts(data: Any, error: ValidationError) -> tuple[Any, set[str]]:
    """The data without the tools, rules and other members that have errors, and their
    names. No names if an error is not inside such a member."""
    wrong: dict[str, set[int | str]] = {}
    for part in error.errors(include_url=False, include_input=False):
        location = part["loc"]
        if len(location) < 2 or location[0] not in _PARTS:
            return data, set()
        wrong.setdefault(str(location[0]), set()).add(location[1])
    rest, names = dict(data), set()
    for place, members in wrong.items():
        inside = data[place]
        paths = (format_path((place, member), data) for member in members)
        names |= {path.removeprefix(f"{place}.") for path in paths}
        if isinstance(inside, Mapping):
            rest[place] = {k: v for k, v in inside.items() if k not in members}
        else:
            rest[place] = [v for n, v in enumerate(inside) if n not in members]
    return rest, names


def _add_line(error: FieldError, lines: LineNumbers) -> FieldError:
    line = find_line(error["path"], lines)
    short: FieldError = {**error, "path": error["path"][:MOST_PATH]}
    return short if line is None else {**short, "line": line}


class _StrictLoader(_Parser):  # type: ignore[misc]  # one of two classes
    """A YAML loader that refuses repeated keys. It reads numbers as JSON and YAML 1.2
    do: `18:30` is a text and no number to the base 60."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        mapping: dict[Any, Any] = super().construct_mapping(node, deep=True)
        if len(mapping) != len(node.value):
            raise yaml.MarkedYAMLError(
                problem="this key is used twice", problem_mark=node.start_mark
            )
        return mapping


def _build_resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """The parser's patterns of plain values, with other ones for numbers."""
    numbers = {
        "tag:yaml.org,2002:int": re.compile(
            r"(?:[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]*|[1-9][0-9_]*))$"
        ),
        "tag:yaml.org,2002:float": re.compile(
            r"(?:[-+]?(?:[0-9][0-9_]*)?\.[0-9_]+(?:[eE][-+]?[0-9]+)?|"
            r"[-+]?[0-9][0-9_]*\.(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|"
            r"\.(?:nan|NaN|NAN))$"
        ),
    }
    return {
        first: [(tag, numbers.get(tag, pattern)) for tag, pattern in known]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


_StrictLoader.yaml_implicit_resolvers = _build_resolvers()


def _check_events(text: str) -> None:
    """Refuse anchors, aliases, and texts that are too deep or have too many parts,
    before anything is built from them."""
    depth = parts = 0
    event: Any
    for event in yaml.parse(text, Loader=_Parser):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise yaml.MarkedYAMLError(
                problem="anchors and aliases are not allowed",
                problem_mark=event.start_mark,
            )
        parts += isinstance(event, yaml.NodeEvent)
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH or parts > MAX_NODES:
            rule = f"at most {MAX_DEPTH} levels and {MAX_NODES:,} parts are allowed"
            raise yaml.MarkedYAMLError(problem=rule, problem_mark=event.start_mark)


def _read_text(text: str) -> tuple[Any, LineNumbers]:
    """The data of a YAML text, and its paths by line."""
    if len(text) > MAX_CHARACTERS:
        raise _build_refusal(
            "", f"a policy may have at most {MAX_CHARACTERS} characters"
        )
    try:
        return _compose_yaml(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise _build_refusal(where, str(error.problem or error.context)) from None
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        raise _build_refusal("", f"this is not YAML: {type(error).__name__}") from None


def _compose_yaml(text: str) -> tuple[Any, LineNumbers]:
    _check_events(text)
    loader = _StrictLoader(text)
    try:
        root = loader.get_single_node()
        data = loader.construct_document(root) if root is not None else None
        return data, map_paths_to_lines(root)
    finally:
        loader.dispose()


class _Variables(NamedTuple):
    """The values of the variables, and the errors of those that are not set."""

    values: Mapping[str, str]
    unset: list[FieldError]


def _substitute_variables(value: Any, variables: _Variables, path: str = "") -> Any:
    if isinstance(value, Mapping):
        return {
            key: _substitute_variables(part, variables, f"{path}.{key}".lstrip("."))
            for key, part in value.items()
        }
    if isinstance(value, list):
        return [
            _substitute_variables(part, variables, f"{path}.{number}")
            for number, part in enumerate(value)
        ]
    if not isinstance(value, str):
        return value

    def replace(match: re.Match[str]) -> str:
        name = match[1]
        if name not in variables.values:
            message = f"the variable {name} is not set: add --set {name}=VALUE"
            if not any(message == error["message"] for error in variables.unset):
                variables.unset.append(build_field_error(path, message))
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
        raise _build_refusal("", "a value of this policy cannot be stored") from None


def _to_field_errors(error: ValidationError, data: Any) -> list[FieldError]:
    details = error.errors(include_url=False, include_input=False)
    return [
        build_field_error(
            format_path(part["loc"], data, lacking=part["type"] == "missing"),
            rephrase_error(part),
        )
        for part in details[: MOST_ERRORS + 1]
    ]


def _build_refusal(path: str, message: str) -> InvalidPolicy:
    return InvalidPolicy(errors=[build_field_error(path, message)])
