"""The pages of undoing and mending."""

from __future__ import annotations

from reviews.models import ApprovalRequest, Execution, Reversal
from tests.agents.test_reversals import WHY, announced, undo
from tests.conftest import Gate
from tests.factories import decide
from tests.reviews import states
from tests.reviews.views.conftest import SignIn, as_

__all__ = ["as_"]


def test_a_reversal_is_proposed_from_the_done_request(gate: Gate, as_: SignIn) -> None:
    paid = states.succeeded(gate)
    original = ApprovalRequest.objects.get(proposal=paid.proposal_id)
    client, url = as_("tom"), f"/reversals/{paid.pk}/"
    assert f'href="{url}"' in client.get(f"/requests/{original.pk}/").content.decode()
    source = client.get(url).content.decode()
    assert "Undo: " in source
    assert "What would be proposed" in source
    assert "back to" in source
    assert not Reversal.objects.exists()
    source = client.post(url, {"reason": WHY}, follow=True).content.decode()
    assert "Reversal proposed. Someone else decides it." in source
    assert "Reverses: " in source
    assert "Written by the person who proposed this. Not checked." in source
    assert WHY in source
    assert "You started this run" in source
    first = as_("rita").get(f"/requests/{original.pk}/").content.decode()
    assert "Reversal proposed" in first
    assert "Propose reversal…" not in first
    assert as_("rita").post(url, {"reason": WHY}).status_code == 409


def test_it_is_offered_where_announced_effects_and_steps_are_listed(
    gate: Gate, as_: SignIn
) -> None:
    execution = announced(gate)
    url = f'href="/reversals/{execution.pk}/"'
    pages = ["/announced/", "/threads/riley/t-1/"]
    for path in pages:
        assert url in as_("rita").get(path).content.decode(), path
        assert url not in as_("otto").get(path).content.decode(), path
    proposal = undo(execution, gate.tom)
    for path in pages:
        source = as_("rita").get(path).content.decode()
        assert "Reversal proposed" in source
        assert url not in source
    decide(ApprovalRequest.objects.get(proposal=proposal), gate.rita, "reject")
    source = as_("rita").get("/announced/").content.decode()
    assert "Reversal rejected" in source
    assert url in source


def test_a_reason_is_asked_for_and_words_are_kept(gate: Gate, as_: SignIn) -> None:
    paid = states.succeeded(gate)
    client, url = as_("tom"), f"/reversals/{paid.pk}/"
    response = client.post(url, {"reason": " "})
    assert response.status_code == 422
    assert "Say why." in response.content.decode()
    undo(paid, gate.sue)
    response = client.post(url, {"reason": WHY})
    assert response.status_code == 409
    source = response.content.decode()
    assert "It is being undone already." in source
    assert WHY in source


def test_who_may_not_propose_reads_why(gate: Gate, as_: SignIn) -> None:
    paid = states.succeeded(gate)
    url = f"/reversals/{paid.pk}/"
    source = as_("otto").get(url).content.decode()
    assert "Your role does not decide requests." in source
    assert as_("otto").post(url, {"reason": WHY}).status_code == 403
    assert as_("rita").get("/reversals/x-nothing/").status_code == 404
    assert as_("rita").delete(url).status_code == 405
    assert Execution.objects.count() == 1
