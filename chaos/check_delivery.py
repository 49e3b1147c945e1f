"""Whether each outcome reached its agent: what the log says has ended, beside what
agents' servers received and what agents did about it.

A letter that was refused, or whose worker died, waits for the published schedule, so
deliveries are not among the recoveries that are measured."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agents.choices import DeliveryStatus
from agents.models import Delivery
from agents.representation import EXECUTION_SAYS, REQUEST_SAYS
from bench.seed import slug
from journal.models import LogRecord
from reviews.choices import ExecutionStatus, RequestStatus
from reviews.models import Execution, Proposal

from .house import HOOKED
from .receivers import Arrival, Postbook, Word
from .run_result import Ran
from .trips import Trips

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
class Deliveries:
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
    letters: int = 0
    answers: Counter[str] = field(default_factory=Counter)
    stands: Counter[str] = field(default_factory=Counter)


def look(ran: Ran, book: Postbook, traces: Path) -> Deliveries:
    """Once all is quiet."""
    arrivals, said = book.arrivals(), book.acknowledgements()
    ends, found = Counter(_ends()), Deliveries()
    _arrived(found, ends, arrivals, [w for w in said if w.agent in _hooked()])
    _alike(found, arrivals)
    _acted(found, ran, ends, book.works())
    _after(found, arrivals, said, traces)
    _rows(found, arrivals)
    return found


def _hooked() -> list[str]:
    return [slug(number) for number in range(HOOKED)]


def _ends() -> Iterator[End]:
    """Every outcome of the agents that listen, by the log."""
    rows = LogRecord.objects.filter(
        agent__in=_hooked(), kind__in=[*EXECUTION_ENDS, *REQUEST_ENDS, GRANTED]
    )
    own = Execution.objects.filter(by_agent=True)
    redeeming = set(own.values_list("proposal_id", flat=True))
    for row in rows.iterator():
        if row.kind != GRANTED or row.proposal in redeeming:
            yield row.proposal, _word(row)


def _word(row: LogRecord) -> str:
    target = json.loads(bytes(row.leaf))["to"]
    if row.kind in EXECUTION_ENDS:
        return EXECUTION_SAYS[ExecutionStatus(target)]
    return REQUEST_SAYS[RequestStatus(target)]


def _arrived(
    found: Deliveries, ends: Counter[End], arrivals: list[Arrival], said: list[Word]
) -> None:
    """Each outcome has one name, under which it arrived or was acknowledged before."""
    found.ends = ends.total()
    names: dict[End, set[str]] = defaultdict(set)
    heard: list[Arrival | Word] = [a for a in arrivals if a.good and a.outcome]
    for one in [*heard, *said]:
        names[one.proposal, one.status].add(one.outcome)
    for end in ends.keys() | names.keys():
        there, wanted = len(names[end]), ends[end]
        if there < wanted:
            found.unheard.append(f"{' '.join(end)}: {there} of {wanted}")
        if there > wanted:
            found.unlike.append(f"{' '.join(end)}: {there} names of {wanted}")


def _alike(found: Deliveries, arrivals: list[Arrival]) -> None:
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


def _acted(found: Deliveries, ran: Ran, ends: Counter[End], works: list[Word]) -> None:
    """Who listens acts on every outcome, all others on what they saw themselves."""
    done = Counter((one.proposal, one.status) for one in works)
    wanted = ends + Counter(_seen(ran))
    found.acts = wanted.total()
    for end in wanted.keys() | done.keys():
        if done[end] != wanted[end]:
            said = f"{done[end]} times, for {wanted[end]} outcomes"
            found.unacted.append(f"{' '.join(end)}: {said}")


def _seen(ran: Ran) -> Iterator[End]:
    """The ends that agents without an endpoint waited for."""
    listening = Proposal.objects.filter(agent__in=_hooked())
    known = set(listening.values_list("pk", flat=True))
    for proposal, status in ran.notebook.ended.items():
        if proposal not in known:
            yield proposal, status


def _after(
    found: Deliveries, arrivals: list[Arrival], said: list[Word], traces: Path
) -> None:
    """No delivery begins once the gate has answered to the agent's word; one that was
    under way may arrive."""
    letters = dict(Delivery.objects.values_list("event", "pk"))
    tries = Trips(traces)
    at = {one.outcome: one.at for one in said if one.outcome in letters}
    found.acknowledged = len(at)
    late: dict[str, float] = {}
    arrived: Counter[str] = Counter()
    for one in arrivals:
        arrived[one.message] += 1
        known = at.get(one.message)
        if known is None or one.at <= known:
            continue
        letter, came = letters[one.message], arrived[one.message]
        if not tries.excuse(letter, known, one.at, came):
            late.setdefault(one.message, one.at - known)
    found.untimely += [f"{name}: {by:.1f} s after" for name, by in late.items()]


def _rows(found: Deliveries, arrivals: list[Arrival]) -> None:
    """No letter is left, and what the gate calls delivered was answered so."""
    well = {(one.agent, one.message) for one in arrivals if one.answer == WELL}
    rows = Delivery.objects.values_list(
        "pk", "event", "status", "endpoint__agent__slug"
    )
    for pk, event, status, agent in rows:
        found.letters += 1
        found.stands[status] += 1
        if status not in {DeliveryStatus.DELIVERED, DeliveryStatus.TAKEN}:
            found.unkept.append(f"{pk}: {status}")
        if status == DeliveryStatus.DELIVERED and (agent, event) not in well:
            found.unkept.append(f"{pk}: {status}, and {agent} never answered so")
