"""The pages of reversals and repairs."""

from __future__ import annotations

import html

import pytest

from agents.models import Checkpoint
from desk.agents.repairs import CONSEQUENCES, MAY_HAVE_RUN, STATUS_WORDS
from reviews.choices import RepairChange, RepairStatus, Scope
from reviews.models import ApprovalRequest, Execution, Repair, Reversal
from reviews.stops import stops
from tests import worlds
from tests.agents.test_repairs import dead, moves_on, of_execution, stuck
from tests.agents.test_reversals import WHY, announced, undo
from tests.conftest import Gate
from tests.desk.conftest import SignIn, as_
from tests.factories import decide, propose
from tests.markup import find_element, read_page, read_shown, read_text
from tests.reviews import states
from tests.reviews.backups import out_of_time, restored
from tests.reviews.conftest import own_note

__all__ = ["as_", "own_note"]


def test_a_reversal_is_proposed_from_the_done_request(gate: Gate, as_: SignIn) -> None:
    paid = states.succeeded(gate)
    original = ApprovalRequest.objects.get(proposal=paid.proposal_id)
    client, url = as_("tom"), f"/reversals/{paid.pk}/"
    assert f'href="{url}"' in read_page(client.get(f"/requests/{original.pk}/"))
    source = read_page(client.get(url))
    assert "Undo: " in source
    assert "back to" in find_element(source, "would")
    assert not Reversal.objects.exists()
    source = read_page(client.post(url, {"reason": WHY}, follow=True))
    assert "Reverses: " in source
    why = find_element(source, "why-asked")
    assert "A reversal always needs another person's approval." in html.unescape(why)
    assert "Proposed by" not in why
    assert 'class="said-by"' in source
    assert WHY in source
    assert "requested this action" in source
    first = read_page(as_("rita").get(f"/requests/{original.pk}/"))
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
        assert url in read_page(as_("rita").get(path)), path
        assert url not in read_page(as_("otto").get(path)), path
    proposal = undo(execution, gate.tom)
    for path in pages:
        source = read_page(as_("rita").get(path))
        assert "Reversal proposed" in source
        assert url not in source
    decide(ApprovalRequest.objects.get(proposal=proposal), gate.rita, "reject")
    source = read_page(as_("rita").get("/announced/"))
    assert "Reversal rejected" in source
    assert url in source


def test_what_is_stopped_offers_none_and_says_when(gate: Gate, as_: SignIn) -> None:
    done = announced(gate)
    url = f"/reversals/{done.pk}/"
    row = stops.create_stop(
        scope=Scope.AGENT, key="riley", person=gate.sue, reason="odd"
    )
    for path in ("/announced/", "/threads/riley/t-1/", f"/stop/{row.pk}/"):
        assert url not in read_page(as_("sue").get(path)), path
    source = read_page(as_("sue").get(f"/stop/{row.pk}/"))
    assert 'data-testid="undo-stopped"' in source
    source = read_page(as_("sue").get(url))
    assert "is stopped" in find_element(source, "why-not")
    assert "reversal-form" not in source
    stops.lift_stop(stop_id=row.pk, person=gate.sue, reason="over")
    assert f'href="{url}"' in read_page(as_("sue").get("/announced/"))


def test_a_reason_is_asked_for_and_words_are_kept(gate: Gate, as_: SignIn) -> None:
    paid = states.succeeded(gate)
    client, url = as_("tom"), f"/reversals/{paid.pk}/"
    response = client.post(url, {"reason": " "})
    assert response.status_code == 422
    assert 'id="reason-error"' in read_page(response)
    undo(paid, gate.sue)
    response = client.post(url, {"reason": WHY})
    assert response.status_code == 409
    source = read_page(response)
    assert 'data-testid="problem"' in source
    assert WHY in source


def test_who_may_not_propose_reads_why(gate: Gate, as_: SignIn) -> None:
    paid = states.succeeded(gate)
    url = f"/reversals/{paid.pk}/"
    source = read_page(as_("otto").get(url))
    assert "Your role cannot decide requests." in source
    assert as_("otto").post(url, {"reason": WHY}).status_code == 403
    assert as_("rita").get("/reversals/x-nothing/").status_code == 404
    assert as_("rita").delete(url).status_code == 405
    assert Execution.objects.count() == 1


def test_a_repair_is_proposed_and_confirmed_by_another(gate: Gate, as_: SignIn) -> None:
    execution = stuck(gate)
    run = f"/threads/riley/{execution.proposal.thread}/"
    client = as_("sue")
    assert f'href="{run}repair/"' in read_page(client.get(run))
    assert "repair/" not in read_page(as_("rita").get(run))
    source = read_page(client.get(f"{run}repair/"))
    value = f"say_unknown:{execution.pk}"
    assert f'value="{value}"' in source
    sent = {"change": value, "reason": "Its worker burnt down."}
    source = read_page(client.post(f"{run}repair/", sent, follow=True))
    repair = Repair.objects.get()
    assert f"/repairs/{repair.pk}/" in source
    url = f"/repairs/{repair.pk}/"
    source = read_page(client.get(url))
    assert 'data-testid="why-not"' in source
    assert 'data-testid="confirm"' not in source
    assert 'data-testid="withdraw"' in source
    assert client.post(url, {"do": "confirm"}).status_code == 403
    second = as_("adam")
    source = read_page(second.get(url))
    assert "Its worker burnt down." in source
    assert "claimed" in source
    assert "<b>" in source
    shown = read_shown(second.get(url))
    worlds.rewrite(Repair, repair.pk, reason="Another reason.")
    stale = second.post(url, {"do": "confirm", "shown": shown})
    assert stale.status_code == 409
    assert "its reason changed. Nothing was changed." in read_text(stale, "problem")
    sent = {"do": "confirm", "shown": read_shown(stale)}
    source = read_page(second.post(url, sent, follow=True))
    assert STATUS_WORDS[RepairStatus.APPLIED][0] in find_element(source, "status")
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
    assert 'id="problem"' in read_page(response)
    response = client.post(url, {"do": "refuse", "answer": " "})
    assert response.status_code == 422
    assert 'id="answer-error"' in read_page(response)
    said = {"do": "refuse", "answer": "Look at it again."}
    source = read_page(client.post(url, said, follow=True))
    assert "Look at it again." in source
    said["answer"] = "Too late, and kept."
    response = client.post(url, said)
    assert response.status_code == 409
    assert "Too late, and kept." in read_page(response)


@pytest.mark.usefixtures("own_note")
def test_a_repair_of_what_came_back_says_what_follows(gate: Gate, as_: SignIn) -> None:
    execution = out_of_time(gate)
    page = f"/threads/{execution.proposal.agent}/{execution.proposal.thread}/repair/"
    assert CONSEQUENCES[RepairChange.NEVER_RUN] in read_text(as_("sue").get(page))
    restored(gate)
    assert MAY_HAVE_RUN in read_text(as_("sue").get(page))
    repair = of_execution(execution, gate.sue, RepairChange.NEVER_RUN)
    shown = read_text(as_("adam").get(f"/repairs/{repair.pk}/"))
    assert CONSEQUENCES[RepairChange.NEVER_RUN] not in shown
    assert MAY_HAVE_RUN in shown


def test_a_checkpoint_is_typed_and_kept_when_it_is_wrong(
    gate: Gate, as_: SignIn
) -> None:
    dead(gate)
    client, url = as_("sue"), "/threads/riley/t-1/repair/"
    source = read_page(client.get(url))
    assert 'value="pay"' in source
    assert "&quot;step&quot;: 2" in source
    sent = {"change": "checkpoint", "reason": "Wrong step.", "resume_at": "refund"}
    response = client.post(url, {**sent, "state": "{oops"})
    assert response.status_code == 422
    source = read_page(response)
    assert "{oops" in source
    assert 'id="state-error"' in source
    assert "Wrong step." in source
    assert client.post(url, {**sent, "state": '{"step": 3}'}).status_code == 302
    repair = Repair.objects.get()
    source = read_page(as_("adam").get(f"/repairs/{repair.pk}/"))
    assert "state.step" in source
    as_("adam").post(f"/repairs/{repair.pk}/", {"do": "confirm"})
    assert 'data-testid="checkpoint-repair"' in read_page(
        client.get("/threads/riley/t-1/")
    )


def test_who_looks_after_nothing_sees_no_repairs(gate: Gate, as_: SignIn) -> None:
    repair = of_execution(stuck(gate), gate.sue)
    for name in ("rita", "owen"):
        for path in ("/repairs/", f"/repairs/{repair.pk}/"):
            assert as_(name).get(path).status_code == 404, (name, path)
    for name in ("sue", "adam", "otto"):
        assert repair.pk in read_page(as_(name).get("/repairs/")), name
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
    source = read_page(as_("sue").get(url))
    assert f"say_unknown:{execution.pk}" in source
    assert 'value="finish"' not in source, "it was heard of a moment ago"
    of_execution(execution, gate.sue)
    source = read_page(as_("sue").get(url))
    assert f"say_unknown:{execution.pk}" not in source
    assert 'data-testid="awaits"' in source
    sent = {"change": f"say_unknown:{execution.pk}", "reason": "Its host burnt down."}
    refused = as_("sue").post(url, sent)
    assert refused.status_code == 409
    assert b"Its host burnt down." in refused.content


def test_what_moved_since_the_page_is_not_proposed(gate: Gate, as_: SignIn) -> None:
    dead(gate)
    client, url = as_("sue"), "/threads/riley/t-1/repair/"
    name = "shown-checkpoint"
    sent = {"change": "checkpoint", "reason": "Wrong step.", "resume_at": "refund"}
    sent |= {"state": '{"step": 3}', name: read_shown(client.get(url), name)}
    latest = Checkpoint.objects.latest("number")
    latest.pk, latest.number, latest.state = None, 2, {"step": "the newest"}
    latest.save(force_insert=True)
    answer = client.post(url, sent)
    assert answer.status_code == 409
    assert "what it would change changed" in read_text(answer, "problem")
    assert "the newest" in read_text(answer, "checkpoint-now")
    assert "&quot;step&quot;: 3" in read_page(answer)
    assert not Repair.objects.exists()
    sent[name] = read_shown(answer, name)
    assert client.post(url, sent).status_code == 302
