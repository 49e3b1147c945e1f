"""A policy that takes a passkey alone, activated at the moment of the last vote."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from policies import versions
from reviews.decisions import decide
from reviews.executions import run
from reviews.models import Execution
from tests import factories, worlds
from tests.conftest import Gate
from tests.factories import document_of_tests, propose
from tests.policies.security_key import give_key, offer_passkeys
from tests.races.together import at_once

pytestmark = [pytest.mark.django_db(transaction=True)]
LEVELS = ("low", "medium", "high", "critical")


def test_a_vote_by_password_opens_nothing_whichever_comes_first(
    gate: Gate, settings: Any
) -> None:
    offer_passkeys(settings)
    for who in (gate.rita, gate.tom, gate.sue, gate.sam):
        give_key(who)
    for turn in range(4):
        run_name = factories.new_thread()
        request = propose(gate.agent, amount="899.00", thread=run_name).request
        factories.decide(request, gate.sue)
        last = factories.proved(factories.said(request, gate.sam), "password")
        document = document_of_tests()
        document["desk"] = {"step_up": {level: ["passkey"] for level in LEVELS}}
        document["rules"][0]["text"] = f"Turn {turn}."
        draft = versions.save_draft(text_or_mapping=document, author=gate.adam)
        activate = partial(versions.activate_version, version_id=draft.pk, by=gate.alma)
        results = at_once(partial(decide.decide_request, last), activate)
        assert all(result.won for result in results)
        execution = Execution.objects.get(proposal=request.proposal_id)
        run.run_execution(execution.pk)
        execution.refresh_from_db()
        assert (execution.status, execution.code) == ("refused", "policy_tightened")
        factories.policy(gate.people)  # as it was
    assert worlds.effects() == []
