"""T18: what only reads changes nothing, and what writes comes from our own pages.

I32. Forged forms, other sites' requests, prefetches, link scanners and frames.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import islice, product
from typing import Any

import pytest
from django.core import mail
from django.db import transaction
from django.test import Client

from hitl import tasks
from journal.models import OutboxMessage
from tests.factories import PASSWORD
from tests.security import routes
from tests.security.routes import ROUTES
from tests.security.world import (
    BACKEND,
    PEOPLE,
    Who,
    World,
    changed,
    digests,
    written,
)

HOST = "http://testserver"
# How browsers and scanners ask for a page that nobody has clicked yet.
UNASKED: tuple[dict[str, str], ...] = (
    {},
    {"Purpose": "prefetch", "Sec-Purpose": "prefetch;prerender"},
    {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    {"HX-Request": "true"},
)
# A download of personal data is a record of the log, whoever caused it.
LOGGED = {"reviews:dataset_file"}
READS = (("HEAD", {}), ("OPTIONS", {}), *(("GET", headers) for headers in UNASKED))


def writers() -> Iterator[tuple[str, Who]]:
    """Every write that a session can do, with someone who may do it."""
    for name, row in ROUTES.items():
        who = next((who for who in sorted(row.post & PEOPLE)), None)
        if who is not None and row.writes:
            yield name, who


@pytest.mark.proof
def test_reading_changes_nothing(
    world: World,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    calls, every = 0, proof_n(small=8, full=1)  # of the ways to read one, in turn
    for turn, who in enumerate(Who):
        before, undo = digests(log=True), transaction.savepoint()
        ways = islice(product(ROUTES, READS), turn % every, None, every)
        for name, (method, headers) in ways:
            if name in LOGGED:
                continue
            path = routes.address(name, world.ids)
            world.clients[who].generic(method, path, headers=headers)
            calls += 1
        assert changed(before, log=True) == [], who
        transaction.savepoint_rollback(undo)
    record_proof("T18", f"{calls} reads by {len(Who)} callers: 0 rows changed")


def strict(world: World, who: Who) -> tuple[Client, str]:
    """A browser that must show its token, and the token of one of its pages."""
    client = Client(enforce_csrf_checks=True, raise_request_exception=False)
    client.force_login(world.people[who], BACKEND)
    world.caller = who
    source = client.get("/me/tokens/").content.decode()
    found = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', source)
    assert found
    return client, found[1]


def send(world: World, client: Client, name: str, **headers: str) -> Any:
    path = routes.address(name, world.ids)
    row = ROUTES[name]
    if name.startswith("api:"):
        return client.post(
            path, row.body(world), content_type="application/json", headers=headers
        )
    return client.post(path, row.body(world), headers=headers)


FORGERIES: list[tuple[str, dict[str, str], bool]] = [
    ("no token", {}, False),
    ("a wrong token", {"X-CSRFToken": "a" * 64}, False),
    ("another origin", {"Origin": "https://evil.example"}, True),
    ("no origin at all", {"Origin": "null"}, True),
    ("another scheme", {"Origin": "ftp://testserver"}, True),
    ("another site", {"Sec-Fetch-Site": "cross-site", "Origin": HOST}, True),
    ("a sister site", {"Sec-Fetch-Site": "same-site", "Origin": HOST}, True),
]


@pytest.mark.proof
def test_forged_writes_are_refused(
    world: World,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    bare, *others = FORGERIES
    sent, every = 0, proof_n(small=3, full=1)  # of the others for one write, in turn
    unchanged = digests(log=True)  # each write that is carried out is rolled back
    for turn, (name, who) in enumerate(writers()):
        client, token = strict(world, who)
        before, mark = unchanged, written()
        for what, headers, with_token in (bare, *others[turn % every :: every]):
            shown = {"X-CSRFToken": token} if with_token else {}
            response = send(world, client, name, **shown, **headers)
            assert response.status_code in {401, 403}, (name, what)
            sent += 1
        assert changed(before, log=True, since=mark) == [], name
        undo = transaction.savepoint()
        if first := ROUTES[name].first:
            first(world)
            before, mark = digests(log=True), written()
        said = send(world, client, name, **{"X-CSRFToken": token, "Origin": HOST})
        assert said.status_code in {200, 201, 204, 302, 303}, (name, said.status_code)
        done = changed(before, log=True, since=mark)
        assert done, f"{name}: the true one does nothing either"
        transaction.savepoint_rollback(undo)
    record_proof("T18", f"{sent} forged writes: 0 accepted, 0 rows changed")


def test_over_https_the_page_it_came_from_counts(world: World) -> None:
    client, token = strict(world, Who.REVIEWER)
    path, body = "/me/tokens/", {"name": "x", "csrfmiddlewaretoken": token}
    for referer in ("https://evil.example/", ""):
        headers = {"Referer": referer} if referer else {}
        response = client.post(path, body, secure=True, headers=headers)
        assert response.status_code == 403
    own = {"Referer": "https://testserver/me/tokens/"}
    assert client.post(path, body, secure=True, headers=own).status_code == 200


def test_nobody_is_signed_in_by_another_site(world: World) -> None:
    client = Client(enforce_csrf_checks=True)
    body = {"username": "rita", "password": PASSWORD}
    assert client.post("/sign-in/", body).status_code == 403
    client.get("/sign-in/")
    assert client.post("/sign-in/", body).status_code == 403
    assert client.get("/queue/").status_code == 302


@pytest.mark.proof
def test_a_link_in_a_mail_decides_nothing(
    world: World, proof_n: Callable[..., int]
) -> None:
    """Scanners open every link, some of them signed in as whoever reads the mail."""
    for message in OutboxMessage.objects.filter(task__endswith=".notify_people"):
        getattr(tasks, message.task.rsplit(".", 1)[1])(message.pk)
    links = {
        link
        for one in mail.outbox
        for link in re.findall(r"https?://\S+", str(one.body))
    }
    assert links
    before = digests(log=True)
    callers = (Who.NOBODY, Who.REVIEWER, Who.SUPERVISOR)
    ways = list(product(callers, UNASKED))
    every = proof_n(small=4, full=1)  # of the ways to open one link, in turn
    for turn, link in enumerate(sorted(links)):
        path = "/" + link.split("/", 3)[3]
        for who, headers in ways[turn % every :: every]:
            world.clients[who].get(path, headers=headers, follow=True)
    assert changed(before, log=True) == []


@pytest.mark.parametrize("who", [Who.NOBODY, Who.SUPERVISOR, Who.STRANGER, Who.AGENT])
def test_no_page_can_be_framed(world: World, who: Who) -> None:
    paths = [routes.address(name, world.ids) for name in ROUTES]
    for path in [*paths, "/nowhere/", "/queue/?q=%00"]:
        for method in ("GET", "POST"):
            response = world.clients[who].generic(method, path)
            assert "frame-ancestors 'none'" in response["Content-Security-Policy"], path
            assert response["X-Frame-Options"] == "DENY", path
