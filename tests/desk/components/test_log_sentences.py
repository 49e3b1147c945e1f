"""What the log says in words: every kind of record that anything appends."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from desk.components.log_sentences import SENTENCES, describe_record
from journal.models import LogRecord
from journal.state_machine import Machine
from reviews import transitions
from reviews.effects.wording import WordingPart
from tests.conftest import ROOT

PACKAGES = ("journal", "policies", "reviews", "agents")
APPENDS = re.compile(r"append|Entry|_?log(_\w+)?|_?append_\w+|_?record_\w+_event")
# Said in words of their own.
BY_VERDICT = {"decision.recorded", "decision.refused"}


def appended() -> Iterator[str]:
    """The kinds that the sources name where they append a record."""
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Call) and APPENDS.fullmatch(_name(node.func)):
                    yield from _kinds(node.args)


def _name(func: ast.expr) -> str:
    return str(getattr(func, "attr", getattr(func, "id", "")))


def _kinds(args: list[ast.expr]) -> Iterator[str]:
    for arg in args:
        for node in ast.walk(arg):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                head, dot, tail = node.value.partition(".")
                if dot and head.isalpha() and tail.replace("_", "").isalpha():
                    yield node.value


def test_a_changed_person_is_said_with_what_changed() -> None:
    leaf = {
        "kind": "person.changed",
        "data": {"fields": "role email"},
        "verdict": "",
        "policy": None,
    }
    row = LogRecord(kind="person.changed")
    parts = describe_record(
        row, leaf, WordingPart("Ada", True), WordingPart("Bob", True)
    )
    assert "".join(part.text for part in parts) == "Ada changed role and email of Bob"


def test_every_record_is_a_sentence() -> None:
    machines = [one for one in vars(transitions).values() if isinstance(one, Machine)]
    found = {edge.logged_as for one in machines for edge in one.edges}
    assert len(found) > 20
    found |= set(appended())
    assert {"agent.released", "person.admitted", "value.revealed"} <= found
    assert found - set(SENTENCES) - BY_VERDICT == set()
