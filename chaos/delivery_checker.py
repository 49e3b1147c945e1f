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
from dataclasses import dataclass, field
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


@dataclass
class DeliveryFindings:
    """Sentences about what is wrong, each with the number it was looked for in."""

    unheard: list[str] = field(default_factory=list)
    unsigned: list[str] = field(default_factory=list)
    unlike: list[str] = field(default_factory=list)  # two bodies, or two names
    untimely: list[str] = field(default_factory=list)  # begun after the agent's word
    unacted: list[str] = field(default_factory=list)  # never, or twice
    unkept: list[str] = field(default_factory=list)  # by the gate's own rows
    ends: int = 0
    arrivals: int = 0
    names: int = 0
    acknowledged: int = 0
    acts: int = 0
    webhooks: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    stands: Counter[str] = field(default_factory=Counter)


def check_deliveries(
    result: RunResult, ledger: Ledger, traces: Path
) -> DeliveryFindings:
    """Check the webhooks of a quiet run."""
    arrivals, said = ledger.load(Arrival), ledger.load(Acknowledgement)
    ends, found = Counter(_ends()), DeliveryFindings()
    _arrived(found, ends, arrivals, [word for word in said if word.agent in HOOKED])
    _alike(found, arrivals)
    _acted(found, result, ends, ledger.load(Act))
    _after(found, arrivals, said, traces)
    _rows(found, arrivals)
    return found


def _ends() -> Iterator[End]:
    """Every outcome of the agents that listen, by the log."""
    rows = LogRecord.objects.filter(
        agent__in=HOOKED, kind__in=[*EXECUTION_ENDS, *REQUEST_ENDS, GRANTED]
    )
    own = Execution.objects.filter(by_agent=True)
    redeeming = set(own.values_list("proposal_id", flat=True))
    for row in rows.iterator():
        if row.kind != GRANTED or row.proposal in redeeming:
            yield row.proposal, _word(row)


def _word(row: LogRecord) -> str:
    target = json.loads(bytes(row.leaf))["to"]
    if row.kind in EXECUTION_ENDS:
        return EXECUTION_SPECS[target].api_word
    return REQUEST_SPECS[target].api_word


def _arrived(
    found: DeliveryFindings,
    ends: Counter[End],
    arrivals: list[Arrival],
    said: list[Acknowledgement],
) -> None:
    """Each outcome has one name, under which it arrived or was acknowledged before."""
    found.ends = ends.total()
    names: dict[End, set[str]] = defaultdict(set)
    heard: list[Arrival | Act] = [a for a in arrivals if a.good and a.outcome]
    for one in [*heard, *said]:
        names[one.proposal, one.status].add(one.outcome)
    for end in ends.keys() | names.keys():
        there, wanted = len(names[end]), ends[end]
        if there < wanted:
            found.unheard.append(f"{' '.join(end)}: {there} of {wanted}")
        if there > wanted:
            found.unlike.append(f"{' '.join(end)}: {there} names of {wanted}")


def _alike(found: DeliveryFindings, arrivals: list[Arrival]) -> None:
    bodies: dict[str, set[str]] = defaultdict(set)
    for one in arrivals:
        found.arrivals += 1
        found.answers[one.answer or "nothing"] += 1
        bodies[one.message].add(one.body)
        if not one.good:
            found.unsigned.append(f"{one.agent}: {one.message}")
        if one.outcome and one.outcome != one.message:
            found.unlike.append(f"{one.message}: {one.outcome} in the body")
    found.names = len(bodies)
    for message, several in bodies.items():
        if len(several) > 1:
            found.unlike.append(f"{message}: {len(several)} bodies")


def _acted(
    found: DeliveryFindings,
    result: RunResult,
    ends: Counter[End],
    works: list[Act],
) -> None:
    """Agents with an endpoint act on every outcome, others on what they saw."""
    done = Counter((one.proposal, one.status) for one in works)
    wanted = ends + Counter(_seen(result))
    found.acts = wanted.total()
    for end in wanted.keys() | done.keys():
        if done[end] != wanted[end]:
            said = f"{done[end]} times, for {wanted[end]} outcomes"
            found.unacted.append(f"{' '.join(end)}: {said}")


def _seen(result: RunResult) -> Iterator[End]:
    """The ends that agents without an endpoint waited for."""
    listening = Proposal.objects.filter(agent__in=HOOKED)
    known = set(listening.values_list("pk", flat=True))
    for proposal, status in result.history.ended.items():
        if proposal not in known:
            yield proposal, status


def _after(
    found: DeliveryFindings,
    arrivals: list[Arrival],
    said: list[Acknowledgement],
    traces: Path,
) -> None:
    """No delivery begins once the gate has answered to the agent's word; one that was
    under way may arrive."""
    webhooks = dict(Delivery.objects.values_list("event", "pk"))
    tries = DeliveryAttempts(traces)
    at = {one.outcome: one.at for one in said if one.outcome in webhooks}
    found.acknowledged = len(at)
    late: dict[str, float] = {}
    arrived: Counter[str] = Counter()
    for one in arrivals:
        arrived[one.message] += 1
        known = at.get(one.message)
        if known is None or one.at <= known:
            continue
        webhook, came = webhooks[one.message], arrived[one.message]
        if not tries.excuse(webhook, known, one.at, came):
            late.setdefault(one.message, one.at - known)
    found.untimely += [f"{name}: {by:.1f} s after" for name, by in late.items()]


def _rows(found: DeliveryFindings, arrivals: list[Arrival]) -> None:
    """No webhook is left, and what the gate calls delivered was answered so."""
    well = {(one.agent, one.message) for one in arrivals if one.answer == WELL}
    rows = Delivery.objects.values_list(
        "pk", "event", "status", "endpoint__agent__slug"
    )
    for pk, event, status, agent in rows:
        found.webhooks += 1
        found.stands[status] += 1
        if status not in {DeliveryStatus.DELIVERED, DeliveryStatus.TAKEN}:
            found.unkept.append(f"{pk}: {status}")
        if status == DeliveryStatus.DELIVERED and (agent, event) not in well:
            found.unkept.append(f"{pk}: {status}, and {agent} never answered so")


Key = tuple[str, str, str]  # to whom, of what kind, about what
GATHERED = "gathered"  # many in one mail, about nothing alone
MANY = re.compile(r"\d+ (notifications?|requests? needs? your decision)")


@dataclass
class MailFindings:
    """Sentences about what is wrong, and numbers about the rest."""

    missing: list[str] = field(default_factory=list)
    unplanned: list[str] = field(default_factory=list)
    promises: int = 0  # kept, by the outbox
    planned: int = 0  # by them, one a person
    sent: int = 0
    let_go: int = 0
    later: int = 0  # one has had enough of them for an hour
    arrived: int = 0
    twice: int = 0


def check_mails(ledger: Ledger) -> MailFindings:
    """Check the mails of a quiet run."""
    found, arrived = MailFindings(), Counter(_keys(ledger, kinds=_kinds()))
    found.arrived = arrived.total()
    rows = Notice.objects.select_related("person", "request", "execution", "alarm")
    notices = list(rows.filter(channel="email"))
    _promises(found, notices)
    sent: Counter[Key] = Counter()
    for notice in notices:
        sent[_key(notice)] += _went(found, notice) and not notice.digest
    sent.update(_gathered(notices))
    for key in sent.keys() | arrived.keys():
        _compare(found, key, sent, arrived)
    return found


def _gathered(notices: list[Notice]) -> Counter[Key]:
    """Mails that gather the messages sent to one person in one moment."""
    together: dict[tuple[str, datetime], list[Notice]] = defaultdict(list)
    for one in notices:
        if one.digest and one.sent_at is not None:
            together[_address(one), one.sent_at].append(one)
    return Counter(map(_key_of_mail, together.values()))


def _key_of_mail(together: list[Notice]) -> Key:
    """To whom and about what one mail with these notices is. One that waited for others
    in vain is sent like any other."""
    newest = max(together, key=lambda one: one.pk)
    subjects = {_key(one)[2] for one in together}
    if len(subjects) == 1 and newest.kind in GATHERED_KINDS:
        return _key(newest)
    return _address(newest), GATHERED, ""


def _kinds() -> list[tuple[str, str]]:
    """What the subject of each kind of mail begins with, the longest first."""
    words = ((what, kind) for kind, what in NOTICE_TITLES.items())
    return sorted(words, key=lambda one: -len(one[0]))


def _keys(ledger: Ledger, *, kinds: list[tuple[str, str]]) -> list[Key]:
    return [_read(one.recipient, one.subject, kinds) for one in ledger.load(Mail)]


def _read(recipient: str, subject: str, kinds: list[tuple[str, str]]) -> Key:
    if MANY.fullmatch(subject):
        return recipient, GATHERED, ""
    kind = next((kind for what, kind in kinds if subject.startswith(what)), "")
    about = subject.rpartition("(")[2].removesuffix(")")
    return recipient, kind, about


def _key(notice: Notice) -> Key:
    about = notice.request_id or notice.execution_id or notice.alarm_id or ""
    return _address(notice), notice.kind, str(about)


def _address(notice: Notice) -> str:
    assert notice.person is not None  # mail goes to people only
    return notice.person.email


def _promises(found: MailFindings, notices: list[Notice]) -> None:
    """Each outbox message that is done has planned at least one mail."""
    about = {(notice.kind, _key(notice)[2]) for notice in notices}
    closed = Alarm.objects.filter(status=AlarmStatus.CLOSED)
    over = {str(pk) for pk in closed.values_list("pk", flat=True)}
    executions = dict(Execution.objects.values_list("proposal_id", "pk"))
    kept = OutboxMessage.objects.filter(topic__in=EVENTS, done_at__isnull=False)
    for topic, subject in kept.values_list("topic", "subject"):
        found.promises += 1
        told = EVENTS[topic].kind, executions.get(subject, subject)
        if subject not in over and told not in about:
            found.missing.append(f"{topic} {subject}: nobody was written to")


def _went(found: MailFindings, notice: Notice) -> bool:
    """Whether it was sent; the clock may forbid it, or nothing is left to say."""
    found.planned += 1
    found.sent += notice.sent_at is not None
    found.let_go += bool(notice.let_go)
    if notice.sent_at is None and not notice.let_go:
        if notice.due_at > clock.now():
            found.later += 1
        else:
            found.missing.append(f"{notice.kind} of {_key(notice)[2]}: never sent")
    return notice.sent_at is not None


def _compare(
    found: MailFindings, key: Key, sent: Counter[Key], arrived: Counter[Key]
) -> None:
    if key not in sent:
        found.unplanned.append(" ".join(key))
    if arrived[key] < sent[key]:
        said = f"{arrived[key]} of {sent[key]} arrived"
        found.missing.append(f"{' '.join(key)}: {said}")
    found.twice += max(arrived[key] - max(sent[key], 1), 0)


@dataclass
class PostFindings:
    """The findings about webhooks and mails of a quiet run."""

    webhooks: DeliveryFindings = field(default_factory=DeliveryFindings)
    mails: MailFindings = field(default_factory=MailFindings)

    @property
    def violations(self) -> dict[str, list[str]]:
        """Everything that must be empty, by its name."""
        webhooks, mails = self.webhooks, self.mails
        return {
            "outcomes that an agent did not hear of": webhooks.unheard,
            "webhooks with a bad signature": webhooks.unsigned,
            "names and bodies that changed": webhooks.unlike,
            "webhooks after the agent's word": webhooks.untimely,
            "outcomes not acted on once": webhooks.unacted,
            "webhooks not kept": webhooks.unkept,
            "mails missing": mails.missing,
            "mails that nobody planned": mails.unplanned,
        }

    @property
    def claims(self) -> Iterator[tuple[str, int, int]]:
        """What must hold, on how many trials, and how often it did not."""
        of, mails = self.webhooks, self.mails
        unheard, unacted = len(of.unheard), len(of.unacted)
        yield (
            "outcomes that an agent with an endpoint did not hear of",
            of.ends,
            unheard,
        )
        yield "outcomes not acted on exactly once", of.acts, unacted
        yield "webhooks with a bad signature", of.arrivals, len(of.unsigned)
        yield (
            "webhooks with two bodies, outcomes with two names",
            of.names,
            len(of.unlike),
        )
        begun = "webhooks begun after the agent's word was answered"
        yield begun, of.acknowledged, len(of.untimely)
        yield "webhooks left over, or delivered to nobody", of.webhooks, len(of.unkept)
        wrong = len(mails.missing) + len(mails.unplanned)
        yield (
            "mails promised that did not arrive, or not promised",
            mails.planned,
            wrong,
        )

    @property
    def numbers(self) -> dict[str, dict[str, int]]:
        """How webhooks were answered and where they stand, and of mails how many."""
        of = self.mails
        counted = {
            "arrived": of.arrived,
            "came twice": of.twice,
            "let go, nothing left to say": of.let_go,
            "later, an hour's share is used up": of.later,
        }
        return {
            "webhooks answered": dict(self.webhooks.answers.most_common()),
            "webhooks": dict(self.webhooks.stands.most_common()),
            "mails": counted,
        }


def check_post(result: RunResult, ledger: Ledger, traces: Path) -> PostFindings:
    """Check webhooks and mails of a quiet run."""
    return PostFindings(check_deliveries(result, ledger, traces), check_mails(ledger))
