"""Conditions of rules, in CEL: compiled once, evaluated on facts alone. Pure.

Macros are disabled and there is no clock, so an evaluation is linear in the sizes of
the expression and the arguments, which are both limited. Reading a missing fact is an
error, and an error blocks the proposal. A rule that does not intend that has to test
for the fact first: `"partial" in args && args.partial`. (`has()` is a macro.)
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from cel_expr_python import cel

MAX_LENGTH = 1000

_TEXTS = cel.Type.Map(cel.Type.STRING, cel.Type.STRING)
_NUMBERS = cel.Type.Map(cel.Type.STRING, cel.Type.INT)
_ANY = cel.Type.Map(cel.Type.STRING, cel.Type.DYN)
VARIABLES = {
    "args": _ANY,  # money fields as integer minor units
    "money": _ANY,  # amount_minor, currency
    "tool": cel.Type.STRING,  # the tool's name
    "risk": cel.Type.STRING,  # the risk of the tool or its class, before any rule
    "floor": cel.Type.STRING,  # the tier before any rule
    "class": cel.Type.STRING,  # the effect class, or ""
    "profile": _ANY,  # the profile of the tool or its class: reversible and so on
    "agent": _ANY,  # name, unattended
    "thread": cel.Type.STRING,  # the agent's run
    "uncertain": cel.Type.DOUBLE,  # how unsure the agent says it is, from 0 to 1
    "clock": _ANY,  # hour, minute, weekday, <calendar>_open
    "sum": _NUMBERS,  # minor units by measure, this proposal included
    "count": _NUMBERS,  # proposals or events by measure
    "before": _ANY,  # facts from the tool's reader
    "keys": _TEXTS,  # aggregation keys that the reader resolved
}
MAPS = {name for name, kind in VARIABLES.items() if kind.name() != "STRING"} - {
    "uncertain"
}

_ENVIRONMENT = cel.NewEnv(
    config=cel.NewEnvConfigFromYaml(
        "name: counterseal\nstdlib:\n  disable_macros: true\n"
        # A pattern taken from an argument would let the agent write part of the rule.
        "  exclude_functions:\n    - name: matches\n"
    ),
    variables=VARIABLES,
)
_TOKEN = re.compile(
    r"//[^\n]*|\s+"  # comments and white space are skipped
    r"|(?P<text>[rRbB]{0,2}(?:\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'))"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<number>\d[\w.]*)|(?P<mark>.)",
    re.ASCII | re.DOTALL,
)


class InvalidCondition(ValueError):
    """The expression cannot be used as a condition. The message says why."""


class ConditionError(Exception):
    """The condition could not be evaluated on these facts. The message names the fact
    that the expression reads, never a value."""


@dataclass(frozen=True, slots=True)
class Condition:
    """A compiled expression and the facts that it names.

    `reads` are (map, entry) pairs such as ("args", "amount"). `tested` are the pairs
    whose presence the expression tests itself.
    """

    text: str
    reads: frozenset[tuple[str, str]]
    tested: frozenset[tuple[str, str]]
    _expression: Any = field(repr=False, compare=False)

    def holds(self, facts: ConditionFacts) -> bool:
        """Whether the condition is true on these facts. Raises `ConditionError`, on
        which the caller must block."""
        try:
            result = self._expression.eval(facts.activation)
        except RuntimeError as error:  # text that is not Unicode, for example
            raise ConditionError(self._explain("")) from error
        if result.type() == cel.Type.BOOL:
            return bool(result.value())
        raise ConditionError(self._explain(str(result.value())))

    def _explain(self, problem: str) -> str:
        if problem.startswith("NOT_FOUND"):
            for place, name in sorted(self.reads):
                if f'"{name}"' in problem:
                    return f"{place}.{name} does not exist"
            return "it reads a fact that does not exist"
        return "its facts have types or sizes that it does not expect"


class ConditionFacts:
    """The facts of one proposal, bound once for all conditions."""

    __slots__ = ("activation",)

    def __init__(self, facts: Mapping[str, Any]) -> None:
        """`facts` are those of `policies.facts`; names of no condition are ignored."""
        known = {name: facts[name] for name in VARIABLES if name in facts}
        self.activation = _ENVIRONMENT.Activation(known)


def compile_condition(text: str) -> Condition:
    """Compile one expression to a condition. Raises `InvalidCondition` for unknown
    names and functions, macros, types that do not match, a result that is not a
    boolean, and more than 1,000 characters."""
    if len(text) > MAX_LENGTH:
        raise InvalidCondition(f"a condition has at most {MAX_LENGTH} characters")
    try:
        expression = _ENVIRONMENT.compile(text)
    except RuntimeError as error:
        raise InvalidCondition(_first_line(str(error))) from None
    # A fact alone is DYN; `Condition.holds` checks that its value is a boolean.
    if expression.return_type() not in (cel.Type.BOOL, cel.Type.DYN):
        raise InvalidCondition(
            "a condition must be true or false; compare it with a value"
        )
    tokens = list(_list_tokens(text))
    return Condition(text, _find_reads(tokens), _find_tested(tokens), expression)


def _first_line(message: str) -> str:
    line = message.split("\n", 1)[0]
    return line.removeprefix("INVALID_ARGUMENT: ").removeprefix("ERROR: <input>:")


def _list_tokens(text: str) -> Iterator[tuple[str, str]]:
    for match in _TOKEN.finditer(text):
        if match.lastgroup:
            yield match.lastgroup, match.group()


def _find_reads(tokens: list[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    """The entries read as `args.amount` or `args["amount"]`. Raises InvalidCondition
    for a computed index, because the checks of a document could not tell what such a
    rule reads."""
    reads = set()
    padded = [("mark", ""), *tokens, ("mark", ""), ("mark", "")]
    for before, (kind, name), mark, entry in zip(
        padded, padded[1:], padded[2:], padded[3:], strict=False
    ):
        if kind != "name" or name not in MAPS or before[1] == ".":
            continue
        if mark[1] == "." and entry[0] == "name":
            reads.add((name, entry[1]))
        elif mark[1] == "[":
            if entry[0] != "text":
                raise InvalidCondition(f'name what it reads: {name}["..."]')
            reads.add((name, entry[1].strip("\"'")))
    return frozenset(reads)


def _find_tested(tokens: list[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    """The entries tested as `"partial" in args`."""
    return frozenset(
        (place[1], entry[1].strip("\"'"))
        for entry, word, place in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if entry[0] == "text" and word[1] == "in" and place[1] in MAPS
    )
