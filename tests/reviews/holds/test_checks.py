"""What a hold means for a decision."""

from __future__ import annotations

import pytest

from journal import errors
from journal.models import LogRecord
from reviews.decisions import decide as decisions
from reviews.holds.take import take_hold
from reviews.models import Decision
from tests.conftest import Gate
from tests.factories import decide, said
from tests.reviews.holds.holds import lapse

pytestmark = pytest.mark.django_db


def test_who_does_not_hold_it_decides_nothing(gate: Gate, request_) -> None:
    take_hold(request_id=request_.pk, person=gate.rita)
    for verdict in ("approve", "reject", "escalate"):
        with pytest.raises(
            errors.HeldByAnother, match="Rita Example has claimed this until"
        ):
            decide(request_, gate.tom, verdict)
    assert not Decision.objects.exists()
    refused = LogRecord.objects.filter(kind="decision.refused")
    assert refused.count() == 3


def test_a_hold_that_somebody_took_over_is_said_so(gate: Gate, request_) -> None:
    token = take_hold(request_id=request_.pk, person=gate.rita).token
    lapse(request_)
    take_hold(request_id=request_.pk, person=gate.tom)
    with pytest.raises(errors.HoldLapsed, match="Tom Example claimed the request at"):
        decide(request_, gate.rita, hold=token)


def test_so_is_one_under_which_another_decided_since(gate: Gate, request_) -> None:
    token = take_hold(request_id=request_.pk, person=gate.rita).token
    mine = said(request_, gate.rita, "reject", hold=token)
    lapse(request_)
    take_hold(request_id=request_.pk, person=gate.tom)
    decide(request_, gate.tom)
    with pytest.raises(errors.HoldLapsed, match=r"Tom Example approved this"):
        decisions.decide_request(mine)


def test_a_lapsed_hold_that_nobody_took_still_decides(gate: Gate, request_) -> None:
    token = take_hold(request_id=request_.pk, person=gate.rita).token
    lapse(request_)
    decide(request_, gate.rita, hold=token)
    assert Decision.objects.get().authority["hold"] == token


def test_without_a_hold_a_decision_needs_a_free_request(gate: Gate, request_) -> None:
    decide(request_, gate.rita)
    assert "hold" not in Decision.objects.get().authority
