"""What the pages say once the retention rule removed what an action was."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from journal import clock
from reviews import text_removal
from reviews.decisions import drafts
from reviews.effects import describe
from reviews.executions import run
from reviews.models import Decision, Execution, Note, Revision, StateReading
from tests import worlds
from tests.conftest import Gate
from tests.desk.as_seen.test_views import decided, opened
from tests.desk.conftest import SignIn
from tests.factories import propose
from tests.markup import read_page

pytestmark = pytest.mark.django_db
DAYS = 120
SAYS_SO = "removed after 120 days by the retention rule"


def remove_all(settings: Any) -> None:
    """Set every rule, make everything older, and apply the rules."""
    names = ("arguments", "questions", "notes", "log_texts")
    changed = {f"keep_{name}_days": DAYS for name in names}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=changed)
    at = clock.now() - timedelta(days=DAYS + 1)
    for model, column in (
        (Revision, "created_at"),
        (Decision, "at"),
        (StateReading, "at"),
        (Note, "at"),
    ):
        for pk in model.objects.values_list("pk", flat=True):
            worlds.rewrite(model, pk, **{column: at})
    describe._brief_cache.clear()  # its entries are of younger actions
    assert text_removal.remove_old_texts()


def test_every_page_of_a_removed_action_says_so(
    gate: Gate, as_: SignIn, settings: Any
) -> None:
    evidence = [{"kind": "mail", "source": "inbox", "text": "It is broken."}]
    request = propose(gate.agent, rationale="They called.", evidence=evidence).request
    drafts.add_note(request_id=request.pk, person=gate.rita, text="seen before")
    decision = decided(request, as_)
    run.run_execution(Execution.objects.get(proposal=request.proposal_id).pk)
    remove_all(settings)
    path = f"/requests/{request.pk}/"
    for url in (path, f"{path}versions/1/", "/queue/?tab=done", "/log/"):
        response = as_("sue").get(url)
        assert response.status_code == 200
        source = read_page(response)
        assert SAYS_SO in source or "queue" in url
        for text in ("They called.", "It is broken.", "seen before", "C-1"):
            assert text not in source
    assert request.proposal.current.action_hash[7:15] in read_page(as_("sue").get(path))
    seen = read_page(opened(decision, as_, "sue"))
    assert 'data-finding="removed"' in seen
    assert decision.snapshot.digest in seen
