"""The pages of undoing and mending."""

from __future__ import annotations

import pytest

from reviews.choices import RepairChange, Scope
from reviews.models import ApprovalRequest, Execution, Repair, Reversal
from reviews.stops import stops
from tests.agents.test_repairs import dead, moves_on, of_execution, stuck
from tests.agents.test_reversals import WHY, announced, undo
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews import states
from tests.reviews.backups import out_of_time, restored
from tests.reviews.conftest import own_note
from tests.reviews.desk.conftest import SignIn, as_

__all__ = ["as_", "own_note"]


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
    assert "asked for this" in source
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


def test_what_is_stopped_offers_none_and_says_when(gate: Gate, as_: SignIn) -> None:
    done = announced(gate)
    url = f"/reversals/{done.pk}/"
    row = stops.create_stop(
        scope=Scope.AGENT, key="riley", person=gate.sue, reason="odd"
    )
    for path in ("/announced/", "/threads/riley/t-1/", f"/stop/{row.pk}/"):
        assert url not in as_("sue").get(path).content.decode(), path
    source = as_("sue").get(f"/stop/{row.pk}/").content.decode()
    assert "once its run, agent or tool is switched on again" in source
    source = as_("sue").get(url).content.decode()
    assert "the tool that undoes it is stopped" in source
    assert "reversal-form" not in source
    stops.lift_stop(stop_id=row.pk, person=gate.sue, reason="over")
    assert f'href="{url}"' in as_("sue").get("/announced/").content.decode()


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


def test_a_repair_is_proposed_and_confirmed_by_another(gate: Gate, as_: SignIn) -> None:
    execution = stuck(gate)
    run = f"/threads/riley/{execution.proposal.thread}/"
    client = as_("sue")
    assert f'href="{run}repair/"' in client.get(run).content.decode()
    assert "repair/" not in as_("rita").get(run).content.decode()
    source = client.get(f"{run}repair/").content.decode()
    value = f"say_unknown:{execution.pk}"
    assert f'value="{value}"' in source
    sent = {"change": value, "reason": "Its worker burnt down."}
    source = client.post(f"{run}repair/", sent, follow=True).content.decode()
    assert "An administrator must confirm it." in source
    repair = Repair.objects.get()
    assert f"/repairs/{repair.pk}/" in source
    url = f"/repairs/{repair.pk}/"
    source = client.get(url).content.decode()
    assert "<b>You cannot:</b> Your role does not allow this." in source
    assert "Take it back…" in source
    assert client.post(url, {"do": "confirm"}).status_code == 403
    second = as_("adam")
    source = second.get(url).content.decode()
    assert "Its worker burnt down." in source
    assert "claimed" in source
    assert "<b>" in source
    source = second.post(url, {"do": "confirm"}, follow=True).content.decode()
    assert "The log has what it was before, and after." in source
    execution.refresh_from_db()
    assert execution.status == "unknown"
    assert second.post(url, {"do": "confirm"}).status_code == 409


def test_a_moved_subject_is_told_and_a_refusal_needs_words(
    gate: Gate, as_: SignIn
) -> None:
    execution = stuck(gate)
    repair = of_execution(execution, gate.sue)
    moves_on(execution)
    client, url = as_("adam"), f"/repairs/{repair.pk}/"
    response = client.post(url, {"do": "confirm"})
    assert response.status_code == 409
    assert "It changed since the repair was proposed." in response.content.decode()
    response = client.post(url, {"do": "refuse", "answer": " "})
    assert response.status_code == 422
    assert "Say why not." in response.content.decode()
    said = {"do": "refuse", "answer": "Look at it again."}
    source = client.post(url, said, follow=True).content.decode()
    assert "Look at it again." in source
    said["answer"] = "Too late, and kept."
    response = client.post(url, said)
    assert response.status_code == 409
    assert "Too late, and kept." in response.content.decode()


@pytest.mark.usefixtures("own_note")
def test_a_repair_of_what_came_back_says_what_follows(gate: Gate, as_: SignIn) -> None:
    execution = out_of_time(gate)
    page = f"/threads/{execution.proposal.agent}/{execution.proposal.thread}/repair/"
    assert "told that it was refused" in as_("sue").get(page).content.decode()
    restored(gate)
    source = as_("sue").get(page).content.decode()
    assert "may have run" in source
    repair = of_execution(execution, gate.sue, RepairChange.NEVER_RUN)
    source = as_("adam").get(f"/repairs/{repair.pk}/").content.decode()
    assert "told that it was refused" not in source
    assert "may have run" in source


def test_a_checkpoint_is_typed_and_kept_when_it_is_wrong(
    gate: Gate, as_: SignIn
) -> None:
    dead(gate)
    client, url = as_("sue"), "/threads/riley/t-1/repair/"
    source = client.get(url).content.decode()
    assert 'value="pay"' in source
    assert "&quot;step&quot;: 2" in source
    sent = {"change": "checkpoint", "reason": "Wrong step.", "resume_at": "refund"}
    response = client.post(url, {**sent, "state": "{oops"})
    assert response.status_code == 422
    source = response.content.decode()
    assert "{oops" in source
    assert "Wrong step." in source
    assert client.post(url, {**sent, "state": '{"step": 3}'}).status_code == 302
    repair = Repair.objects.get()
    source = as_("adam").get(f"/repairs/{repair.pk}/").content.decode()
    assert "state.step" in source
    as_("adam").post(f"/repairs/{repair.pk}/", {"do": "confirm"})
    assert (
        "a repair of two people" in client.get("/threads/riley/t-1/").content.decode()
    )


def test_who_looks_after_nothing_sees_no_repairs(gate: Gate, as_: SignIn) -> None:
    repair = of_execution(stuck(gate), gate.sue)
    for name in ("rita", "owen"):
        for path in ("/repairs/", f"/repairs/{repair.pk}/"):
            assert as_(name).get(path).status_code == 404, (name, path)
    for name in ("sue", "adam", "otto"):
        assert repair.pk in as_(name).get("/repairs/").content.decode(), name
    assert (
        as_("otto").post(f"/repairs/{repair.pk}/", {"do": "confirm"}).status_code == 403
    )


def test_a_repair_names_an_execution_of_its_own_run(gate: Gate, as_: SignIn) -> None:
    execution = stuck(gate)
    propose(gate.agent, thread="t-2")
    sent = {"change": f"say_unknown:{execution.pk}", "reason": "odd"}
    assert as_("sue").post("/threads/riley/t-2/repair/", sent).status_code == 404
    for change in ("", "finish:x", "say_unknown", "authorize"):
        sent = {"change": change, "reason": "odd"}
        found = as_("sue").post("/threads/riley/t-1/repair/", sent)
        assert found.status_code == 422, change


def test_what_waits_for_a_second_person_is_not_offered_again(
    gate: Gate, as_: SignIn
) -> None:
    execution = stuck(gate)
    url = f"/threads/riley/{execution.proposal.thread}/repair/"
    source = as_("sue").get(url).content.decode()
    assert f"say_unknown:{execution.pk}" in source
    assert 'value="finish"' not in source, "it was heard of a moment ago"
    of_execution(execution, gate.sue)
    source = as_("sue").get(url).content.decode()
    assert f"say_unknown:{execution.pk}" not in source
    assert "waits for a second person" in source
    sent = {"change": f"say_unknown:{execution.pk}", "reason": "Its host burnt down."}
    refused = as_("sue").post(url, sent)
    assert refused.status_code == 409
    assert b"Its host burnt down." in refused.content
    assert b"proposed already" in refused.content
