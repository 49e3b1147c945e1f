"""A worker that breaks when the mail server has a mail and nobody knows it yet: nobody
goes without, and that one comes twice."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from django.core.mail import EmailMessage

from journal import failpoints
from journal.failpoints import InjectedFault
from notifications import plan
from reviews.models import Notice
from tests import factories
from tests.conftest import Gate


@pytest.mark.django_db
def test_a_mail_comes_again_when_it_was_not_written_down(
    gate: Gate,
    mailoutbox: list[EmailMessage],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    request = factories.propose(gate.agent, "pay").request
    people = plan.select_deciders(request, roles=plan.DECIDING_ROLES)
    monkeypatch.setattr(failpoints, "ARMED", str(tmp_path))
    (tmp_path / "mail_taken").write_text(failpoints.FaultAction.RAISE)
    with pytest.raises(InjectedFault):
        plan.notify_people(people, "opened")
    for _ in range(2):
        plan.notify_people(people, "opened")
    came = Counter(mail.to[0] for mail in mailoutbox)
    assert len(came) == Notice.objects.exclude(sent_at=None).count() > 1
    assert sorted(came.values()) == [*[1] * (len(came) - 1), 2]
