"""What `make chaos` makes of letters and mails: agents' servers fail and heal, and the
checker sees what was lost, came under two names or too late."""

from __future__ import annotations

import json
import smtplib
from collections import Counter
from dataclasses import replace
from email.message import EmailMessage
from pathlib import Path

import pytest
from django.db.models.functions import Now
from django.utils import timezone
from standardwebhooks.webhooks import Webhook

from agents import acknowledgements, representation
from chaos import delivery_checker
from chaos.delivery_checker import DeliveryFindings
from chaos.history import LONGEST_S, DeliveryAttempts, History, RunResult
from notifications import plan
from notifications.events import NOTICE_TITLES
from policies.choices import Role
from reviews.models import Notice
from tests import factories
from tests.agents.webhooks import deliveries
from tests.conftest import Gate
from world import receivers
from world.database import Ledger
from world.receivers import (
    Acknowledgement,
    Act,
    Arrival,
    Listener,
    Mail,
    MailServer,
    WebhookReceiver,
)

OPENED = NOTICE_TITLES["opened"]
SECRET = "whsec_" + "c2VjcmV0IG9mIHRoZSBob29rcyBvZiBjaGFvcw=="
OUTCOME = "o-9"  # whose first letter meets no mishap


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.add(Listener("agent-0", SECRET, "key", "http://127.0.0.1:1", "answer"))
    return ledger


def letter(outcome: str, secret: str = SECRET) -> tuple[dict[str, str], bytes]:
    about = {"proposal": "p-1", "thread": "t", "status": "executed", "outcome": outcome}
    event = {"type": "proposal.executed", "timestamp": "2026-11-22T01:00:00Z"}
    raw = json.dumps({**event, "data": about})
    at = timezone.now()
    headers = {
        "webhook-id": outcome,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(secret).sign(outcome, at, raw),
    }
    return headers, raw.encode()


def test_a_letter_is_written_down_acted_on_once_and_answered(ledger: Ledger) -> None:
    assert not receivers.find_mishap(OUTCOME, 0)
    served = WebhookReceiver(ledger)
    for _ in range(2):
        assert served.hear("agent-0", *letter(OUTCOME)).status == 200
    assert [act.outcome for act in ledger.load(Act)] == [OUTCOME]
    assert [arrival.answer for arrival in ledger.load(Arrival)] == ["200", "200"]


def test_a_bad_signature_is_kept_and_refused(ledger: Ledger) -> None:
    forged = letter(OUTCOME, SECRET.replace("c2Vj", "d2Vj"))
    assert WebhookReceiver(ledger).hear("agent-0", *forged).status == 401
    assert not ledger.load(Arrival)[0].good
    assert not ledger.load(Act)
    assert WebhookReceiver(ledger).hear("agent-9", *letter(OUTCOME)).status == 404


def test_mishaps_are_of_every_kind_and_heal() -> None:
    ids = [f"o-{number}" for number in range(3000)]
    first = Counter(receivers.find_mishap(number, 0) for number in ids)
    assert set(first) == {"", "refused", "asked to wait", "lost", "unsaid", "late"}
    assert first[""] > 0.85 * len(ids)
    assert {receivers.find_mishap(number, 1) for number in ids} == {"", "refused"}
    assert not any(receivers.find_mishap(number, 2) for number in ids)


def test_an_agent_that_cannot_tell_the_gate_takes_no_letter(ledger: Ledger) -> None:
    ledger.add(Listener("agent-2", SECRET, "key", "http://127.0.0.1:1", "call"))
    assert WebhookReceiver(ledger).hear("agent-2", *letter(OUTCOME)).status == 503
    assert ledger.load(Act)  # it did its work, and hears of it again
    assert not ledger.load(Acknowledgement)


def arrival(**changes: object) -> Arrival:
    usual = Arrival(10.0, "agent-0", "o-1", True, "b", "o-1", "p-1", "executed", "200")
    return replace(usual, **changes)  # type: ignore[arg-type]


END = ("p-1", "executed")


@pytest.mark.parametrize(
    ("ends", "arrivals", "wrong"),
    [
        ([END], [arrival()], ""),
        ([END], [arrival(), arrival(at=11.0)], ""),
        ([END], [], "unheard"),
        ([END], [arrival(status="failed")], "unheard"),
        ([END, END], [arrival()], "unheard"),
        ([END], [arrival(good=False)], "unheard"),
        ([END], [arrival(), arrival(message="o-2", outcome="o-2")], "unlike"),
    ],
)
def test_each_outcome_arrives_under_one_name(
    ends: list[tuple[str, str]], arrivals: list[Arrival], wrong: str
) -> None:
    findings = DeliveryFindings()
    findings.check_heard(Counter(ends), arrivals, [])
    broken = {"unheard": findings.unheard, "unlike": findings.unlike}
    assert [name for name, claim in broken.items() if claim.failures][:1] == (
        [wrong] if wrong else []
    )


def test_what_was_acknowledged_before_it_was_sent_need_not_arrive() -> None:
    findings = DeliveryFindings()
    acknowledged = [Acknowledgement("agent-3", *END, "o-1", "driver", 9.0)]
    findings.check_heard(Counter([END]), [], acknowledged)
    assert not findings.unheard.failures


def test_letters_of_one_id_are_alike_and_signed() -> None:
    findings = DeliveryFindings()
    unlike, unsigned = findings.unlike.failures, findings.unsigned.failures
    findings.check_alike([arrival(), arrival()])
    assert (unlike, unsigned) == ([], [])
    findings.check_alike([arrival(body="c"), arrival(), arrival(good=False)])
    assert (len(unlike), len(unsigned)) == (1, 1)
    findings.check_alike([arrival(outcome="o-2")])
    assert "in the body" in unlike[1]


def trips(folder: Path, *lines: tuple[float, str, str]) -> DeliveryAttempts:
    steps = (json.dumps([at, "worker-0", 7, step, pk]) for at, step, pk in lines)
    (folder / "worker-0").write_text("\n".join(steps))
    return DeliveryAttempts(folder)


def test_as_many_letters_may_arrive_late_as_were_begun_in_time(tmp_path: Path) -> None:
    tries = trips(
        tmp_path,
        (9.0, "begun", "d-1"),
        (12.0, "over", "d-1"),
        (13.0, "begun", "d-1"),
        (14.0, "over", "d-1"),
        (9.0, "begun", "d-2"),
    )
    assert tries.excuse("d-1", 10.0, 11.0, 1)
    assert tries.excuse("d-1", 10.0, 12.5, 1)  # given up, and sent by the kernel
    assert not tries.excuse("d-1", 10.0, 12.0 + 2 * LONGEST_S, 1)
    assert not tries.excuse("d-1", 10.0, 13.5, 2)
    assert tries.excuse("d-2", 10.0, 8.0 + 2 * LONGEST_S, 1)  # it never said: killed
    assert not tries.excuse("d-3", 10.0, 11.0, 1)


@pytest.mark.django_db
def test_the_log_and_the_rows_are_held_against_what_agents_kept(
    gate: Gate,
    ledger: Ledger,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    traces = tmp_path_factory.mktemp("traces")  # of workers who did nothing
    slug = gate.agent.slug
    monkeypatch.setattr(delivery_checker, "HOOKED", [slug])
    deliveries.register(gate.agent, "https://agent.example/hook", gate.owen)
    proposal = deliveries.rejected(gate)
    deliveries.promised()
    outcome = representation.compute_settled_id(proposal.pk)
    unheard = delivery_checker.check_deliveries(quiet(), ledger, traces).unheard
    assert unheard.failures
    about = (slug, proposal.pk, "rejected", outcome, "hook", 20.0)
    came = arrival(agent=slug, message=outcome, outcome=outcome)
    came = replace(came, proposal=proposal.pk, status="rejected")
    acknowledgements.acknowledge_outcome(
        agent=gate.agent, proposal_id=proposal.pk, outcome=outcome
    )
    for row in (came, Act(*about), Acknowledgement(*about)):
        ledger.add(row)
    fine = delivery_checker.check_deliveries(quiet(), ledger, traces)
    claims = (fine.unheard, fine.unacted, fine.untimely)
    assert [claim.n for claim in (*claims, fine.unkept)] == [1, 1, 1, 2]
    assert not any(claim.failures for claim in (*claims, fine.unlike))
    # That it was opened: nobody sent it.
    assert "waiting" in fine.unkept.failures[0]
    ledger.add(replace(came, at=30.0))
    ledger.add(replace(Act(*about), outcome="o-2"))
    wrong = delivery_checker.check_deliveries(quiet(), ledger, traces)
    assert (len(wrong.untimely.failures), len(wrong.unacted.failures)) == (1, 1)


def quiet() -> RunResult:
    """A run of which only its history is looked at."""
    return RunResult(0.0, 0.0, 0.0, History(), [], [], restarts={})


def test_the_mail_server_keeps_whom_and_about_what(ledger: Ledger) -> None:
    mailbox = MailServer("127.0.0.1", ledger)
    mailbox.open()
    mail = EmailMessage()
    mail["Subject"] = f"{OPENED}: ship, high risk (r-{'7' * 70})"
    mail["From"], mail["To"] = "gate@example.com", "rita@example.com"
    mail.set_content("Facts.\n.and a dot\n")
    with smtplib.SMTP("127.0.0.1", mailbox.server_address[1]) as smtp:
        smtp.send_message(mail)
        smtp.send_message(mail)
    mailbox.shutdown()
    mailbox.server_close()
    mails = [(row.recipient, row.subject) for row in ledger.load(Mail)]
    assert mails == [("rita@example.com", mail["Subject"])] * 2


@pytest.mark.django_db
def test_mails_are_missing_twice_or_unplanned(gate: Gate, ledger: Ledger) -> None:
    request = factories.propose(gate.agent, "pay").request
    roles = [Role.REVIEWER, Role.SUPERVISOR]
    plan.notify_people(plan.select_deciders(request, roles=roles), "opened")
    people = list(Notice.objects.values_list("person__email", flat=True))
    subject = f"{OPENED}: pay, high risk ({request.pk})"
    for person in people:
        ledger.add(Mail(person, subject, 0.0))
    fine = delivery_checker.check_mails(ledger)
    assert fine.sent == fine.arrived == len(people) > 1
    assert (fine.missing, fine.unplanned, fine.twice) == ([], [], 0)
    other = f"{NOTICE_TITLES['due_soon']}: pay, high risk (r-1)"
    for text in (subject, other):
        ledger.add(Mail(people[0], text, 0.0))
    more = delivery_checker.check_mails(ledger)
    assert (more.twice, len(more.unplanned)) == (1, 1)


@pytest.mark.django_db
def test_a_mail_that_never_came_is_missed(gate: Gate, ledger: Ledger) -> None:
    request = factories.propose(gate.agent, "pay").request
    plan.notify_people(plan.select_deciders(request, roles=[Role.SUPERVISOR]), "opened")
    assert "0 of 1 arrived" in delivery_checker.check_mails(ledger).missing[0]
    Notice.objects.update(sent_at=None)
    assert "never sent" in delivery_checker.check_mails(ledger).missing[0]


@pytest.mark.django_db
def test_a_mail_about_many_is_one_a_person_and_moment(
    gate: Gate, ledger: Ledger
) -> None:
    for number in range(2):
        request = factories.propose(gate.agent, customer=f"C-{number}").request
        plan.notify_people(
            plan.select_deciders(request, roles=[Role.SUPERVISOR]), "opened"
        )
    Notice.objects.update(digest=True, sent_at=Now())
    people = set(Notice.objects.values_list("person__email", flat=True))
    for person in people:
        ledger.add(Mail(person, "2 requests need your decision", 0.0))
    fine = delivery_checker.check_mails(ledger)
    assert fine.sent == 2 * fine.arrived == 2 * len(people)
    assert (fine.missing, fine.unplanned, fine.twice) == ([], [], 0)
    Notice.objects.update(sent_at=None)
    assert len(delivery_checker.check_mails(ledger).unplanned) == len(people)


@pytest.mark.django_db
def test_a_reminder_that_waited_in_vain_is_a_mail_of_its_own(
    gate: Gate, ledger: Ledger
) -> None:
    request = factories.propose(gate.agent, "pay").request
    plan.notify_people(plan.select_deciders(request, roles=[Role.SUPERVISOR]), "opened")
    Notice.objects.update(kind="half_time", digest=True, sent_at=Now())
    assert "0 of 1 arrived" in delivery_checker.check_mails(ledger).missing[0]
    subject = f"{NOTICE_TITLES['half_time']}: pay, high risk ({request.pk})"
    for person in Notice.objects.values_list("person__email", flat=True):
        ledger.add(Mail(person, subject, 0.0))
    fine = delivery_checker.check_mails(ledger)
    assert (fine.missing, fine.unplanned, fine.twice) == ([], [], 0)
