"""The attention check that a page asks of one person, and its answer."""

from __future__ import annotations

from django.contrib.sessions.backends.db import SessionStore

from desk.components.regions import Regions
from desk.request import attention, load
from journal import clock
from policies.models import Person
from reviews.attention_checks.questions import AttentionQuestion
from reviews.choices import Verdict
from reviews.models import ApprovalRequest


def asked_of(person: Person, request: ApprovalRequest) -> AttentionQuestion:
    """The question before this person's approval of what is asked now."""
    now = clock.now()
    loaded = load.load_request(person, request.pk, now)
    regions = Regions(person, loaded.sealed)
    asked = attention.find_attention_check(
        SessionStore(), loaded, regions, Verdict.APPROVE, now
    )
    assert asked is not None
    return asked.question
