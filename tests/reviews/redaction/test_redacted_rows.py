"""What a tool's policy keeps out of texts: the named arguments' values, everywhere."""

from __future__ import annotations

import re
from typing import Any

import pytest

from agents.models import Checkpoint
from journal.models import LogRecord
from reviews import redaction
from reviews.executions import claims
from reviews.executions import record as executions
from reviews.models import Execution, Revision
from reviews.tool_services.executors import EffectOutcome
from tests import factories
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.processor_time import costs_less

KEY = bytes(range(32))
NUMBER = "AC-77 1029"
SPELT = ("AC-77 1029", "ac771029", "AC 77/10-29", "Ac\u200b-771029", "(AC-77 1029)")


def redact(text: str, *hidden: Any) -> str:
    named = redaction.collect_concealed({"x": list(hidden)}, ["x"])
    return redaction.redact_text(text, key=KEY, hidden=named).text


@pytest.fixture
def discreet(gate: Gate) -> Gate:
    """Notes of payments are kept out of texts."""
    document = factories.document_of_tests()
    document["tools"]["pay"]["redact"] = ["note"]
    factories.policy(gate.people, document)
    return gate


def paying(note: str = NUMBER) -> dict[str, Any]:
    return {"customer": "C-1", "amount": "40.00", "currency": "USD", "note": note}


def said(text: str) -> dict[str, Any]:
    """Every slot for words that an agent has, all with the same ones."""
    return {
        "rationale": text,
        "expected_outcome": text,
        "reversal": text,
        "alternatives": [{"action": text, "why_not": text}],
        "evidence": [{"kind": "message", "source": text, "text": text}],
        "on_behalf_of": {"kind": "customer", "id": text, "chain": [text]},
        "checkpoint": {"summary": text, "state": {"deep": [text], "note": "any"}},
    }


def kept_words() -> str:
    """All that is stored of a proposal but its arguments."""
    execution = Execution.objects.first()
    revisions = execution.proposal.revisions.all() if execution else []
    words = [
        [r.rationale, r.expected_outcome, r.reversal, r.alternatives, r.evidence]
        for r in revisions
    ]
    points = list(Checkpoint.objects.values_list("summary", "state"))
    leaves = [bytes(leaf) for leaf in LogRecord.objects.values_list("leaf", flat=True)]
    behalf = [r.proposal.on_behalf_of for r in revisions]
    shown = [execution.result_shown, execution.detail] if execution else []
    return str([words, points, leaves, behalf, shown])


@pytest.mark.parametrize("spelt", SPELT)
def test_a_named_argument_stands_in_no_text_that_is_kept(
    discreet: Gate, spelt: str
) -> None:
    request = propose(
        discreet.agent, args=paying(), **said(f"to {spelt}, please")
    ).request
    decide(request, discreet.rita)
    execution = Execution.objects.get()
    record(execution, EffectOutcome("succeeded", {"to": spelt, "note": 1}))
    assert "771029" not in re.sub(r"[^0-9a-z]", "", kept_words().lower())
    revision = execution.grant.revision
    assert "[secret · redacted · #" in revision.rationale
    assert revision.args["note"] == NUMBER, "what is approved is all there"


def test_what_is_called_like_it_goes_whole_where_names_are_foreign(
    discreet: Gate,
) -> None:
    state = {"summary": "s", "state": {"note": "other", "else": "other"}}
    words = [{"kind": "note", "text": "other"}]
    propose(discreet.agent, "pay", args=paying(), checkpoint=state, evidence=words)
    kept = Checkpoint.objects.get().state
    assert kept["else"] == "other"
    assert "redacted" in kept["note"]
    assert Revision.objects.get().evidence[0]["text"] == "other"


def record(execution: Execution, outcome: EffectOutcome) -> None:
    claim = claims.claim_execution(
        execution_id=execution.pk, actor=claims.EXECUTOR_ACTOR
    )
    assert claim
    executions.record_outcome(
        execution_id=execution.pk,
        fence=claim.fence,
        outcome=outcome,
        actor=claims.EXECUTOR_ACTOR,
    )


def test_the_value_of_an_earlier_revision_stays_out_too(discreet: Gate) -> None:
    proposal = propose(discreet.agent, args=paying())
    factories.revised(discreet.agent, proposal, paying("BX-1234"))
    proposal.refresh_from_db()
    decide(
        proposal.request,
        discreet.rita,
        "modify",
        args=paying("QQ-5678") | {"amount": "39.00"},
    )
    execution = Execution.objects.get()
    record(
        execution, EffectOutcome("failed", None, "no", f"{NUMBER}, bx1234 or QQ 5678")
    )
    execution.refresh_from_db()
    assert execution.detail.count("redacted") == 3


def test_a_sensitive_value_is_not_given_away_by_a_text(gate: Gate) -> None:
    document = factories.document_of_tests()
    document["tools"]["pay"]["sensitive"] = ["customer"]
    factories.policy(gate.people, document)
    proposal = propose(gate.agent, rationale="Customer C-1900 asked", customer="C-1900")
    assert "C-1900" not in proposal.current.rationale


def test_without_names_nothing_changes(gate: Gate) -> None:
    proposal = propose(gate.agent, args=paying(), rationale=f"to {NUMBER}")
    assert proposal.current.rationale == f"to {NUMBER}"


class TestWhere:
    def test_equal_values_have_equal_tags_however_they_are_spelt(self) -> None:
        chips = {redact(spelt.strip("()"), NUMBER) for spelt in SPELT}
        assert len(chips) == 1

    def test_what_a_value_is_says_more_than_where_it_stood(self) -> None:
        shown = redact("for dana@x.org", "dana@x.org")
        assert shown == redact("for dana@x.org")
        assert shown.startswith("for [e-mail")

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            ("me", "tell me more"),  # too short to mean anything
            ("1234", "order 12345"),  # another number
            ("1234", "1, 2, 3, 4"),
            ("dana", "dananina"),
            (True, "True story"),
            ("", "anything"),
        ],
    )
    def test_what_only_looks_alike_stays(self, value: Any, text: str) -> None:
        assert redact(text, value) == text

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            ("1234", "pin:1234."),
            (4321, "4321"),
            ("1234", "pin1234"),
            ("#hunter2!", "it is #hunter2! now"),
            ("12345678", "x12345678901"),
            ({"a": ["Private lane"]}, "PRIVATE-LANE"),
            ("first line of it\nand the second line", "> and the second line"),
        ],
    )
    def test_what_is_meant_goes(self, value: Any, text: str) -> None:
        assert "redacted" in redact(text, value)
        assert "hunter" not in redact(text, value)

    def test_two_that_overlap_become_one_chip(self) -> None:
        shown = redact("call dana private lane", "dana private", "private lane")
        assert shown.count("redacted") == 1
        assert shown.startswith("call [")
        assert shown.endswith("]")

    def test_a_chip_is_never_taken_apart(self) -> None:
        once = redact(f"to {NUMBER}", NUMBER)
        assert redact(once, "redacted", NUMBER, "secret") == once

    def test_the_most_values_in_the_most_text_cost_little(self) -> None:
        """64 KiB of arguments against 128 KiB of words, made to look alike."""
        values = [f"aaaa{n:04}" for n in range(6000)]
        text = ("aaaa" * 2 + " ") * 14_000
        assert costs_less(lambda: redact(text, *values), seconds=5)
