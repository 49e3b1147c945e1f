"""What the log says in words: every kind of record that anything appends."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from journal.state_machine import Machine
from reviews import transitions
from reviews.desk.components.log_sentences import SENTENCES
from tests.conftest import ROOT

PACKAGES = ("journal", "policies", "reviews", "agents")
APPENDS = {"append", "Entry", "note", "_tell", "_note", "_tell_many"}
# Said in words of their own.
BY_VERDICT = {"decision.recorded", "decision.refused"}


def appended() -> Iterator[str]:
    """The kinds that the sources name where they append a record."""
    for package in PACKAGES:
        for file in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Call) and _name(node.func) in APPENDS:
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


def test_every_record_is_a_sentence() -> None:
    machines = [one for one in vars(transitions).values() if isinstance(one, Machine)]
    found = {edge.logged_as for one in machines for edge in one.edges}
    assert len(found) > 20
    found |= set(appended())
    assert {"agent.released", "person.admitted", "value.revealed"} <= found
    assert found - set(SENTENCES) - BY_VERDICT == set()
