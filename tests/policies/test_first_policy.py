"""The policy of a gate in which nobody has an account."""

from __future__ import annotations

import pytest

from hitl.local import starter
from journal.errors import Conflict
from journal.models import LogRecord
from policies import active, first_policy
from policies.choices import Role
from policies.documents import InvalidPolicy
from policies.models import PolicyVersion, Queue
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("empty_world")]
STARTER = starter.POLICY.read_text("utf-8")


def test_it_holds_every_call_for_a_person() -> None:
    version = first_policy.activate_first_policy(STARTER)
    assert version == active.find_active_policy()
    assert (version.author, version.activated_by) == (None, None)
    held = active.load_document(version).held_unknown
    assert held
    assert Queue.objects.get().name == held.hold


def test_the_log_says_that_no_person_activated_it() -> None:
    first_policy.activate_first_policy(STARTER)
    records = LogRecord.objects.order_by("pk")
    assert [row.kind for row in records] == ["policy.saved", "policy.activated"]
    assert {row.actor_kind for row in records} == {"system"}


def test_a_gate_with_a_policy_or_a_person_is_left_alone() -> None:
    factories.person("ann", Role.REVIEWER)
    with pytest.raises(Conflict):
        first_policy.activate_first_policy(STARTER)
    assert not PolicyVersion.objects.exists()


def test_a_wrong_document_is_refused() -> None:
    with pytest.raises(InvalidPolicy):
        first_policy.activate_first_policy("name: x")
