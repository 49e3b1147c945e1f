"""A canary answers as a request does, at every address that takes the id of one."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from datetime import timedelta
from itertools import product
from typing import Any, NamedTuple

import pytest
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from assurance import clones, library
from desk.components import in_flight
from journal import clock
from policies.models import Person
from reviews import deadlines
from reviews.choices import Scope
from reviews.models import ApprovalRequest, Notice, Revision
from reviews.stops import stops
from tests import worlds
from tests.assurance.planting import approve_source, plant_clone
from tests.conftest import Gate
from tests.factories import propose
from tests.hitl.tasks.draining import drain
from tests.security.world import cookies_of

pytestmark = pytest.mark.django_db

REQUEST = re.compile(r"requests/<(?:str:)?(pk|request_id)>")
ELSEWHERE = {
    "n": 1,
    "number": 1,
    "decision": 1,
    "flag": "obvious",
    "sha256": "sha256:0",
}
# What differs between any two requests: times, ids, digests, tokens and counts.
VOLATILE = re.compile(r"[A-Za-z0-9_:.-]*[0-9][A-Za-z0-9_:.-]*|[A-Za-z0-9_-]{40,}")
# What a person may send who has read the page; nothing of it decides.
SENT: list[dict[str, Any]] = [
    {},
    {"reason": "odd", "text": "why?", "version": 1, "guidance": "Look again."},
    {"to": "nobody", "argument": "note", "beat": "1"},
]


def list_routes(
    parts: list[URLPattern | URLResolver] | None = None, before: str = ""
) -> Iterator[str]:
    """Every address of the product that names a request."""
    for part in get_resolver().url_patterns if parts is None else parts:
        route = before + str(part.pattern)
        if isinstance(part, URLResolver):
            yield from list_routes(part.url_patterns, route)
        elif REQUEST.search(route):
            yield route


def fill(route: str, pk: str) -> str:
    def value(match: re.Match[str]) -> str:
        name = match[1].rpartition(":")[2]
        return pk if name in {"pk", "request_id"} else str(ELSEWHERE[name])

    return "/" + re.sub(r"<([^>]+)>", value, route)


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: str


def normalise(response: Any, request: ApprovalRequest) -> Answer:
    body = b"".join(response) if response.streaming else response.content
    texts = [body.decode(), *response.headers.values()]
    known = (request.pk, request.proposal_id, request.action_hash)
    for own in known:
        texts = [text.replace(own, "own") for text in texts]
    body_text, *values = (VOLATILE.sub("#", text) for text in texts)
    headers = dict(zip(response.headers, values, strict=True))
    headers.pop("Content-Length", None)
    return Answer(response.status_code, headers, body_text)


class Twins(NamedTuple):
    """A canary, and a request of an agent with the same call in the same run."""

    person: Person
    client: Client
    canary: ApprovalRequest
    request: ApprovalRequest

    def ask(self, address: str, method: str = "get", **sent: Any) -> list[Answer]:
        """The answers to the same call about each; nothing that it does stays."""
        return [
            self._ask_about(one, address, method, sent)
            for one in (self.canary, self.request)
        ]

    def _ask_about(
        self, one: ApprovalRequest, address: str, method: str, sent: dict[str, Any]
    ) -> Answer:
        call, cookies = getattr(self.client, method), cookies_of(self.client)
        undo = transaction.savepoint()
        answer = normalise(call(fill(address, one.pk), **sent), one)
        transaction.savepoint_rollback(undo)
        self.client.cookies = cookies
        return answer


@pytest.fixture(params=["rita", "sue"])
def twins(request: pytest.FixtureRequest, gate: Gate) -> Twins:
    person = gate.people[request.param]
    approve_source(gate)
    canary = plant_clone(person)
    revision = canary.sealed.revision
    real = propose(
        gate.agent,
        canary.tool_name,
        args=revision.args,
        rationale=revision.rationale,
        thread=canary.proposal.thread,
    ).request
    client = Client()
    client.force_login(person)
    return Twins(person, client, canary, real)


ROUTES = sorted(list_routes())


def test_each_address_answers_as_for_a_request(twins: Twins) -> None:
    for route, headers in product(ROUTES, ({}, {"HX-Request": "true"})):
        canary, request = twins.ask(route, headers=headers)
        assert canary == request, route


def test_each_verb_answers_as_for_a_request(twins: Twins) -> None:
    for route, sent in product(ROUTES, SENT):
        more: dict[str, Any] = {"data": sent}
        if "/api/" in fill(route, "r-0"):
            more["content_type"] = "application/json"
        canary, request = twins.ask(route, "post", **more)
        assert canary == request, (route, sent)


@pytest.mark.parametrize(
    "address",
    [
        "/queue/?q={}",
        "/queue/?q={run}",
        "/queue/",
        "/api/v1/requests",
        "/api/v1/requests?status=pending&agent=riley",
        "/api/v1/requests?tool=pay",
        "/agents/riley/",
        "/threads/riley/{run}/",
        "/escalations/",
    ],
)
def test_each_list_has_a_canary_where_it_has_a_request(
    address: str, twins: Twins
) -> None:
    """An address that is looked up names one of the two; all others name both."""
    named = "{}" in address
    run = twins.canary.proposal.thread
    for one in (twins.canary, twins.request):
        found = twins.client.get(address.format(one.pk, run=run))
        text = found.content.decode()
        assert found.status_code == 200
        both = {twin.pk for twin in (twins.canary, twins.request) if twin.pk in text}
        assert both in (
            [{one.pk}] if named else [set(), {twins.canary.pk, twins.request.pk}]
        )


def test_the_person_who_asks_by_api_gets_every_field_alike(twins: Twins) -> None:
    """In the same order, with the same names."""
    shapes = []
    for one in (twins.canary, twins.request):
        found = twins.client.get(f"/api/v1/requests/{one.pk}").json()
        listed = twins.client.get("/api/v1/requests").json()["items"]
        (line,) = [row for row in listed if row["id"] == one.pk]
        shapes.append([describe(found), describe(line)])
    assert shapes[0] == shapes[1]


def describe(value: Any) -> Any:
    """The names and types of a body."""
    if isinstance(value, dict):
        return [(name, describe(inner)) for name, inner in value.items()]
    if isinstance(value, list):
        return [describe(inner) for inner in value]
    return type(value).__name__


def test_each_count_that_its_reviewer_reads_has_it(twins: Twins) -> None:
    """Of its run and of its agent, as for a request."""
    run = twins.canary.proposal.thread
    me = twins.person.public_id
    for scope, key in (
        (Scope.THREAD, stops.build_thread_key("riley", run)),
        (Scope.AGENT, "riley"),
    ):
        own = in_flight.count_in_flight([(scope, key)], me)[scope, key]
        others = in_flight.count_in_flight([(scope, key)])[scope, key]
        assert own.waiting == others.waiting + 1


@pytest.mark.parametrize("left", [None, 0.45, 0.1], ids=["opened", "half", "soon"])
def test_its_reviewer_gets_the_same_messages(twins: Twins, left: float | None) -> None:
    drain("request.opened")
    if left is not None:
        hour = timedelta(hours=1)
        opened = clock.now() - hour
        ends = opened + hour / (1 - left)
        rows = ApprovalRequest.with_canaries.all()
        rows.update(opened_at=opened, expires_at=ends, expires_at_most=ends)
        deadlines.enqueue_reminders()
        drain("request.half_time")
        drain("request.due_soon")
    told = Notice.objects.filter(person=twins.person).exclude(request__tier="escalate")
    canary, request = (
        [
            (row.kind, row.channel, row.version, row.digest, bool(row.sent_at))
            for row in told.filter(request_id=one.pk).order_by("pk")
        ]
        for one in (twins.canary, twins.request)
    )
    assert canary == request
    assert len(canary) == (1 if left is None else 2)
    others = Notice.objects.filter(request_id=twins.canary.pk)
    assert not others.exclude(person=twins.person).exists()


def test_a_clone_is_judged_by_the_claims_of_its_source(gate: Gate) -> None:
    """What names like a reviewer's did to the source, they do to the clone."""
    pk = approve_source(gate)
    revision = Revision.objects.get(proposal=pk)
    claims = {"resembles": True, "narrowed": {"barred": 1, "left": 2}}
    worlds.rewrite(Revision, revision.pk, facts={**revision.facts, **claims})
    revision.refresh_from_db()
    (planted, *_) = clones.list_fitting_defects(
        revision,
        uses={},
        weights=library.load_weights(),
        chance=random.Random(1),
    )
    action = clones.build_action(revision, planted, proposal="p-clone")
    assert (action.resembles, action.narrowed) == tuple(claims.values())
