"""Two people allow the calls of one run in advance, each from another request."""

from __future__ import annotations

from functools import partial

import pytest

from journal import errors
from policies.models import StandingGrant
from reviews.standing_grants import issuance
from tests import factories
from tests.conftest import Gate
from tests.races.together import at_once, while_held
from tests.reviews.standing_grants.allowing import allow_tags, issue, tag

pytestmark = [pytest.mark.django_db(transaction=True)]


def test_one_of_two_standing_grants_for_a_run_is_issued(gate: Gate) -> None:
    allow_tags(gate)
    for _ in range(10):
        thread = factories.new_thread()
        requests = [tag(gate, label, thread=thread).request for label in ("a", "b")]
        results = at_once(*(partial(issue, gate, request) for request in requests))
        assert sorted(result.won for result in results) == [False, True]
        assert StandingGrant.objects.filter(thread=thread).count() == 1


def test_who_waited_for_a_standing_grant_is_refused(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    allow_tags(gate)
    first, second = (tag(gate, label).request for label in ("a", "b"))
    rival = while_held(
        monkeypatch, issuance, "_log_change", partial(issue, gate, second)
    )
    issue(gate, first)
    assert isinstance(rival.result.refusal, errors.Conflict)
    assert StandingGrant.objects.count() == 1
