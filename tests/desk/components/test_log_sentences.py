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
ADA, BEA = WordingPart("Ada", True), WordingPart("Bea", True)
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
    said = describe("person.changed", fields="role email", person="u-2")
    assert said == "Ada changed the role and the mail address of Bea"


def describe(kind: str, **data: object) -> str:
    """What Ada, u-1, did to Bea."""
    leaf = {"kind": kind, "data": data, "verdict": "", "policy": None}
    agent = str(data.get("agent", ""))
    row = LogRecord(kind=kind, actor_kind="person", actor_id="u-1", agent=agent)
    return "".join(part.text for part in describe_record(row, leaf, ADA, BEA))


def test_records_of_people_and_agents_say_whom() -> None:
    kind, changed = "person.sessions_ended", {"before": {"tools": [], "owner": "u-3"}}
    for said, meant in (
        (describe(kind, person="u-2", count="1"), "Ada ended 1 session of Bea"),
        (describe(kind, person="u-1", count="3"), "Ada ended 3 sessions of their own"),
        (
            describe("authority.refused", person="u-2", change="widen"),
            "Ada refused more authority for Bea",
        ),
        (
            describe("stop.raised", scope="reviewer", key="u-2"),
            "Ada stopped reviewer Bea",
        ),
        (
            describe("agent.changed", agent="riley", **changed),
            "Ada changed the tools and the owner of riley",
        ),
    ):
        assert said == meant


def test_no_record_is_about_just_a_person_or_just_an_agent() -> None:
    vague = re.compile(r"\ba(n agent|n agent's| person|n agent key)\b")
    assert [text for text in SENTENCES.values() if vague.search(text)] == []


def test_every_record_is_a_sentence() -> None:
    machines = [one for one in vars(transitions).values() if isinstance(one, Machine)]
    found = {edge.logged_as for one in machines for edge in one.edges}
    assert len(found) > 20
    found |= set(appended())
    assert {"agent.released", "person.admitted", "value.revealed"} <= found
    assert found - set(SENTENCES) - BY_VERDICT == set()
