"""Whether each outcome reached its agent, and each promised mail its mail server.

Outcomes by the log are compared with what agents' servers received and what agents did
about it. A delivery that was refused, or whose worker died, waits for the published
schedule, so deliveries are not among the recoveries that are measured.

The outbox promises a mail at least once, for a worker may die between the server's 250
and its own note of it: mails that came twice are counted, not forbidden.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from agents.choices import DeliveryStatus
from agents.models import Delivery
from journal import clock
from journal.models import LogRecord, OutboxMessage
from notifications.events import EVENTS, NOTICE_TITLES
from notifications.send_times import GATHERED_KINDS
from reviews.choices import EXECUTION_SPECS, REQUEST_SPECS, AlarmStatus
from reviews.models import Alarm, Execution, Notice, Proposal
from world.database import Ledger
from world.receivers import Acknowledgement, Act, Arrival, Mail

from .claims import Claim, Findings
from .generator import HOOKED
from .history import DeliveryAttempts, RunResult

EXECUTION_ENDS = (
    "execution.succeeded",
    "execution.failed",
    "execution.unknown",
    "execution.refused",
    "execution.settled",
)
REQUEST_ENDS = (
    "request.rejected",
    "request.expired",
    "request.withdrawn",
    "request.superseded",
)
GRANTED = "request.authorized"  # to act upon where the agent performs it itself
WELL = "200"
End = tuple[str, str]  # a proposal, and the word for what became of it


class DeliveryFindings(Findings):
    """The webhooks of a quiet run, what agents did about them, and how they stand."""

    def __init__(self) -> None:
        self.unheard = Claim("outcomes that an agent with an endpoint did not hear of")
        self.unacted = Claim("outcomes not acted on exactly once")
        self.unsigned = Claim("webhooks with a bad signature")
        self.unlike = Claim("webhooks with two bodies, outcomes with two names")
        self.untimely = Claim("webhooks begun after the agent's word was answered")
        self.unkept = Claim("webhooks left over, or delivered to nobody")
        self.answers: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()

    def check_heard(
        self,
        ends: Counter[End],
        arrivals: list[Arrival],
        words: list[Acknowledgement],
    ) -> None:
        """Each outcome has one name, under which it arrived or was acknowledged
        before."""
        self.unheard.n = ends.total()
        names: dict[End, set[str]] = defaultdict(set)
        rows: list[Arrival | Acknowledgement] = [*words]
        rows += [row for row in arrivals if row.good and row.outcome]
        for row in rows:
            names[row.proposal, row.status].add(row.outcome)
        for end in ends.keys() | names.keys():
            count, wanted = len(names[end]), ends[end]
            if count < wanted:
                self.unheard.fail(f"{' '.join(end)}: {count} of {wanted}")
            if count > wanted:
                self.unlike.fail(f"{' '.join(end)}: {count} names of {wanted}")

    def check_alike(self, arrivals: list[Arrival]) -> None:
        bodies: dict[str, set[str]] = defaultdict(set)
        for row in arrivals:
            self.unsigned.n += 1
            self.answers[row.answer or "nothing"] += 1
            bodies[row.message].add(row.body)
            if not row.good:
                self.unsigned.fail(f"{row.agent}: {row.message}")
            if row.outcome and row.outcome != row.message:
                self.unlike.fail(f"{row.message}: {row.outcome} in the body")
        self.unlike.n = len(bodies)
        for message, several in bodies.items():
            if len(several) > 1:
                self.unlike.fail(f"{message}: {len(several)} bodies")

    def check_acts(
        self, result: RunResult, ends: Counter[End], acts: list[Act]
    ) -> None:
        """Agents with an endpoint act on every outcome, others on those that they
        waited for."""
        listening = Proposal.objects.filter(agent__in=HOOKED)
        known = set(listening.values_list("pk", flat=True))
        waited = (end for end in result.history.ended.items() if end[0] not in known)
        done = Counter((act.proposal, act.status) for act in acts)
        wanted = ends + Counter(waited)
        self.unacted.n = wanted.total()
        for end in wanted.keys() | done.keys():
            if done[end] != wanted[end]:
                times = f"{done[end]} times, for {wanted[end]} outcomes"
                self.unacted.fail(f"{' '.join(end)}: {times}")

    def check_timely(
        self, arrivals: list[Arrival], words: list[Acknowledgement], traces: Path
    ) -> None:
        """No delivery begins once the gate has answered to the agent's word; one that
        was under way may arrive."""
        webhooks = dict(Delivery.objects.values_list("event", "pk"))
        attempts = DeliveryAttempts(traces)
        answered = {w.outcome: w.at for w in words if w.outcome in webhooks}
        self.untimely.n = len(answered)
        late: dict[str, float] = {}
        arrived: Counter[str] = Counter()
        for row in arrivals:
            arrived[row.message] += 1
            known = answered.get(row.message)
            if known is None or row.at <= known:
                continue
            webhook, count = webhooks[row.message], arrived[row.message]
            if not attempts.excuse(webhook, known, row.at, count):
                late.setdefault(row.message, row.at - known)
        for message, seconds in late.items():
            self.untimely.fail(f"{message}: {seconds:.1f} s after")

    def check_rows(self, arrivals: list[Arrival]) -> None:
        """No webhook is left, and what the gate calls delivered was answered so."""
        well = {(row.agent, row.message) for row in arrivals if row.answer == WELL}
        rows = Delivery.objects.values_list(
            "pk", "event", "status", "endpoint__agent__slug"
        )
        for pk, event, status, agent in rows:
            self.unkept.n += 1
            self.statuses[status] += 1
            if status not in {DeliveryStatus.DELIVERED, DeliveryStatus.TAKEN}:
                self.unkept.fail(f"{pk}: {status}")
            if status == DeliveryStatus.DELIVERED and (agent, event) not in well:
                self.unkept.fail(f"{pk}: {status}, and {agent} never answered so")


def check_deliveries(
    result: RunResult, ledger: Ledger, traces: Path
) -> DeliveryFindings:
    """Check the webhooks of a quiet run."""
    arrivals, words = ledger.load(Arrival), ledger.load(Acknowledgement)
    ends, findings = Counter(_list_ends()), DeliveryFindings()
    findings.check_heard(ends, arrivals, [w for w in words if w.agent in HOOKED])
    findings.check_alike(arrivals)
    findings.check_acts(result, ends, ledger.load(Act))
    findings.check_timely(arrivals, words, traces)
    findings.check_rows(arrivals)
    return findings


def _list_ends() -> Iterator[End]:
    """Every outcome of the agents that listen, by the log."""
    rows = LogRecord.objects.filter(
        agent__in=HOOKED, kind__in=[*EXECUTION_ENDS, *REQUEST_ENDS, GRANTED]
    )
    own = Execution.objects.filter(by_agent=True)
    redeeming = set(own.values_list("proposal_id", flat=True))
    for row in rows.iterator():
        if row.kind != GRANTED or row.proposal in redeeming:
            specs = EXECUTION_SPECS if row.kind in EXECUTION_ENDS else REQUEST_SPECS
            yield row.proposal, specs[json.loads(bytes(row.leaf))["to"]].api_word


Key = tuple[str, str, str]  # to whom, of what kind, about what
GATHERED = "gathered"  # many in one mail, about nothing alone
MANY = re.compile(r"\d+ (notifications?|requests? needs? your decision)")


class MailFindings(Findings):
    """The mails of a quiet run, and how many there were of each sort."""

    def __init__(self) -> None:
        self.wrong = Claim("mails promised that did not arrive, or not promised")
        self.missing: list[str] = []
        self.unplanned: list[str] = []
        self.sent = 0
        self.let_go = 0
        self.later = 0  # one has had enough of them for an hour
        self.arrived = 0
        self.twice = 0

    def check_promises(self, notices: list[Notice]) -> None:
        """Each outbox message that is done has planned at least one mail."""
        about = {(notice.kind, _find_subject(notice)) for notice in notices}
        closed = Alarm.objects.filter(status=AlarmStatus.CLOSED)
        over = {str(pk) for pk in closed.values_list("pk", flat=True)}
        executions = dict(Execution.objects.values_list("proposal_id", "pk"))
        done = OutboxMessage.objects.filter(topic__in=EVENTS, done_at__isnull=False)
        for topic, subject in done.values_list("topic", "subject"):
            mail = EVENTS[topic].kind, executions.get(subject, subject)
            if subject not in over and mail not in about:
                self.missing.append(f"{topic} {subject}: nobody was written to")

    def count_notice(self, notice: Notice) -> None:
        """Whether it was sent; the clock may forbid it, or nothing is left to say."""
        self.wrong.n += 1
        self.sent += notice.sent_at is not None
        self.let_go += bool(notice.let_go)
        if notice.sent_at is None and not notice.let_go:
            if notice.due_at > clock.now():
                self.later += 1
            else:
                subject = _find_subject(notice)
                self.missing.append(f"{notice.kind} of {subject}: never sent")

    def compare(self, sent: Counter[Key], arrived: Counter[Key]) -> None:
        self.arrived = arrived.total()
        for key in sent.keys() | arrived.keys():
            if key not in sent:
                self.unplanned.append(" ".join(key))
            if arrived[key] < sent[key]:
                count = f"{arrived[key]} of {sent[key]} arrived"
                self.missing.append(f"{' '.join(key)}: {count}")
            self.twice += max(arrived[key] - max(sent[key], 1), 0)


def check_mails(ledger: Ledger) -> MailFindings:
    """Check the mails of a quiet run."""
    findings = MailFindings()
    rows = Notice.objects.select_related("person", "request", "execution", "alarm")
    notices = list(rows.filter(channel="email"))
    findings.check_promises(notices)
    sent: Counter[Key] = Counter()
    for notice in notices:
        findings.count_notice(notice)
        sent[_build_key(notice)] += notice.sent_at is not None and not notice.digest
    sent.update(_list_gathered(notices))
    # What the subject of each kind of mail begins with, the longest first.
    titles = sorted(NOTICE_TITLES.items(), key=lambda item: -len(item[1]))
    arrived = Counter(_read_mail(mail, titles) for mail in ledger.load(Mail))
    findings.compare(sent, arrived)
    findings.wrong.failures = findings.missing + findings.unplanned
    return findings


def _list_gathered(notices: list[Notice]) -> Iterator[Key]:
    """Mails that gather the messages sent to one person in one moment."""
    together: dict[tuple[str, datetime], list[Notice]] = defaultdict(list)
    for notice in notices:
        if notice.digest and notice.sent_at is not None:
            together[_find_address(notice), notice.sent_at].append(notice)
    return map(_build_mail_key, together.values())


def _build_mail_key(together: list[Notice]) -> Key:
    """To whom and about what one mail with these notices is. One that waited for others
    in vain is sent like any other."""
    newest = max(together, key=lambda notice: notice.pk)
    subjects = {_find_subject(notice) for notice in together}
    if len(subjects) == 1 and newest.kind in GATHERED_KINDS:
        return _build_key(newest)
    return _find_address(newest), GATHERED, ""


def _read_mail(mail: Mail, titles: list[tuple[str, str]]) -> Key:
    if MANY.fullmatch(mail.subject):
        return mail.recipient, GATHERED, ""
    kinds = (kind for kind, title in titles if mail.subject.startswith(title))
    about = mail.subject.rpartition("(")[2].removesuffix(")")
    return mail.recipient, next(kinds, ""), about


def _build_key(notice: Notice) -> Key:
    return _find_address(notice), notice.kind, _find_subject(notice)


def _find_subject(notice: Notice) -> str:
    return str(notice.request_id or notice.execution_id or notice.alarm_id or "")


def _find_address(notice: Notice) -> str:
    assert notice.person is not None  # mail goes to people only
    return notice.person.email


def count_post(
    webhooks: DeliveryFindings, mails: MailFindings
) -> dict[str, dict[str, int]]:
    """How webhooks were answered and where they stand, and of mails how many."""
    return {
        "webhooks answered": dict(webhooks.answers.most_common()),
        "webhooks": dict(webhooks.statuses.most_common()),
        "mails": {
            "arrived": mails.arrived,
            "came twice": mails.twice,
            "let go, nothing left to say": mails.let_go,
            "later, an hour's share is used up": mails.later,
        },
    }
