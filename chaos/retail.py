"""`make chaos RETAIL=1`: the retail acceptance run of tests/retail on the same cluster,
under the same faults. What must hold in the end is what must hold without them:
every answer, the store, one effect a key, and a log without gaps.

The agents and the reviewer of the retail run, made to live with a gate whose web
processes and servers die all the time: what was not answered is asked of another web
process, under the same key, until it is.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
from django.db import connections

from counterseal_client import Gate, Proposal
from hitl.environment import ROOT
from hitl.local.layout import InstallationError
from reviews.models import Alarm
from tests.guards import SHARED
from tests.retail import checks, policy, tasks
from tests.retail.books import Books
from tests.retail.report import describe_run
from tests.retail.run import Played, collect, deal, prepare_gate
from tests.retail.tasks import Call
from world import people as world_people
from world.agents import Agent, Ask
from world.people import Reviewer, Send

from .agents import Gates
from .cluster import STEP_S, Cluster, start_processes
from .generator import ATTEMPTS
from .history import History
from .nemesis import Nemesis
from .options import FAULT_KINDS, Options
from .people import DeskUser
from .run import (
    QUIET_S,
    Progress,
    inject_faults,
    prepare_database,
    wait_until_quiet,
)

WAIT_S = 15  # of one held call: whom it was asked of may be frozen
# A verdict whose answer was lost is said again, and was counted the first time.
LOST_RACE = world_people.LOST_RACE | {"decided"}


@dataclass
class Cast:
    """Everybody who asks and answers, each in a thread of their own."""

    operations: list[Call]
    agents: Sequence[Agent]
    reviewer: Reviewer
    history: History
    began: float = 0.0
    ended: float = 0.0  # when the last call was settled, once all are
    threads: list[threading.Thread] = field(default_factory=list)
    _settled: int = 0
    _since: float = 0.0

    def start(self) -> None:
        self.began = self._since = time.monotonic()
        self._start("rita", self.reviewer.work)
        self.threads = [
            self._start(agent.name, partial(self._work, agent)) for agent in self.agents
        ]

    @property
    def working(self) -> bool:
        """Not when somebody had to give up: then there is nothing to wait for."""
        alive = any(thread.is_alive() for thread in self.threads)
        return alive and not self.history.troubles

    def stuck(self) -> bool:
        """Whether for long no call was settled. Ask often."""
        settled, now = len(self.history.ended), time.monotonic()
        if settled > self._settled:
            self._settled, self._since = settled, now
        return now > self._since + QUIET_S

    def _work(self, agent: Agent) -> None:
        agent.work()
        self.ended = time.monotonic()

    def _start(self, name: str, work: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=self._do, args=(name, work), daemon=True)
        thread.start()
        return thread

    def _do(self, name: str, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            self.history.trouble(f"{name}: {type(error).__name__} {error}")


def create_cast(
    addresses: Sequence[str],
    options: Options,
    calls: list[Call],
    keys: Mapping[str, str],
    token: str,
) -> Cast:
    """Agents by their keys, and a reviewer who approves everything."""
    history, work = History(), deal(calls)
    gap = options.seconds / len(calls)
    agents = [
        Agent(
            name,
            _build_ask(Gates(addresses, history, [key]), name),
            _paced(work[name], gap),
            wait_s=WAIT_S,
        )
        for name, key in keys.items()
    ]
    desk = DeskUser("rita", token, addresses, history, threading.Event())
    reviewer = Reviewer(
        _build_send(desk), calls, lambda _: False, desk.stopping, LOST_RACE
    )
    return Cast(calls, agents, reviewer, history)


def _paced(calls: Iterable[Call], gap: float) -> Iterator[Call]:
    """Each call when its time has come: faults are to fall from the first to the last
    of them. Who is late makes haste."""
    began = time.monotonic()
    for call in calls:
        time.sleep(max(0.0, began + call.number * gap - time.monotonic()))
        yield call


def _build_ask(gates: Gates, name: str) -> Ask:
    def ask(call: Callable[[Gate], Proposal]) -> Proposal:
        answer = gates.ask_as(0, "retail", name, call)
        gates.history.answered[answer.id] = name
        if answer.final:
            gates.history.ended[answer.id] = answer.status
        return answer

    return ask


def _build_send(desk: DeskUser) -> Send:
    """Until somebody answers, and be it a refusal."""

    def send(method: str, path: str, **body: Any) -> httpx2.Response:
        while True:
            try:
                return desk.api(method, path, **body)
            except httpx2.HTTPStatusError as error:
                if error.response.status_code < 500:
                    return error.response
            except httpx2.HTTPError:
                pass
            desk.history.count("people asked again")

    return send


LOGS = ROOT / "var" / "chaos" / "retail-logs"
# A store that is asked under the same key may be asked often: with the usual five tries
# a run of faults would leave a person's question where the tasks know an answer.
RETRY = {"attempts": ATTEMPTS, "base_seconds": 1, "most_seconds": 4}
LONGEST = 3  # times as long as calls come, faults fall
# What only faults bring into the log: a verdict whose answer was lost is said again,
# and that it counts once is a record of its own; and so is what a worker that was given
# up says when it wakes, and the alarm where that may be a second effect.
BESIDES = frozenset(
    {"decision.refused", "execution.reported_late", "alarm.raised", "alarm.repeated"}
)


def run_test(cluster: Cluster, options: Options) -> int:
    """0 when everything held. Leaves what the processes said when something did not.

    *Raises* InstallationError.
    """
    live, data = Progress(), SHARED / tasks.DATA
    if not data.exists():
        raise InstallationError(f"the tasks are not there: {data}")
    live.say(f"retail: {options.requests} tasks, seed {options.seed}")
    cast, nemesis, left = _play(cluster, options, live, data)
    live.say("checking")
    books = Books(_name_file(cluster), {})
    played = collect(cast.agents, [], cast.ended - cast.began)
    wrong = [*cast.history.troubles]
    if left:
        wrong.append(f"not calm: {left}")
    if missing := nemesis.missing:
        wrong.append(f"never struck: {', '.join(missing)}")
    wrong += _check(cast.operations, played, books, data)
    for line in wrong:
        live.say(f"BROKEN {line}")
    if not wrong:
        struck = _describe_faults(nemesis)
        line = describe_run("under faults", cast.operations, played, books, struck)
        live.say(f"retail, {line}; {options.command}")
    cluster.keep_logs(LOGS, broken=bool(wrong))
    return 1 if wrong else 0


def _name_file(cluster: Cluster) -> Path:
    """The store's books."""
    return cluster.here.state / "store.sqlite"


def _play(
    cluster: Cluster, options: Options, live: Progress, data: Path
) -> tuple[Cast, Nemesis, dict[str, int]]:
    """Everybody works until every call is settled, and faults fall all the while. Call
    it from the main thread. Returns what was still to come, too."""
    calls = tasks.calls(data, options.requests)
    calls += tasks.beside(data, calls)
    prepare_database(live)
    keys, token = prepare_gate(policy.document(data, cluster.provider, retry=RETRY))
    connections.close_all()
    live.say("starting processes")
    at = f"{cluster.outside}:{cluster.provider_port}"
    store = ["tests.retail.service", at, str(_name_file(cluster)), str(data)]
    start_processes(cluster, store)
    cast = create_cast(cluster.addresses, options, calls, keys, token)
    nemesis = Nemesis(cluster, options)
    live.begin(cast, nemesis)
    cast.start()
    over = cast.began + LONGEST * options.seconds

    def going() -> bool:
        """Until all is settled and no kind is missing; on a slow machine the rest is
        settled in peace."""
        if cast.history.troubles or time.monotonic() > over:
            return False
        return cast.working or bool(nemesis.missing)

    inject_faults(cluster, nemesis, live, going)
    while cast.working and not cast.stuck():  # as long as something moves
        cluster.restart_dead()
        live.show()
        time.sleep(STEP_S)
    left = wait_until_quiet(cluster, nemesis, live, lambda: cast.working)
    cast.reviewer.stopping.set()
    cluster.rest()
    return cast, nemesis, left


def _check(
    calls: list[Call], played: Played, books: Books, data: Path
) -> Iterator[str]:
    """What does not hold of all that is looked at after a run without faults."""
    expected = tasks.world(data)
    done = tasks.run_directly(expected, calls, lambda _: False)
    looked_at: dict[str, Callable[[], None]] = {
        "answers": partial(checks.check_answers, calls, done, played),
        "store": partial(checks.check_store, expected, books),
        "effects": partial(checks.check_effects, done, books),
        "log": partial(checks.check_log, played, BESIDES),
        "alarms": checks.check_alarms,
    }
    for name, check in looked_at.items():
        try:
            check()
        except AssertionError as error:
            yield f"{name}: {error}"


def _describe_faults(nemesis: Nemesis) -> str:
    kinds = Counter(fault.kind for fault in nemesis.faults)
    by_kind = ", ".join(
        f"{kinds[kind]} x {kind}" for kind in FAULT_KINDS if kinds[kind]
    )
    alarms = f"{Alarm.objects.count()} alarms of late successes"
    return f"{sum(kinds.values())} faults ({by_kind}), {alarms}"
