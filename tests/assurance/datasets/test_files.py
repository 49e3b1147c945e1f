"""Datasets: what a line holds and does not hold, its label, and which part it is in."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from agents import reversals
from assurance import second_reviews
from assurance.datasets import consent as consents
from assurance.datasets import files
from hitl import tasks
from journal import clock
from journal.errors import Conflict, InvalidArgs, NotPermitted
from journal.models import LogRecord, OutboxMessage
from policies.choices import Role
from policies.models import Person
from reviews.administration import second_person
from reviews.choices import (
    DatasetStatus,
    DefectKind,
    SampleCause,
    Verdict,
)
from reviews.decisions import recall, returns
from reviews.executions import run
from reviews.models import (
    ApprovalRequest,
    Dataset,
    DatasetPart,
    Decision,
    Execution,
    UpheldReview,
)
from tests import factories, worlds
from tests.assurance.datasets.asking import ask, consent, read, read_text, reload, write
from tests.assurance.planting import plant
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews import states
from tests.reviews.models.test_constraints import update
from tests.stack import Stack, wait_until

pytestmark = pytest.mark.django_db


def approved(gate: Gate, **fields: Any) -> ApprovalRequest:
    fields.setdefault("thread", factories.new_thread())
    request: ApprovalRequest = propose(gate.agent, **fields).request
    return decide(request, gate.rita)


def test_a_line_has_what_was_shown_and_nobody_in_it(gate: Gate) -> None:
    document = factories.document_of_tests()
    document["tools"]["pay"]["sensitive"] = ["note"]
    factories.policy(gate.people, document)
    bo = factories.person("ann.lee", Role.REVIEWER)
    Person.objects.filter(pk=bo.pk).update(first_name="Bo", last_name="Li")
    worlds.WORLD["before"] = {"customer": {"name": "Annika Sjöberg"}, "amount": "0.00"}
    request = propose(
        gate.agent,
        args={
            "customer": "C-7",
            "amount": "40.00",
            "currency": "USD",
            "note": "tulip-4711",
        },
        rationale="Annika wrote to Rita Example from ann@example.org: pay C-7 for"
        " C-7781/O-5521 or 90017755, as Bo Li said. The word is tulip-4711.",
        evidence=[
            {
                "kind": "mail",
                "source": "inbox of ann@example.org, /home/ann.lee/x",
                "text": "I live at 12 Main Street, Springfield. Sjöberg, for B-99812.",
            }
        ],
        on_behalf_of={"kind": "customer", "id": "B-99812"},
    ).request
    decide(request, gate.rita, "reject", reason_code="unsafe", reason="Tulips, Rita.")
    approved(gate, customer="C-7781")
    dataset = write(gate, purpose="For Rita Example's refund agent.")
    text = read_text(dataset)
    for planted in (
        *("Annika", "Sj", "Rita", "rita", "Example", "ann@", "Main Street"),
        *("C-7", "B-99812", "99812", "tulip", "Tulips", "riley", "t-1", "t-new"),
        *(request.pk, request.proposal_id, gate.rita.public_id, gate.otto.public_id),
        *("otto", "Otto", request.action_hash, "O-5521", "90017755"),
        *("Bo ", "ann.lee"),
    ):
        assert planted not in text, planted
    header, lines = read(dataset)
    assert header["use"] == files.USE
    assert header["purpose"] == "For [person]'s refund agent."
    assert header["owner_role"] == "auditor"
    assert header["counts"]["label"] == {"approve": 1, "reject": 1}
    assert header["lines"] == len(lines) == 2
    line = next(one for one in lines if one["label"] == "reject")
    assert (line["tool"], line["risk"], line["tier"]) == (
        {"name": "pay", "version": 2},
        "high",
        "approve",
    )
    args = line["arguments"]
    assert args["customer"] in line["customers"]
    assert (args["amount"], args["currency"]) == ("40.00", "USD")
    assert "redacted" in args["note"]
    assert f"pay {args['customer']} for customer-" in line["rationale"]
    assert "[address · redacted · #" in line["evidence"][0]["text"]
    assert (line["reason_code"], line["label_quality"]) == ("unsafe", ["one person"])
    assert len(line["customers"]) == 2


def review(decision: Decision, person: Person, verdict: str) -> None:
    second_reviews.choose_decision(decision_id=decision.pk, cause=SampleCause.SAMPLE)
    second_reviews.record_answer(
        decision_id=decision.pk, person=person, verdict=Verdict(verdict), reason="x"
    )


def test_a_label_says_what_backs_it(gate: Gate) -> None:
    """Each customer has one request, so that a line can be found by its amount."""
    by_amount: dict[str, list[str]] = {}

    def pay(amount: str, **fields: Any) -> ApprovalRequest:
        return propose(
            gate.agent,
            amount=amount,
            customer=f"C-{amount}",
            thread=factories.new_thread(),
            **fields,
        ).request

    for amount, verdict in (("1", "approve"), ("2", "reject"), ("3", "approve")):
        request = pay(amount)
        decide(request, gate.rita)
        decision = Decision.objects.get(request=request)
        review(decision, gate.tom, verdict)
        if amount == "2":
            second_reviews.record_ruling(
                decision_id=decision.pk,
                person=gate.sue,
                upheld=UpheldReview.SECOND,
                reason="Too much.",
            )
        if amount == "3":
            execution = Execution.objects.get(proposal=request.proposal_id)
            run.run_execution(execution.pk)
            undo = reversals.propose_reversal(
                execution_id=execution.pk, person=gate.tom, reason="By mistake."
            ).request
            decide(undo, gate.rita)
            run.run_execution(Execution.objects.get(proposal=undo.proposal_id).pk)
    both = pay("501.00")
    decide(both, gate.sue)
    decide(both, gate.sam)
    split = pay("502.00")
    decide(split, gate.sue)
    decide(split, gate.sam, "reject")
    worlds.WORLD["declined"] = {"C-8"}
    declined = propose(
        gate.agent, "repay", amount="8", customer="C-8", thread=factories.new_thread()
    ).request
    decide(declined, gate.rita)
    run.run_execution(Execution.objects.get(proposal=declined.proposal_id).pk)
    worlds.rewrite(Decision, decide_fast(gate, pay("4")), flags=["fast"])
    args = {"customer": "C-5", "amount": "0.50", "currency": "USD"}
    decide(pay("5"), gate.rita, "modify", args=args, reason_code="wrong_amount")
    decide(pay("6"), gate.rita, "escalate")
    back = pay("9")
    decide(back, gate.rita, "escalate")
    returns.return_with_guidance(request_id=back.pk, person=gate.sue, guidance="Try.")
    pay("7")
    canary = plant(gate, kind=DefectKind.AMOUNT_TENFOLD)
    decide(canary, gate.rita, "reject")
    tools = ["pay", "repay"]
    without = read(write(gate, tools=tools))[1]
    assert not any(line["canary"] for line in without)
    header, lines = read(write(gate, tools=tools, with_canaries=True))
    for line in lines:
        if line["canary"]:
            source = line["thread"]
            assert (line["label"], line["verdict"]) == ("amount_tenfold", "reject")
            assert line["label_quality"] == ["planted", "caught"]
            continue
        # The reversal pays the same amount back.
        repaid = "repaid " if line["tool"]["name"] == "repay" else ""
        by_amount[repaid + line["arguments"]["amount"]] = line["label_quality"]
    assert by_amount["1"] == ["one person", "second review agreed"]
    assert by_amount["2"] == [
        "one person",
        "second review disagreed and was ruled: the second was right",
    ]
    assert by_amount["3"] == [
        *("one person", "second review agreed", "effect was undone")
    ]
    assert by_amount["501.00"] == ["two people agreed"]
    assert by_amount["502.00"] == ["two people disagreed"]
    assert by_amount["repaid 8"] == ["one person", "effect failed"]
    assert by_amount["repaid 3"] == ["one person", "effect succeeded"]
    assert by_amount["4"] == ["one person below the minimum reading time"]
    edited = next(line for line in lines if line["edited"])
    assert (edited["arguments"]["amount"], edited["label"]) == ("5", "modify")
    assert edited["edited"] == ["amount"]
    assert "7" not in by_amount
    assert header["counts"]["label"]["canary: amount_tenfold"] == 1
    assert header["counts"]["label"]["escalate"] == 2
    assert by_amount["6"] == ["one person"]
    assert by_amount["9"] == ["one person", "escalation was returned"]
    real = next(
        line for line in lines if line["thread"] == source and not line["canary"]
    )
    assert real["part"] == next(line["part"] for line in lines if line["canary"])


def test_an_edit_that_was_undone_is_no_label(gate: Gate) -> None:
    states.recall_windows(gate)
    request = propose(gate.agent).request
    args = {"customer": "C-1", "amount": "0.50", "currency": "USD"}
    decide(request, gate.rita, "modify", args=args, reason_code="wrong_amount")
    request = recall.recall_approval(request_id=request.pk, person=gate.rita)
    decide(request, gate.rita, "reject")
    assert [line["label"] for line in read(write(gate))[1]] == ["reject"]


def decide_fast(gate: Gate, request: ApprovalRequest) -> int:
    decide(request, gate.rita)
    return int(Decision.objects.get(request=request).pk)


def test_a_customer_and_a_thread_are_in_one_part(gate: Gate, monkeypatch: Any) -> None:
    """Sixty requests of thirty customers in forty threads, in parts of seven lines that
    one delivery each writes."""
    monkeypatch.setattr(files, "PART_SIZE", 7)
    monkeypatch.setattr(files, "BUDGET_S", -1.0)
    for number in range(60):
        propose(
            gate.agent,
            "pay_queryable",
            amount=f"{number + 1}.00",
            customer=f"C-{1000 + number % 30}",
            thread=f"run-{number % 40 if number < 50 else 100 + number}",
        )
    for request in ApprovalRequest.objects.order_by("pk"):
        decide(request, gate.rita, "reject")
    dataset = consent(gate, ask(gate, tools=["pay_queryable"]))
    promises = OutboxMessage.objects.filter(subject=dataset.pk, done_at=None)
    deliveries = 0
    while promise := promises.first():
        tasks.write_dataset(promise.pk)
        deliveries += 1
    dataset.refresh_from_db()
    assert dataset.status == DatasetStatus.DONE
    header, lines = read(dataset)
    assert deliveries == 10
    assert len({(line["request"], line["version"]) for line in lines}) == 60
    for name in ("customers", "thread"):
        parts: dict[str, set[str]] = {}
        for line in lines:
            parts.setdefault(str(line[name]), set()).add(line["part"])
        assert len(parts) in {30, 50}
        assert all(len(found) == 1 for found in parts.values()), name
    assert sum(header["counts"]["part"].values()) == 60
    assert len(header["counts"]["part"]) > 1
    assert bytes(dataset.key or b"") == b""


def test_only_a_second_administrator_lets_it_be_written(gate: Gate) -> None:
    approved(gate)
    dataset = ask(gate)
    files.write_dataset(dataset.pk)
    assert not DatasetPart.objects.exists()
    for name in ("adam", "otto", "sue"):
        with pytest.raises(NotPermitted):
            consents.consent_dataset(
                dataset_id=dataset.pk, person=reload(gate.people[name])
            )
    owned = ask(gate, owner=gate.adam)
    with pytest.raises(InvalidArgs, match="No dataset") as refused:
        ask(gate, owner=gate.alma)
    assert [one["path"] for one in refused.value.errors] == ["owner"]
    assert "dataset_second_person" in update(
        dataset,
        status="refused",
        settled_by_id=gate.adam.pk,
        settled_at=dataset.asked_at,
    )
    consents.refuse_dataset(
        dataset_id=owned.pk, person=reload(gate.alma), reason="Too broad."
    )
    with pytest.raises(Conflict):
        consent(gate, owned)
    consent(gate, dataset)
    gate.adam.groups.clear()
    assert files.write_dataset(dataset.pk)
    dataset.refresh_from_db()
    assert dataset.status == DatasetStatus.FAILED
    assert not DatasetPart.objects.exists()
    assert Dataset.objects.filter(key__isnull=False).count() == 0


def test_a_dataset_is_withdrawn_by_whoever_asked_or_lapses(gate: Gate) -> None:
    approved(gate)
    withdrawn, lapsed, answered = (ask(gate) for _ in range(3))
    for name in ("alma", "otto", "sue"):
        with pytest.raises(NotPermitted):
            consents.withdraw_dataset(
                dataset_id=withdrawn.pk, person=reload(gate.people[name])
            )
    consents.withdraw_dataset(dataset_id=withdrawn.pk, person=reload(gate.adam))
    with pytest.raises(Conflict):
        consent(gate, withdrawn)
    consent(gate, answered)
    with pytest.raises(Conflict):
        consents.withdraw_dataset(dataset_id=answered.pk, person=reload(gate.adam))
    past = clock.now() - second_person.ANSWERED_WITHIN
    Dataset.objects.exclude(pk=lapsed.pk).update(asked_at=past)
    nearly = past + timedelta(minutes=1)
    Dataset.objects.filter(pk=lapsed.pk).update(asked_at=nearly)
    assert tasks.lapse_unanswered() == 0
    Dataset.objects.filter(pk=lapsed.pk).update(asked_at=past)
    with pytest.raises(Conflict):  # before the sweep comes
        consent(gate, lapsed)
    assert tasks.lapse_unanswered() == 1
    ends = [Dataset.objects.get(pk=one.pk) for one in (withdrawn, lapsed, answered)]
    assert [(one.status, one.settled_by_id) for one in ends] == [
        (DatasetStatus.WITHDRAWN, None),
        (DatasetStatus.LAPSED, None),
        (DatasetStatus.RUNNING, gate.alma.pk),
    ]
    assert all(one.settled_at for one in ends)
    files.write_dataset(withdrawn.pk)
    assert not DatasetPart.objects.exists()
    assert "dataset_settled_paired" in update(ends[1], settled_by_id=gate.alma.pk)
    kinds = LogRecord.objects.filter(kind__in=["dataset.withdrawn", "dataset.lapsed"])
    assert [(one.actor_id, one.data["dataset"]) for one in kinds.order_by("pk")] == [
        (gate.adam.public_id, withdrawn.pk),
        ("timer", lapsed.pk),
    ]


@pytest.mark.servers
@pytest.mark.django_db(transaction=True)
def test_its_owner_does_not_consent(gate: Gate) -> None:
    """They may have become an administrator since."""
    approved(gate)
    dataset = ask(gate)
    gate.otto.groups.set(gate.alma.groups.all())
    with pytest.raises(NotPermitted, match="You are its owner"):
        consent(gate, dataset, gate.otto)


def test_a_worker_writes_the_file_after_the_consent(gate: Gate, live: Stack) -> None:
    """The consent is the only nudge: nothing else tells the worker of the dataset."""
    approved(gate)
    dataset = ask(gate)
    live.start_worker()
    consent(gate, dataset)

    def is_done() -> bool:
        dataset.refresh_from_db()
        return dataset.status == DatasetStatus.DONE

    wait_until(is_done, 30, lambda: live.log("worker"))
    header, lines = read(dataset)
    assert header["lines"] == len(lines) == 1
    assert OutboxMessage.objects.get(subject=dataset.pk).done_at is not None


def test_every_step_is_on_the_record_and_the_file_ends(gate: Gate) -> None:
    approved(gate)
    dataset = write(gate)
    files.open_file(dataset_id=dataset.pk, person=reload(gate.otto))
    kinds = LogRecord.objects.filter(kind__startswith="dataset.").order_by("pk")
    assert [(one.kind, one.actor_id) for one in kinds] == [
        ("dataset.asked", gate.adam.public_id),
        ("dataset.consented", gate.alma.public_id),
        ("dataset.finished", ""),
        ("dataset.downloaded", gate.otto.public_id),
    ]
    assert tasks.drop_old_exports() == 0
    old = clock.now() - consents.KEPT_FOR
    Dataset.objects.filter(pk=dataset.pk).update(finished_at=old)
    assert tasks.drop_old_exports() == 2
