"""The first decision on a payee or record is reviewed a second time more often."""

from __future__ import annotations

from typing import Any

import pytest

from assurance import second_reviews, targets
from reviews.choices import SampleCause
from reviews.models import ApprovalRequest, Decision, SecondReview
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews import definitions

pytestmark = pytest.mark.django_db


def decided(gate: Gate, customer: str, verdict: str = "approve") -> Decision:
    request: ApprovalRequest = propose(
        gate.agent, customer=customer, amount="1.00", thread=factories.new_thread()
    ).request
    decide(request, gate.rita, verdict)
    found = Decision.objects.select_related("request").get(request=request)
    assert found.request.settled_at is not None
    return found


TARGETS: list[tuple[dict[str, Any], dict[str, Any], dict[str, str], set[str]]] = [
    (
        {"presenter": "money", "keys": ["order_id"]},
        {"payee": " ANN ", "account": "DE1", "order_id": "O-1"},
        {},
        {"ann", "de1"},
    ),
    (
        {"presenter": "email"},
        {"to": ["Ann@x.org", "bo@x.org"]},
        {},
        {"ann@x.org", "bo@x.org"},
    ),
    (
        {"keys": ["customer", "order_id"]},
        {"order_id": "O-1"},
        {"customer": "C-1"},
        {"c-1"},
    ),
    ({"keys": ["order_id"]}, {"order_id": "O-1"}, {}, {"o-1"}),
    ({}, {"order_id": "O-1"}, {}, set()),
]


@pytest.mark.parametrize(("parts", "args", "keys", "found"), TARGETS)
def test_the_targets_of_a_call(
    parts: dict[str, Any], args: dict[str, Any], keys: dict[str, str], found: set[str]
) -> None:
    names: dict[str, Any] = {
        name: {} for name in {*args, "order_id", "amount", "currency"}
    }
    schema = {"type": "object", "properties": names}
    definition = definitions.tool(schema=schema, **parts)
    assert targets.list_targets(definition, args, keys) == found


def test_a_target_is_new_until_people_decided_on_it(gate: Gate) -> None:
    first = decided(gate, "C-100", "reject")
    again = decided(gate, "C-100")
    other = decided(gate, "C-200")
    propose(gate.agent, customer="C-300", thread="t-waits")  # nobody decided on it
    third = decided(gate, "C-300")
    found = targets.find_first_targets([first, again, other, third])
    assert found == {first.pk, other.pk, third.pk}
    assert targets.find_first_targets([]) == frozenset()


def test_first_targets_are_four_times_as_likely(gate: Gate) -> None:
    """Only the draw decides among equal decisions, so each cause is exact."""
    document = factories.document_of_tests()
    assurance = {"assurance": {"second_reviews": 0.2}}
    factories.policy(gate.people, {**document, **assurance})
    new = [decided(gate, f"C-{number}") for number in range(500, 512)]
    known = [decided(gate, f"C-{number}") for number in range(500, 512)]
    fast = [decided(gate, f"C-{number}") for number in range(600, 604)]
    for decision in fast:
        worlds.rewrite(Decision, decision.pk, flags=["fast"])
    expected = {}
    for cause, rows in (
        (SampleCause.TARGET, new),
        (SampleCause.SAMPLE, known),
        (SampleCause.FAST, fast),
    ):
        share = 0.2 if cause is SampleCause.SAMPLE else 0.8
        for row in rows:
            if second_reviews.draw_number(row.request_id) < share:
                expected[row.pk] = cause
    assert second_reviews.choose_second_reviews() == len(expected)
    chosen = {one.pk: one.cause for one in SecondReview.objects.all()}
    assert chosen == expected
    assert SampleCause.TARGET in chosen.values()
    assert second_reviews.choose_second_reviews() == 0
