"""What the decision panel offers in a queue, and who sets it."""

from __future__ import annotations

from typing import Any

import pytest

from journal import errors
from journal.models import LogRecord
from policies.models import Queue
from reviews.administration import queue_presets
from reviews.administration.queue_presets import read_preset
from reviews.choices import VERDICT_SPECS, ReasonCode, Verdict
from reviews.models import QueuePreset
from tests.conftest import Gate

pytestmark = pytest.mark.django_db
OWN = {verdict: spec.reasons for verdict, spec in VERDICT_SPECS.items()}


def change(gate: Gate, by: str = "adam", **fields: Any) -> QueuePreset:
    wanted = {
        "queue_name": "money",
        "reasons": OWN,
        "texts": [],
        "reason": "A shorter list.",
        **fields,
    }
    return queue_presets.change_preset(by=gate.people[by], **wanted)


def money() -> Queue:
    return Queue.objects.get(name="money")


def test_without_a_preset_everything_is_offered(gate: Gate) -> None:
    offered = read_preset(money())
    assert offered.texts == ()
    for verdict in Verdict:
        assert offered.list_reasons(verdict) == OWN[verdict]


def test_a_preset_chooses_and_orders_in_one_queue(gate: Gate) -> None:
    codes = [ReasonCode.UNSAFE, ReasonCode.DUPLICATE]
    change(gate, reasons={**OWN, Verdict.REJECT: codes})
    offered = read_preset(money())
    assert offered.list_reasons(Verdict.REJECT) == codes
    assert offered.list_reasons(Verdict.ESCALATE) == OWN[Verdict.ESCALATE]
    assert set(QueuePreset.objects.get().reasons) == {"reject"}
    other = read_preset(Queue.objects.get(name="mail"))
    assert other.list_reasons(Verdict.REJECT) == OWN[Verdict.REJECT]


def test_a_later_preset_takes_the_place_of_the_earlier(gate: Gate) -> None:
    change(gate, texts=["One", "", "  Two  "])
    assert [ready.text for ready in read_preset(money()).texts] == ["One", "Two"]
    change(gate, texts=["Three"])
    offered = read_preset(money())
    (ready,) = offered.texts
    assert offered.find_text(ready.key) == "Three"
    assert offered.find_text("gone") == ""


def test_a_change_is_logged_without_its_words(gate: Gate) -> None:
    change(gate, texts=["Ask for the receipt."])
    record = LogRecord.objects.get(kind="queue.preset_changed")
    assert record.actor_id == gate.adam.public_id
    assert (record.data["queue"], record.data["count"]) == ("money", 1)
    assert b"receipt" not in bytes(record.leaf)
    assert b"shorter" not in bytes(record.leaf)


@pytest.mark.parametrize("name", ["rita", "sue", "otto", "owen"])
def test_only_an_administrator_changes_it(gate: Gate, name: str) -> None:
    with pytest.raises(errors.NotPermitted):
        change(gate, by=name)
    assert not QueuePreset.objects.exists()


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"reasons": {**OWN, Verdict.REJECT: []}}, "reasons.reject"),
        ({"reasons": {**OWN, Verdict.APPROVE: [ReasonCode.UNSAFE]}}, "reasons.approve"),
        (
            {"reasons": {**OWN, Verdict.ESCALATE: [ReasonCode.POLICY] * 2}},
            "reasons.escalate",
        ),
        ({"texts": ["ok", "x" * 501]}, "texts.1"),
        ({"texts": ["same", "same"]}, "texts.1"),
        ({"texts": [f"text {n}" for n in range(11)]}, "texts.0"),
    ],
)
def test_what_is_wrong_is_named(gate: Gate, fields: dict[str, Any], path: str) -> None:
    with pytest.raises(errors.InvalidArgs) as refused:
        change(gate, **fields)
    assert [error["path"] for error in refused.value.errors] == [path]
    assert not QueuePreset.objects.exists()


def test_a_change_needs_a_reason_and_a_queue(gate: Gate) -> None:
    with pytest.raises(errors.TextMissing):
        change(gate, reason=" ")
    with pytest.raises(errors.NotFound):
        change(gate, queue_name="nowhere")
