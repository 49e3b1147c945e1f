"""`/batches/` and `/batches/<id>/`: one table, samples, an exact list, one decision."""

from __future__ import annotations

import gzip
import re
from datetime import timedelta
from typing import Any

import pytest

from agents import reversals
from desk.batches import lists
from policies.models import Person
from reviews.batches import formation
from reviews.choices import BatchStatus, RequestStatus
from reviews.decisions import recall
from reviews.executions import run
from reviews.holds import take
from reviews.models import ApprovalRequest, Batch, Decision, Execution
from tests import factories
from tests.conftest import Gate
from tests.desk.batches.batch_form import ASKED, Form, inputs, statuses, url
from tests.desk.conftest import SignIn
from tests.factories import propose
from tests.markup import find_element, read_page
from tests.reviews import states
from tests.reviews.batches.batching import AMOUNTS, formed, members, proposed
from tests.reviews.dialogue.talking import send_back

KB = 1024
MOST_QUERIES = 13  # one for who could decide what would be escalated
LIKE_OTHERS = ["7.00"] * 47


def test_the_list_names_count_and_total(gate: Gate, as_: SignIn) -> None:
    batch = formed(gate)
    text = read_page(as_("rita").get("/batches/"))
    assert batch.pk in text
    assert "3 repayments" in text
    assert "41.90 USD" in text


def test_a_member_that_comes_back_counts_once(gate: Gate, as_: SignIn) -> None:
    states.recall_windows(gate)
    batch = formed(gate)
    request = members(batch)[0].request
    factories.decide(request, gate.rita)
    formation.tidy_open_batches()
    recall.recall_approval(request_id=request.pk, person=gate.rita)
    formation.form_missed_batches()
    assert request.batch_items.filter(batch=batch).count() == 2
    for page in ("/batches/", "/queue/"):
        text = read_page(as_("rita").get(page))
        assert "3 repayments" in text
        assert "41.90 USD" in text


def test_a_list_that_is_cut_says_how_many_more_there_are(
    gate: Gate, as_: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "MAX_LISTED", 1)
    for count in (2, 3):  # once in a batch, they take no others
        proposed(gate, *AMOUNTS[:count])
        formation.form_missed_batches()
        Batch.objects.update(status=BatchStatus.OPEN)
    assert Batch.objects.count() == 2
    cut = find_element(read_page(as_("rita").get("/batches/")), "cut")
    assert "1 more is not listed here." in cut
    assert 'href="/queue/"' in cut


def test_the_page_says_all_once_and_each_in_a_row(gate: Gate, as_: SignIn) -> None:
    text = read_page(as_("rita").get(url(formed(gate))))
    heading = text[text.index("<h1") : text.index("</h1>")]
    for said in ("Pay back", "3 repayments", "41.90 USD", "26.90 USD"):
        assert said in heading
    assert len(inputs(text, "item")) == 3
    table = text[text.index('data-testid="batch-table"') :]
    assert table.index("C-2") < table.index("C-0")  # it stands out
    assert 'class="flag"><span class="tag tag-loud">3.4 times the median<' in table
    words, rows = (
        text.index(f'data-testid="{n}"') for n in ("agent-text", "batch-table")
    )
    assert words < rows  # why the agent wants them is not below fifty rows
    assert find_element(text, "approvals")
    assert find_element(text, "undecided")
    assert "3 identical" in text


def test_a_row_that_people_sent_back_says_so(gate: Gate, as_: SignIn) -> None:
    batch = formed(gate)
    first = members(batch)[0]
    send_back(first.request, gate.tom)
    text = read_page(as_("rita").get(url(batch)))
    assert text.count('data-testid="with-agent"') == 1
    row = text[text.index(f'<tr id="i-{first.id}"') :]
    assert "With the agent since" in row[: row.index("</tr>")]


def test_a_policy_that_changes_nothing_is_one_quiet_line(
    gate: Gate, as_: SignIn
) -> None:
    batch, client = formed(gate), as_("rita")
    assert 'data-testid="policy-change"' not in read_page(client.get(url(batch)))
    new = factories.policy(gate.people, factories.document_of_tests())
    line = find_element(read_page(client.get(url(batch))), "policy-change")
    assert f"The policy is now version {new.number}." in line
    assert "It requires the same." in line
    assert "note" not in line


def test_it_is_light_and_needs_few_queries(
    gate: Gate, as_: SignIn, django_assert_max_num_queries
) -> None:
    batch = formed(gate, *LIKE_OTHERS, *AMOUNTS)
    client = as_("rita")
    client.get(url(batch))
    with django_assert_max_num_queries(MOST_QUERIES):
        content = client.get(url(batch)).content
    assert len(inputs(content.decode(), "item")) == 50
    assert len(gzip.compress(content, 6)) <= 24 * KB
    assert len(content) <= 160 * KB
    with django_assert_max_num_queries(MOST_QUERIES):
        client.get("/batches/")


def paid(gate: Gate, customer: str) -> Execution:
    """An effect that has happened."""
    request = propose(gate.agent, customer=customer, thread=f"run-{customer}").request
    factories.decide(request, gate.sue)
    execution = Execution.objects.get(proposal=request.proposal_id)
    run.run_execution(execution.pk)
    return execution


def test_a_row_says_what_it_reverses(
    gate: Gate, as_: SignIn, django_assert_max_num_queries
) -> None:
    done = [paid(gate, f"C-9{n}") for n in range(3)]
    for execution in done:
        reversals.propose_reversal(
            execution_id=execution.pk, person=gate.tom, reason="twice"
        )
    args = {"amount": "7.00", "currency": "USD", "note": "promised"}
    batch = formed(gate, "7.00", args=args)
    client = as_("rita")
    client.get(url(batch))
    with django_assert_max_num_queries(MOST_QUERIES + 3):
        text = read_page(client.get(url(batch)))
    rows = re.findall(r'<tr id="i-.*?</tr>', text, re.S)
    said = [row for row in rows if 'data-testid="reverses"' in row]
    assert (len(rows), len(said)) == (4, 3)
    for execution in done:
        request = execution.proposal.request.pk
        (row,) = [row for row in said if f'<a href="/requests/{request}/">' in row]
        assert execution.proposal.current.args["customer"] in row
        assert "Pay " in row
    form = Form(client, batch).open_samples().press("arm:approve").press("commit")
    assert form.status == 303
    vote = Decision.objects.latest("pk")
    kept = read_page(client.get(f"/requests/{vote.request_id}/as-seen/{vote.pk}/"))
    assert kept.count('data-testid="reverses"') == 3
    assert "Matches what was shown" in kept


def test_who_never_decides_reads_and_has_no_verb(gate: Gate, as_: SignIn) -> None:
    batch = formed(gate)
    text = read_page(as_("otto").get(url(batch)))
    assert "verb-approve" not in text
    assert inputs(text, "item") == []
    assert as_("owen").get(url(batch)).status_code == 404


def test_approving_waits_for_the_samples_and_names_them(
    gate: Gate, as_: SignIn
) -> None:
    form = Form(as_("rita"), formed(gate)).press("arm:approve")
    assert form.status == 422
    assert find_element(form.text, "problem").count('href="#i-') == 3
    form.open_samples()
    assert form.text.count('class="inside"') == 3
    form.press("arm:approve")
    assert "Approve 3 repayments, 41.90 USD" in form.text
    assert form.status == 200


def test_a_hand_made_commit_needs_the_samples_too(gate: Gate, as_: SignIn) -> None:
    form = Form(as_("rita"), formed(gate))
    form.press("commit", verdict="approve", digest=form.digest)
    assert form.status == 422
    assert statuses() == {RequestStatus.PENDING}


def test_approved_as_armed_with_what_was_opened(gate: Gate, as_: SignIn) -> None:
    batch = formed(gate)
    form = Form(as_("rita"), batch).open_samples().press("arm:approve")
    form.press("commit", stop="1")
    assert form.status == 303
    batch.refresh_from_db()
    assert batch.status == BatchStatus.DECIDED
    assert statuses() == {RequestStatus.AUTHORIZED}
    looked = [one.check_asked for one in Decision.objects.all()]
    assert all(one["opened"] and one["seconds"] >= 0 for one in looked)
    assert 'data-testid="batch-results"' in form.text


def test_what_is_unticked_goes_back_and_changes_the_digest(
    gate: Gate, as_: SignIn
) -> None:
    form = Form(as_("rita"), formed(gate)).open_samples()
    before = form.digest
    left = form.items.pop()
    form.press("select")
    assert form.digest not in ("", before)
    assert 'data-testid="left-out"' in form.text
    assert "2 of 3" in find_element(form.text, "selected")
    form.press("arm:approve").press("commit")
    assert ApprovalRequest.objects.get(pk=left).status == RequestStatus.PENDING
    assert Decision.objects.count() == 2


def test_what_is_ticked_otherwise_after_arming_is_asked_again(
    gate: Gate, as_: SignIn
) -> None:
    form = Form(as_("rita"), formed(gate)).open_samples().press("arm:approve")
    form.items.pop()
    form.press("commit")
    assert form.status == 409
    assert 'data-testid="problem"' in form.text
    assert "Approve 2 repayments" in form.text
    assert statuses() == {RequestStatus.PENDING}


def test_a_changed_row_is_pinned_and_nothing_is_decided(
    gate: Gate, as_: SignIn
) -> None:
    batch = formed(gate)
    form = Form(as_("rita"), batch).open_samples().press("arm:approve")
    member = members(batch)[1]
    args = {**member.version.revision.args, "amount": "70.00"}
    factories.revised(gate.agent, member.request.proposal, args)
    form.press("commit")
    assert form.status == 409
    assert "1 of 3 items" in find_element(form.text, "problem")
    assert 'data-testid="changed"' in form.text
    assert statuses() == {RequestStatus.PENDING}
    rows = re.findall(r'<tr id="i-([^"]+)"', form.text)
    assert rows[0] == member.id
    form.open_samples().press("arm:approve").press("commit")
    assert statuses() == {RequestStatus.AUTHORIZED}


def test_a_row_that_joined_after_the_page_is_never_decided(
    gate: Gate, as_: SignIn
) -> None:
    form = Form(as_("rita"), formed(gate)).open_samples().press("arm:approve")
    later = proposed(gate, "9.00")[0]
    formation.form_batch_around(later.pk)
    form.press("commit")
    assert form.status == 409
    assert statuses() == {RequestStatus.PENDING}


def test_all_are_rejected_with_a_reason_and_the_text_is_kept(
    gate: Gate, as_: SignIn
) -> None:
    form = Form(as_("rita"), formed(gate)).press("arm:reject")
    form.press("commit", reason="They asked twice.")
    assert form.status == 422
    assert "They asked twice." in form.text
    form.press("commit", reason_code="duplicate", reason="They asked twice.")
    assert form.status == 303
    assert statuses() == {RequestStatus.REJECTED}


def test_what_nobody_could_decide_then_is_not_offered_to_escalate(
    gate: Gate, as_: SignIn
) -> None:
    Person.objects.filter(pk=gate.sam.pk).update(is_active=False)
    form = Form(as_("sue"), formed(gate))
    said = "Nobody above you can decide any of these items."
    assert said in find_element(form.text, "why-not-escalate")
    assert 'value="arm:escalate"' not in form.text
    form.press("arm:escalate")
    assert (form.status, 'data-testid="panel"' in form.text) == (422, False)
    assert 'value="arm:escalate"' in Form(as_("rita"), form.batch).text


def test_what_some_could_not_be_escalated_for_is_said(gate: Gate, as_: SignIn) -> None:
    barring = {"on_behalf_of": {"kind": "user", "id": gate.sam.email}}
    (odd,) = proposed(gate, "7.00", **barring)
    form = Form(as_("sue"), formed(gate))
    assert odd.pk in form.items
    assert "1 of these" in find_element(form.text, "why-not-escalate")
    assert 'value="arm:escalate"' in form.text
    form.items.remove(odd.pk)
    form.press("select")
    assert 'data-testid="why-not-escalate"' not in form.text


def test_a_batch_is_taken_apart_by_a_value(gate: Gate, as_: SignIn) -> None:
    for number, note in enumerate(["late", "late", "broken", "late"]):
        args = {"customer": f"C-{number}", "amount": "7.00", "currency": "USD"}
        propose(gate.agent, "repay", args={**args, "note": note}, thread=f"s-{number}")
    formation.form_missed_batches()
    form = Form(as_("rita"), Batch.objects.get())
    place = inputs(form.text, "split")[1]
    form.press("split", split=place)
    assert "1 of 4" in find_element(form.text, "selected")


def test_opening_a_row_changes_nothing(gate: Gate, as_: SignIn) -> None:
    batch = formed(gate)
    item = members(batch)[0].id
    client = as_("rita")
    peek = read_page(client.get(url(batch, item), headers=ASKED))
    assert "Pay " in peek
    assert "<html" not in peek
    assert inputs(peek, "opened")
    assert "<html" in read_page(client.get(url(batch, item)))
    assert client.get(url(batch, "r-nothing")).status_code == 404
    assert not Decision.objects.exists()


def test_with_htmx_a_press_draws_only_the_foot(gate: Gate, as_: SignIn) -> None:
    batch = formed(gate)
    client = as_("rita")
    form = Form(client, batch)
    sent = {"do": "arm:reject", "row": inputs(form.text, "row"), "item": form.items}
    answer = read_page(client.post(url(batch, "decide"), sent, headers=ASKED))
    assert answer.lstrip().startswith("<div")
    assert 'data-focus="#panel"' in answer


def test_a_request_in_a_batch_leads_there(gate: Gate, as_: SignIn) -> None:
    batch = formed(gate)
    request = members(batch)[0].request
    text = read_page(as_("rita").get(f"/requests/{request.pk}/"))
    assert f'href="{url(batch)}"' in text
    assert "batch of 3" in text


def test_a_dissolved_batch_says_so(gate: Gate, as_: SignIn) -> None:
    batch = formed(gate, "7.00", "8.00")
    client = as_("rita")
    form = Form(client, batch)
    factories.decide(members(batch)[0].request, gate.tom)
    assert 'data-testid="dissolved"' in read_page(client.get(url(batch)))
    form.press("commit", verdict="reject", reason_code="duplicate")
    assert form.status == 409


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"do": "nonsense"},
        {"do": "commit"},
        {"do": "commit", "item": ["r-x", "\x00"], "row": ["~", "r-x~"], "opened": "x"},
        {"do": "arm:approve", "row": "r-x~1"},
        {"do": "open:nothing", "opened": ["a:b:c"] * 200},
        {"do": "split", "split": "99:99"},
    ],
)
def test_bad_input_is_never_our_failure(
    gate: Gate, as_: SignIn, sent: dict[str, Any]
) -> None:
    batch = formed(gate)
    response = as_("rita").post(url(batch, "decide"), sent)
    assert response.status_code < 500
    assert statuses() == {RequestStatus.PENDING}


def test_another_person_cannot_use_what_somebody_opened(
    gate: Gate, as_: SignIn
) -> None:
    batch = formed(gate)
    form = Form(as_("rita"), batch).open_samples()
    other = Form(as_("tom"), batch)
    other.opened = form.opened
    other.press("arm:approve")
    assert other.status == 422


def test_who_holds_an_item_keeps_it_out(gate: Gate, as_: SignIn) -> None:
    batch = formed(gate)
    held = members(batch)[0].id
    take.take_hold(request_id=held, person=gate.tom)
    form = Form(as_("rita"), batch)
    assert held not in form.items
    assert "Tom Example" in find_element(form.text, "blocked")
    form.open_samples().press("arm:approve").press("commit")
    assert form.status == 303
    assert ApprovalRequest.objects.get(pk=held).status == RequestStatus.PENDING


def test_a_batch_is_one_row_of_the_queue(gate: Gate, as_: SignIn) -> None:
    batch = formed(gate)
    alone = propose(gate.agent, "pay", customer="C-9").request
    soonest = members(batch)[1].request
    sooner = soonest.expires_at - timedelta(minutes=1)
    ApprovalRequest.objects.filter(pk=soonest.pk).update(expires_at=sooner)
    said = read_page(as_("rita").get("/queue/"))
    rows = said.split("<tr data-request=")[1:]
    assert len(rows) == 2
    (row,) = [one for one in rows if alone.pk not in one]
    assert soonest.pk in row
    assert f'href="{url(batch)}"' in row
    text = re.sub(r"<[^>]*>", "", row)
    assert "Pay back: 3 repayments, 41.90 USD" in text
    assert "batch of 3, earliest deadline shown" in text
    assert "batch of" not in read_page(as_("rita").get("/queue/?tab=waiting"))


def test_who_looks_for_one_risk_finds_each_of_a_batch(gate: Gate, as_: SignIn) -> None:
    batch = formed(gate)
    rows = read_page(as_("rita").get("/queue/?risk=high")).split("<tr data-request=")[
        1:
    ]
    assert len(rows) == 3
    assert all(f'href="{url(batch)}"' in row for row in rows)
    assert all("in a batch of 3" in row for row in rows)


def test_an_identical_one_outside_the_batch_keeps_its_row(
    gate: Gate, as_: SignIn
) -> None:
    batch = formed(gate, "7.00", "7.00", customer="C-1")
    factories.propose(gate.agent, "repay", amount="7.00", customer="C-1", thread="x")
    loose = ApprovalRequest.objects.exclude(batch_items__batch=batch).get()
    rows = read_page(as_("rita").get("/queue/")).split("<tr data-request=")[1:]
    assert len(rows) == 2
    assert sum(loose.pk in row for row in rows) == 1


def test_one_that_is_left_alone_in_its_batch_is_not_marked(
    gate: Gate, as_: SignIn
) -> None:
    batch = formed(gate, "7.00", "8.00")
    factories.decide(members(batch)[0].request, gate.tom, "reject")
    assert "in a batch" not in read_page(as_("rita").get("/queue/"))


def test_all_are_escalated_with_a_reason(gate: Gate, as_: SignIn) -> None:
    batch = formed(gate)
    form = Form(as_("rita"), batch).press("arm:escalate")
    assert "Escalate 3 repayments, 41.90 USD" in form.text
    form.press("commit")
    assert form.status == 422
    form.press("commit", reason_code="unsafe")
    assert form.status == 303
    assert set(ApprovalRequest.objects.values_list("tier", flat=True)) == {"escalate"}
    assert "<b>3</b> escalated" in form.text
    assert form.text.count('data-state="escalated"') == 3
    assert "Escalated " in find_element(form.text, "verdict")
