"""T28: from the deactivation of a person, or the revocation of a key, to the last thing
that it still opens, on every web process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx2
import pytest
import redis
from django.conf import settings
from django.test import Client

from agents import keys, proposals
from agents.models import AgentKey
from hitl.live.event_stream import ACCESS_CHANGED
from hitl.live.shared_counts import PREFIX
from policies.choices import Role
from policies.models import Person
from reviews.administration import accounts
from reviews.people import tokens
from tests import factories
from tests.conftest import Gate
from tests.security.world import BACKEND
from tests.stack import PATIENCE_S, Stack, wait_until

pytestmark = [
    pytest.mark.servers,
    pytest.mark.proof,
    pytest.mark.django_db(transaction=True),
]

WAIT_S = 60  # of a call: it must not end because its time is over
REQUESTS = "/api/v1/requests"


@pytest.fixture
def webs(live: Stack) -> Iterator[list[str]]:
    """The addresses of two web processes of one installation. Who deactivates a
    hundred people asks more often with dead tokens than an address may."""
    both = [Stack(live.state, {"FAILURES_PER_MINUTE": "100000"}) for _ in range(2)]
    for one in both:
        one.start_web()
    yield [one.base_url for one in both]
    for one in both:
        one.kill_web()


@pytest.fixture
def hands() -> Iterator[ThreadPoolExecutor]:
    """What waits for an answer while the test goes on."""
    with ThreadPoolExecutor(8) as pool:
        yield pool


def test_a_deactivated_person_is_out_everywhere(
    gate: Gate,
    webs: list[str],
    hands: ThreadPoolExecutor,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    n = proof_n(small=3, full=100)
    trials = [_deactivate_one(gate, webs, hands, at) for at in range(n)]
    worst = [max(seconds) for seconds in zip(*trials, strict=True)]
    record_proof(
        "T28",
        f"{n} people deactivated, each with a page, a stream and a token on 2 web "
        f"processes: all refused after at most {max(worst):.2f} s (pages "
        f"{worst[0]:.2f} s, tokens {worst[1]:.2f} s, streams {worst[2]:.2f} s)",
    )


def _deactivate_one(
    gate: Gate, webs: list[str], hands: ThreadPoolExecutor, number: int
) -> tuple[float, float, float]:
    """Seconds until the last page, token and stream was refused or ended."""
    person = factories.admitted(f"leaver-{number}", Role.REVIEWER)
    cookies = _sign_in(person)
    token = tokens.create_token(person=person, name="own", days=1)
    bearer = {"Authorization": f"Bearer {token}"}
    pages = [partial(_get, f"{web}/queue/", cookies=cookies) for web in webs]
    calls = [partial(_get, f"{web}{REQUESTS}", headers=bearer) for web in webs]
    assert [call() for call in [*pages, *calls]] == [200] * 4
    ends = _open_streams(webs, cookies, hands)
    began = time.monotonic()
    accounts.deactivate_account(person=person, by=gate.adam)
    paged = _wait_for(pages, 302) - began
    called = _wait_for(calls, 401) - began
    heard = [end.result(PATIENCE_S) for end in ends]
    assert {last for _, last in heard} == set(ACCESS_CHANGED.decode().splitlines()[:1])
    return paged, called, max(at for at, _ in heard) - began


def test_a_revoked_key_opens_nothing(
    gate: Gate,
    webs: list[str],
    hands: ThreadPoolExecutor,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    n = proof_n(small=3, full=100)
    trials = [_revoke_one(gate, webs, hands, at) for at in range(n)]
    worst = [max(seconds) for seconds in zip(*trials, strict=True)]
    record_proof(
        "T28",
        f"{n} keys revoked, each with a waiting call on each of 2 web processes: all "
        f"refused after at most {max(worst):.2f} s (calls {worst[0]:.2f} s, waiting "
        f"calls {worst[1]:.2f} s)",
    )


def _revoke_one(
    gate: Gate, webs: list[str], hands: ThreadPoolExecutor, number: int
) -> tuple[float, float]:
    """Seconds until the last call and the last waiting call was refused."""
    agent = factories.agent(gate.owen, f"leaky-{number}")
    kept, leaked = (keys.issue_key(agent=agent, by=gate.owen) for _ in range(2))
    proposal = factories.propose(agent)
    path = f"/api/v1/proposals/{proposal.pk}"
    calls = [partial(_get, f"{web}{path}", headers=_bearer(leaked)) for web in webs]
    assert [call() for call in calls] == [200, 200]
    waits = [hands.submit(_wait_out, f"{web}{path}", leaked) for web in webs]
    wait_until(lambda: _count_waits(agent.slug) == len(webs), PATIENCE_S)
    other = hands.submit(_wait_out, f"{webs[0]}{path}", kept)
    wait_until(lambda: _count_waits(agent.slug) == len(webs) + 1, PATIENCE_S)
    began = time.monotonic()
    row = AgentKey.objects.get(prefix=leaked.split("_")[1])
    keys.revoke_key(key=row, by=gate.owen)
    called = _wait_for(calls, 401) - began
    ended = [wait.result(PATIENCE_S) for wait in waits]
    assert [answer.status_code for _, answer in ended] == [401, 401]
    assert not other.done(), "a wait with another key goes on"
    proposals.withdraw_proposal(agent=agent, proposal_id=proposal.pk)
    assert other.result(PATIENCE_S)[1].json()["status"] == "withdrawn"
    return called, max(at for at, _ in ended) - began


def _get(url: str, **sent: Any) -> int:
    return httpx2.get(url, trust_env=False, timeout=PATIENCE_S, **sent).status_code


def _wait_for(calls: Sequence[Callable[[], int]], status: int) -> float:
    """When the last of the calls had this status, without a pause between tries."""
    end = time.monotonic() + PATIENCE_S
    for call in calls:
        while call() != status:
            assert time.monotonic() < end, f"still not {status}"
    return time.monotonic()


def _wait_out(url: str, key: str) -> tuple[float, httpx2.Response]:
    """Call and wait; when the call ended, and how."""
    answer = httpx2.get(
        url,
        params={"wait": str(WAIT_S)},
        headers=_bearer(key),
        trust_env=False,
        timeout=WAIT_S + PATIENCE_S,
    )
    return time.monotonic(), answer


def _count_waits(agent: str) -> int:
    """The calls of this agent that wait, over all web processes."""
    with redis.Redis.from_url(settings.COUNTERSEAL.redis_url) as broker:
        return int(broker.zcard(f"{PREFIX}waits:agent:{agent}"))


def _bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def _sign_in(person: Person) -> dict[str, str]:
    client = Client()
    client.force_login(person, BACKEND)
    return {name: morsel.value for name, morsel in client.cookies.items()}


def _open_streams(
    webs: list[str], cookies: dict[str, str], hands: ThreadPoolExecutor
) -> list[Future[tuple[float, str]]]:
    """A stream of this person from each web process, which told its first event. Each
    result is when the stream ended, and the kind of its last event."""
    opened = [threading.Event() for _ in webs]
    ends = [
        hands.submit(_follow, f"{web}/events/", cookies, event)
        for web, event in zip(webs, opened, strict=True)
    ]
    assert all(event.wait(PATIENCE_S) for event in opened)
    return ends


def _follow(
    url: str, cookies: dict[str, str], opened: threading.Event
) -> tuple[float, str]:
    last = ""
    with (
        httpx2.Client(cookies=cookies, trust_env=False, timeout=PATIENCE_S) as client,
        client.stream("GET", url) as response,
    ):
        for line in response.iter_lines():
            opened.set()
            last = line if line.startswith("event: ") else last
    return time.monotonic(), last
