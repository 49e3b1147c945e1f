"""`/requests/<id>/`: the review page, its live strip, and the four verdicts."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client
from guardian.shortcuts import remove_perm

from journal import clock
from policies.models import Queue
from reviews import deadlines
from reviews.choices import RequestStatus
from reviews.decisions import recall
from reviews.executions import run
from reviews.models import ApprovalRequest, Decision, Proposal
from reviews.people import tokens
from tests import factories, pages, worlds
from tests.conftest import Gate
from tests.desk.conftest import HTMX, SignIn
from tests.factories import decide, propose
from tests.markup import find_element, read_page, read_text
from tests.reviews import states
from tests.reviews.batches.batching import formed
from tests.reviews.executions import attempts

MOST_QUERIES = 15
REGIONS = [
    "state",
    "h1-effect",
    "diff",
    "reversal",
    "why-asked",
    "agent-text",
    "decide",
]


def url(request: ApprovalRequest, *more: str) -> str:
    return "/".join(["/requests", request.pk, *more, ""])


def panel(
    request: ApprovalRequest, verdict: str, by: str = "rita", **fields: Any
) -> dict[str, Any]:
    """What the panel of a verdict sends."""
    request.refresh_from_db()
    return {
        "seen": pages.token(request, by),
        "verdict": verdict,
        "version": request.version,
        "action_hash": request.action_hash,
        "reason_code": "",
        "reason": "",
        **fields,
    }


def edited(
    request: ApprovalRequest, verdict: str = "modify", **args: str
) -> dict[str, Any]:
    """The panel of Modify as a browser sends it: every field, some changed."""
    sent = {**request.sealed.revision.args, **args}
    fields = {f"arg.{name}": value for name, value in sent.items()}
    return panel(request, verdict, **fields)


@pytest.fixture
def request_(gate: Gate) -> ApprovalRequest:
    return propose(gate.agent, rationale="They never got it.").request


def test_the_regions_come_in_reading_order(request_, as_: SignIn) -> None:
    source = read_page(as_("rita").get(url(request_)))
    found = re.findall(r'data-testid="([\w-]+)"', source)
    assert [name for name in found if name in REGIONS] == REGIONS


def test_facts_come_before_the_agents_words(request_, as_: SignIn) -> None:
    source = read_page(as_("rita").get(url(request_)))
    heading = source[source.index("<h1") : source.index("</h1>")]
    assert "40.00" in heading
    assert "They never got it." not in heading
    assert "They never got it." in source[source.index('data-testid="agent-text"') :]


@pytest.mark.parametrize("name", ["rita", "sue", "otto"])
def test_it_needs_few_queries(
    request_, as_: SignIn, django_assert_max_num_queries, name: str
) -> None:
    client = as_(name)
    client.get(url(request_))
    with django_assert_max_num_queries(MOST_QUERIES):
        client.get(url(request_))


def test_a_stranger_gets_the_same_as_for_nothing(
    gate: Gate, request_, as_: SignIn
) -> None:
    remove_perm("policies.decide", gate.rita, Queue.objects.get(name="money"))
    client = as_("rita")
    for path in (url(request_), url(request_, "live"), url(request_, "decide")):
        assert client.get(path).status_code == 404
    assert (
        client.post(url(request_, "decide"), panel(request_, "approve")).status_code
        == 404
    )
    assert client.post(url(request_, "recall")).status_code == 404
    assert client.get("/requests/r-nothing/").status_code == 404


@pytest.mark.parametrize("name", ["otto", "adam", "owen"])
def test_who_never_decides_gets_no_verb(request_, as_: SignIn, name: str) -> None:
    source = read_page(as_(name).get(url(request_)))
    assert "verb-approve" not in source
    assert 'id="outcome"' in source


def test_reading_changes_nothing(request_, as_: SignIn) -> None:
    client = as_("rita")
    for path in (url(request_), url(request_, "decide") + "?arm=approve"):
        client.get(path)
    request_.refresh_from_db()
    assert request_.status == RequestStatus.PENDING
    assert not Decision.objects.exists()


@pytest.mark.parametrize("verdict", ["approve", "modify", "reject", "escalate"])
def test_without_javascript_a_verb_opens_a_page_with_its_panel(
    request_, as_: SignIn, verdict: str
) -> None:
    source = read_page(as_("rita").get(url(request_, "decide") + f"?arm={verdict}"))
    assert "<!doctype html>" in source
    assert f'name="verdict" value="{verdict}"' in source
    assert request_.action_hash in source
    assert "verb-approve" not in source


def test_above_ones_ceiling_approve_is_not_offered(
    gate: Gate, request_, as_: SignIn
) -> None:
    gate.rita.ceiling_minor, gate.rita.ceiling_currency = 1000, "USD"
    gate.rita.save()
    for path in (url(request_), url(request_, "decide") + "?arm=approve"):
        source = read_page(as_("rita").get(path))
        assert 'data-testid="not-offered"' in source
        assert "verb-approve" not in source
        assert 'value="approve"' not in source
        for verb in ("modify", "reject", "escalate"):
            assert f'data-testid="verb-{verb}"' in source
    assert 'data-testid="verb-approve"' in read_page(as_("tom").get(url(request_)))


def test_htmx_gets_the_panel_alone(request_, as_: SignIn) -> None:
    client = as_("rita", **HTMX)
    response = client.get(url(request_, "decide") + "?arm=approve")
    source = read_page(response)
    assert source.lstrip().startswith('<form class="decide" id="decide"')
    assert 'data-focus="#panel"' in source
    assert "HX-Request" in response["Vary"]


@pytest.mark.parametrize("verdict", ["approve", "reject", "escalate"])
def test_a_commit_redirects_to_the_page(request_, as_: SignIn, verdict: str) -> None:
    client = as_("rita")
    code = factories.reason_for(verdict)
    sent = panel(request_, verdict, reason_code=code, reason="look")
    response = client.post(url(request_, "decide"), sent)
    assert (response.status_code, response["Location"]) == (303, url(request_))
    said = Decision.objects.get()
    assert (said.verdict, said.reason_code, said.reason) == (verdict, code, "look")


def test_with_htmx_the_redirect_ends_in_the_outcome(request_, as_: SignIn) -> None:
    client = as_("rita", **HTMX)
    response = client.post(
        url(request_, "decide"), panel(request_, "approve"), follow=True
    )
    source = read_page(response)
    assert 'id="outcome"' in source
    assert 'id="live"' in source
    assert 'id="badge-queue"' in source
    assert "<title>" in source
    assert response["HX-Push-Url"] == url(request_)


def test_modify_makes_a_version_of_the_typed_values(request_, as_: SignIn) -> None:
    sent = edited(request_, amount="12.50")
    response = as_("rita").post(
        url(request_, "decide"), sent | {"reason_code": "wrong_amount"}
    )
    assert response.status_code == 303
    request_.refresh_from_db()
    assert request_.version == 2
    assert request_.sealed.revision.args["amount"] == "12.50"


def test_modify_with_htmx_reloads_what_was_read(request_, as_: SignIn) -> None:
    client = as_("rita", **HTMX)
    response = client.post(url(request_, "decide"), edited(request_, amount="12.50"))
    assert response["HX-Redirect"] == url(request_)


def test_modify_without_a_change_keeps_the_panel(request_, as_: SignIn) -> None:
    response = as_("rita").post(url(request_, "decide"), edited(request_))
    assert response.status_code == 422
    assert 'data-code="invalid"' in read_page(response)


def test_what_the_schema_refuses_is_said_beside_the_field(
    request_, as_: SignIn
) -> None:
    sent = edited(request_, customer="C" * 41, note="keep me")
    response = as_("rita").post(url(request_, "decide"), sent)
    source = read_page(response)
    assert response.status_code == 422
    assert 'aria-invalid="true"' in source
    assert "keep me" in source


def test_an_edit_outside_the_policy_keeps_the_other_fields(
    request_, as_: SignIn
) -> None:
    sent = edited(request_, amount="20000.00", note="keep me")
    response = as_("rita").post(url(request_, "decide"), sent)
    assert response.status_code == 422
    source = read_page(response)
    assert "Payments over 10,000.00 are not made." in source
    assert "keep me" in source
    assert 'value="20000.00"' in source


def test_a_reason_is_asked_for_and_the_note_is_kept(request_, as_: SignIn) -> None:
    client = as_("rita", **HTMX)
    sent = panel(request_, "reject", reason="typed before")
    response = client.post(url(request_, "decide"), sent)
    source = read_page(response)
    assert response.status_code == 422
    assert 'id="reason-error"' in source
    assert 'data-focus="#reasons"' in source
    assert "typed before" in source
    assert not Decision.objects.exists()


def test_step_up_asks_for_the_password_once_more(gate: Gate, as_: SignIn) -> None:
    request = propose(gate.agent, amount="899.00").request
    client = as_("sue")
    assert 'name="password"' in read_page(
        client.get(url(request, "decide") + "?arm=approve")
    )
    for password in ("", "wrong"):
        response = client.post(
            url(request, "decide"), panel(request, "approve", "sue", password=password)
        )
        assert response.status_code == 401
        assert 'id="password-error"' in read_page(response)
    sent = panel(request, "approve", "sue", password=factories.PASSWORD)
    assert client.post(url(request, "decide"), sent).status_code == 303
    assert Decision.objects.get().authority["step_up"] == "password"


def test_an_old_version_is_refused_and_the_difference_is_shown(
    gate: Gate, request_, as_: SignIn
) -> None:
    sent = panel(request_, "approve", reason="mind the amount")
    factories.revise(gate.agent, request_.proposal, amount="4000.00")
    response = as_("rita").post(url(request_, "decide"), sent)
    source = read_page(response)
    assert response.status_code == 409
    assert 'data-code="stale"' in source
    banner = source[source.index('data-testid="banner"') : source.index("<h1")]
    assert "40.00" in banner
    assert "4000.00" in banner
    assert "mind the amount" in source
    notes = re.findall(r'<section class="note"[^>]*data-testid="([a-z]+)"', source)
    assert notes == ["problem"]
    assert not Decision.objects.exists()


def test_with_htmx_an_old_version_loses_its_verbs_and_nothing_moves(
    gate: Gate, request_, as_: SignIn
) -> None:
    sent = panel(request_, "approve")
    factories.revise(gate.agent, request_.proposal, amount="41.00")
    response = as_("rita", **HTMX).post(url(request_, "decide"), sent)
    source = read_page(response)
    assert response.status_code == 409
    assert f'href="{url(request_)}?since=1"' in source
    assert "verb-approve" not in source
    assert 'data-testid="diff"' not in source


def test_after_the_deadline_it_says_by_how_much(request_, as_: SignIn) -> None:
    sent = panel(request_, "approve", reason="almost")
    factories.overdue(request_)
    response = as_("rita").post(url(request_, "decide"), sent)
    source = read_page(response)
    assert response.status_code == 410
    assert "before your decision arrived" in source
    assert "Nothing was executed" in source
    assert "almost" in source


def test_who_comes_second_reads_that_it_was_decided(
    gate: Gate, request_, as_: SignIn
) -> None:
    sent = panel(request_, "approve", reason="mine")
    decide(request_, gate.tom, "reject", reason_code="unsafe")
    response = as_("rita").post(url(request_, "decide"), sent)
    source = read_page(response)
    assert response.status_code == 409
    assert 'data-code="decided"' in source
    assert "Tom Example rejected this" in source
    assert "mine" in source


def test_a_page_that_lost_its_hash_records_nothing(request_, as_: SignIn) -> None:
    sent = panel(request_, "approve") | {"action_hash": ""}
    response = as_("rita").post(url(request_, "decide"), sent)
    assert response.status_code == 422
    assert 'data-code="digest_missing"' in read_page(response)


def test_a_decision_needs_the_forms_token(gate: Gate, request_) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(gate.rita, "django.contrib.auth.backends.ModelBackend")
    response = client.post(url(request_, "decide"), panel(request_, "approve"))
    assert response.status_code == 403
    assert not Decision.objects.exists()


@pytest.mark.parametrize("path", ["recall", "decide"])
def test_wrong_methods_are_refused(request_, as_: SignIn, path: str) -> None:
    client = as_("rita")
    assert client.put(url(request_, path)).status_code == 405
    assert client.delete(url(request_)).status_code == 405
    assert client.get(url(request_, "recall")).status_code == 405


def test_recall_while_the_window_is_open(gate: Gate, as_: SignIn) -> None:
    request = states.recallable(gate)
    client = as_("rita")
    assert 'data-testid="recall"' in read_page(client.get(url(request)))
    assert client.post(url(request, "recall")).status_code == 303
    request.refresh_from_db()
    assert request.status == RequestStatus.PENDING


def test_the_answer_of_an_undo_brings_each_region_that_it_changes(
    gate: Gate, as_: SignIn
) -> None:
    request = states.recallable(gate)
    source = read_page(as_("rita", **HTMX).post(url(request, "recall"), follow=True))
    for name in ["live", "asked", "banners", "conversation", "remarks", "history"]:
        assert re.search(rf'id="{name}"\s[^>]*hx-swap-oob="true"', source), name
    assert "undid the approval" in find_element(source, "history")


def test_what_others_do_brings_the_history_where_verbs_remain(
    gate: Gate, as_: SignIn
) -> None:
    request = states.recallable(gate)
    tom = as_("tom", **HTMX)
    page = read_page(as_("tom").get(url(request)))
    tag = re.search(r'"If-None-Match": "([^"]+)"', page)
    assert tag
    recall.recall_approval(request_id=request.pk, person=gate.rita)
    asked = tom.get(url(request, "live"), headers={"If-None-Match": tag[1]})
    assert "undid the approval" in find_element(read_page(asked), "history")


def test_recall_is_offered_to_whom_it_is_allowed(gate: Gate, as_: SignIn) -> None:
    request = states.recallable(gate)
    offered = {
        name
        for name in gate.people
        if 'data-testid="recall"' in read_page(as_(name).get(url(request)))
    }
    assert offered == {"rita", "sue", "sam"}


def test_recall_after_the_window_says_that_it_runs(gate: Gate, as_: SignIn) -> None:
    request = states.authorized(gate)
    response = as_("rita").post(url(request, "recall"))
    assert response.status_code == 409
    assert "can no longer be undone" in read_page(response)


def test_a_known_failure_is_tried_again_by_who_may(gate: Gate, as_: SignIn) -> None:
    execution = states.failed(gate)
    request = ApprovalRequest.objects.get(proposal=execution.proposal_id)
    offered = {
        name
        for name in gate.people
        if 'data-testid="retry"' in read_page(as_(name).get(url(request)))
    }
    assert offered == {"rita", "tom", "sue", "sam"}
    assert as_("otto").post(url(request, "retry")).status_code == 403
    assert as_("rita").post(url(request, "retry")).status_code == 303
    execution.refresh_from_db()
    assert execution.status == "queued"
    assert as_("rita").post(url(request, "retry")).status_code == 409
    assert as_("rita").get(url(request, "retry")).status_code == 405


def test_nothing_is_tried_again_that_never_ran(request_, as_: SignIn) -> None:
    assert as_("rita").post(url(request_, "retry")).status_code == 404


def live(client: Client, request: ApprovalRequest, etag: str = "") -> Any:
    return client.get(url(request, "live"), headers={"If-None-Match": etag})


def test_the_strip_is_silent_while_nothing_changes(request_, as_: SignIn) -> None:
    client = as_("rita", **HTMX)
    first = live(client, request_)
    assert first.status_code == 200
    assert len(read_page(first)) < 1536
    assert 'id="decide"' not in read_page(first)
    assert live(client, request_, first["ETag"]).status_code == 204


def test_the_strip_brings_the_outcome_when_someone_else_decides(
    gate: Gate, request_, as_: SignIn
) -> None:
    client = as_("rita", **HTMX)
    etag = live(client, request_)["ETag"]
    decide(request_, gate.tom, "reject", reason_code="unsafe")
    response = live(client, request_, etag)
    source = read_page(response)
    assert response.status_code == 286
    assert 'id="outcome"' in source
    assert "hx-swap-oob" in source
    assert "data-poll" not in source[: source.index("</section>")]


def test_the_strip_brings_the_difference_when_the_agent_revises(
    gate: Gate, request_, as_: SignIn
) -> None:
    client = as_("rita", **HTMX)
    etag = live(client, request_)["ETag"]
    factories.revise(gate.agent, request_.proposal, amount="41.00")
    source = read_page(live(client, request_, etag))
    assert 'data-testid="banner"' in source
    assert "41.00" in source
    assert f'href="{url(request_)}?since=1"' in source


@pytest.mark.parametrize("status", sorted(states.REQUESTS))
@pytest.mark.parametrize("name", ["rita", "sue", "otto", "owen"])
def test_every_status_has_a_page(
    gate: Gate, as_: SignIn, status: str, name: str
) -> None:
    request = states.REQUESTS[status](gate)
    assert as_(name).get(url(request)).status_code == 200


@pytest.mark.parametrize("status", sorted(states.EXECUTIONS))
def test_every_execution_has_a_word(gate: Gate, as_: SignIn, status: str) -> None:
    execution = states.EXECUTIONS[status](gate)
    request = ApprovalRequest.objects.get(proposal=execution.proposal_id)
    source = read_page(as_("sue").get(url(request)))
    keys = {"claimed": "running", "succeeded": "executed"}
    assert f'data-state="{keys.get(status, status)}"' in source


def test_a_failure_that_is_tried_again_says_when(
    gate: Gate, as_: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worlds, "failing", attempts.flaky)
    execution = attempts.granted(gate, "decline")
    run.run_execution(execution.pk)
    execution.refresh_from_db()
    request = execution.proposal.request
    source = read_page(as_("rita").get(f"/requests/{request.pk}/"))
    due = f"{execution.due_at:%H:%M:%S} UTC"
    assert f"Failed without effect, next attempt at {due}" in source
    assert f"Attempt 2 of 3, next at {due}." in source


def test_a_page_that_is_loaded_after_cancel_gives_the_verb_the_focus(
    gate: Gate, as_: SignIn
) -> None:
    """Escape is a link: before htmx knows the panel, the browser follows it."""
    request = propose(gate.agent).request
    url = f"/requests/{request.pk}/?from=approve"
    whole = read_page(as_("rita").get(url))
    assert 'data-testid="verb-approve" autofocus>' in whole
    assert whole.count("autofocus") == 1
    part = read_page(as_("rita", **HTMX).get(url))
    assert 'data-testid="verb-approve"' in part
    assert "autofocus" not in part


def reject_parent(gate: Gate, parent: Proposal) -> None:
    decide(parent.request, gate.sue, "reject")


def withdraw_parent(gate: Gate, parent: Proposal) -> None:
    states.withdraw(gate.agent, parent)


def expire_parent(gate: Gate, parent: Proposal) -> None:
    factories.overdue(parent.request)
    deadlines.expire_chunk()


@pytest.mark.parametrize(
    ("end", "said", "status"),
    [
        (reject_parent, "was rejected", "rejected"),
        (withdraw_parent, "was withdrawn", "withdrawn"),
        (expire_parent, "expired", "expired"),
    ],
)
def test_a_child_says_how_its_parent_ended(
    gate: Gate, as_: SignIn, end: Any, said: str, status: str
) -> None:
    parent = propose(gate.agent)
    fields = {"thread": "t-2", "amount": "41.00", "parent": parent.pk}
    request = propose(gate.agent, **fields).request
    client = as_("rita")
    before = client.get(url(request, "live"), headers={"HX-Request": "true"})
    assert 'data-testid="parent-ended"' not in read_page(client.get(url(request)))
    assert detail_of(gate, request)["ended_parent"] is None
    end(gate, parent)
    answer = client.get(
        url(request, "live"),
        headers={"HX-Request": "true", "If-None-Match": before["ETag"]},
    )
    for page in (answer, client.get(url(request))):
        text = read_text(page, "parent-ended")
        assert text.startswith(f"The call that this is part of {said} ")
        assert "It did not run." in text
    told = detail_of(gate, request)["ended_parent"]
    assert (told["proposal"], told["status"]) == (parent.pk, status)


def test_a_child_says_that_its_parent_was_blocked(gate: Gate, as_: SignIn) -> None:
    parent = propose(gate.agent, "unheard_of")
    request = propose(gate.agent, parent=parent.pk).request
    page = as_("rita").get(url(request))
    assert "part of was blocked" in read_text(page, "parent-ended")


@pytest.mark.parametrize("parent", ["", "p-nowhere"])
def test_without_a_parent_that_ended_nothing_is_said(
    gate: Gate, as_: SignIn, parent: str
) -> None:
    request = propose(gate.agent, parent=parent).request
    assert 'data-testid="parent-ended"' not in read_page(as_("rita").get(url(request)))


def test_a_member_of_a_batch_says_that_its_parent_ended(
    gate: Gate, as_: SignIn
) -> None:
    parent = propose(gate.agent, amount="7.00", thread="t-parent")
    batch = formed(gate, parent=parent.pk)
    path = f"/batches/{batch.pk}/"
    assert 'data-testid="parent-ended"' not in read_page(as_("rita").get(path))
    decide(parent.request, gate.sue, "reject")
    source = read_page(as_("rita").get(path))
    said = "The call that it is part of was rejected"
    assert source.count(said) == batch.items.filter(left_at=None).count()


def detail_of(gate: Gate, request: ApprovalRequest) -> dict[str, Any]:
    """The request as Tom's programs read it."""
    token = tokens.create_token(person=gate.tom, name=f"script-{clock.now()}")
    headers = {"Authorization": f"Bearer {token}"}
    path = f"/api/v1/requests/{request.pk}"
    return dict(Client().get(path, headers=headers).json())
