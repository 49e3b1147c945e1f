"""T17: every route by everyone with every method, against the table in routes.py.

I17: an agent's key decides nothing. I32: what is only read changes nothing, and a
refused write changes nothing. I33: what is not one's own is not there: the same answer
as for what does not exist.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

import pytest
from django.db import transaction

from tests.security import routes
from tests.security.routes import BEARERS, ROUTES, Row
from tests.security.world import (
    AGENTS,
    PEOPLE,
    Who,
    World,
    changed,
    cookies_of,
    digests,
    written,
)

SAFE = ("GET", "HEAD", "OPTIONS")
OTHER = ("PUT", "PATCH", "DELETE")
OFTEN = frozenset({"GET", "POST"})
SIGN_IN = "/sign-in/"
SIGNING = {
    "reviews:sign_in",
    "reviews:sign_in_code",
    "reviews:sign_in_passkey",
    "reviews:sign_out",
}
# A token of the form, the clock and the page's own address differ between two answers.
VARYING = re.compile(
    rb'name="csrfmiddlewaretoken" value="\w+"|"X-CSRFToken": "\w+"|data-now="[^"]*"'
    rb'|<p class="print-only".*?</p>',
    re.DOTALL,
)


def test_every_route_is_listed() -> None:
    known = {route.name for route in routes.registered()}
    assert known == set(ROUTES)


def _paths(world: World) -> Iterator[tuple[str, list[str]]]:
    """Each address with the routes that share it."""
    named = sorted((routes.address(name, world.ids), name) for name in ROUTES)
    for path, group in groupby(named, key=lambda pair: pair[0].partition("?")[0]):
        yield path, [name for _, name in group]


SUCCESS = 0  # in a set of statuses: 2xx, or a redirect to anywhere but the sign-in


def _expected(who: Who, method: str, name: str, row: Row) -> set[int]:
    """The statuses that this call may have."""
    # Nobody's without its own token or an identity provider, once there is an
    # administrator, and where several people are.
    if name in {
        "metrics",
        "reviews:setup",
        "reviews:provider_sign_in",
        "reviews:provider_callback",
        "reviews:sign_in_by_link",
        "reviews:password_link",
    }:
        return {404, 405}
    if name in SIGNING:  # Django's views: forms, OPTIONS, and ways on from there
        return {SUCCESS, 302, 405}
    if who in _allowed(method, row):
        return {SUCCESS} if method in {"GET", "POST"} else {SUCCESS, 405}
    if name.startswith("scim:"):  # nobody here has the token of the provider
        return {401}
    if name.startswith("api:"):
        return _refused_by_api(who, method, name, row)
    if who not in PEOPLE:
        return {302, 405}
    if method == "OPTIONS" or not _offered(method, row):
        return {405}
    return {403} if who in row.sees else {404}


def _allowed(method: str, row: Row) -> frozenset[Who]:
    if method == "OPTIONS":
        return frozenset()
    return row.get if method in SAFE else row.post if method == "POST" else frozenset()


def _offered(method: str, row: Row) -> bool:
    return method in (*SAFE, "POST") and bool(_allowed(method, row))


def _refused_by_api(who: Who, method: str, name: str, row: Row) -> set[int]:
    if name == "api:api-root":
        return {404, 405}
    if method not in {"GET", "HEAD", "POST"} or not _offered(method, row):
        return {405}
    if name in routes.OF_AGENTS:
        return {404} if who in AGENTS else {401}
    if who in AGENTS:
        return {403}
    if who is Who.NOBODY:
        return {401}
    return {403} if who in row.sees else {404}


def _fits(response: Any, expected: set[int]) -> bool:
    to_sign_in = response.headers.get("Location", "").startswith(SIGN_IN)
    if response.status_code == 302 and to_sign_in:
        return 302 in expected
    if response.status_code in {200, 201, 204, 302, 303}:
        return SUCCESS in expected
    return response.status_code in expected


class Matrix:
    """Makes the calls, each in a savepoint that is rolled back, and collects what is
    not as the table says. Of the methods that nothing on our pages uses, a caller tries
    one in `seldom`, another caller the next."""

    def __init__(self, world: World, seldom: int) -> None:
        self.world = world
        self.seldom = seldom
        self.turn = 0
        self.calls = 0
        self.wrong: list[str] = []
        self.before = digests(log=False)  # of every call: each is rolled back

    def refused(self, who: Who, names: list[str]) -> None:
        """Everything that must change nothing: reads, and what is not allowed."""
        undo, rows = transaction.savepoint(), written()
        client = self.world.clients[who]
        cookies = cookies_of(client)  # a right password renews the session
        for method in filter(self._is_tried, (*SAFE, "POST", *OTHER)):
            name = self._owner(method, names)
            row = ROUTES[name]
            if method == "POST" and who in row.post:
                continue
            path = routes.address(name, self.world.ids)
            response = self._call(who, method, name, path)
            if response.status_code == 404 and row.ids:
                self._same_as_absent(who, method, name, response)
        if found := changed(self.before, log=False, since=rows):
            self.wrong.append(f"{who} changed {found} by {names}")
        transaction.savepoint_rollback(undo)
        client.cookies = cookies

    def _is_tried(self, method: str) -> bool:
        self.turn += method not in OFTEN
        return method in OFTEN or self.turn % self.seldom == 0

    def allowed(self, who: Who, names: list[str]) -> None:
        """The write that works: otherwise the refusals would prove nothing."""
        name = self._owner("POST", names)
        if who not in ROUTES[name].post:
            return
        client = self.world.clients[who]
        cookies = cookies_of(client)
        undo = transaction.savepoint()
        self.world.caller = who
        before, rows = self._made_ready(ROUTES[name]), written()
        self._call(who, "POST", name, routes.address(name, self.world.ids))
        if ROUTES[name].writes and not changed(before, log=False, since=rows):
            self.wrong.append(f"{who} changed nothing by POST {name}")
        transaction.savepoint_rollback(undo)
        client.cookies = cookies

    def _made_ready(self, row: Row) -> dict[str, str]:
        if row.first is None:
            return self.before
        row.first(self.world)
        return digests(log=False)

    def _owner(self, method: str, names: list[str]) -> str:
        """Of routes that share an address, the one that takes this method."""
        return next((n for n in names if _offered(method, ROUTES[n])), names[0])

    def _call(self, who: Who, method: str, name: str, path: str) -> Any:
        response = routes.send(self.world, who, method, name, path)
        self.calls += 1
        expected = _expected(who, method, name, ROUTES[name])
        if not _fits(response, expected):
            said = f"{response.status_code}, not {expected}"
            self.wrong.append(f"{who}: {method} {name} answered {said}")
        return response

    def _same_as_absent(self, who: Who, method: str, name: str, found: Any) -> None:
        absent = routes.address(name, {**self.world.ids, **routes.ABSENT})
        response = routes.send(self.world, who, method, name, absent)
        self.calls += 1
        same = response.status_code == 404 and _plain(response) == _plain(found)
        if not same:
            self.wrong.append(f"{who}: {method} {name} tells what is there")


def _plain(response: Any) -> bytes:
    return VARYING.sub(b"", response.content)


@pytest.mark.proof
@pytest.mark.timeout(1200)  # a thousand calls, each with a look at every table
def test_nobody_reaches_what_is_not_theirs(
    world: World,
    proof_n: Callable[..., int],
    record_proof: Callable[[str, str], None],
) -> None:
    matrix = Matrix(world, proof_n(small=8, full=1))
    every = proof_n(small=4, full=1)  # refused at one route in so many
    paths = list(_paths(world))
    for turn, who in enumerate(Who):
        matrix.turn = turn
        for place, (_, names) in enumerate(paths):
            if (place + turn) % every == 0:
                matrix.refused(who, names)
            matrix.allowed(who, names)
    assert matrix.wrong == [], "\n".join(matrix.wrong)
    record_proof(
        "T17",
        f"{len(ROUTES)} routes, {len(Who)} callers, {matrix.calls} calls: "
        "0 unexpected answers, 0 rows changed by a refusal",
    )


def test_agents_keys_decide_nothing(world: World) -> None:
    """I17, said once more by name."""
    for who in BEARERS:
        deciding = (
            "reviews:decide",
            "reviews:recall",
            "reviews:unknown_one",
            "api:decide",
        )
        for name in deciding:
            path = routes.address(name, world.ids)
            status = routes.send(world, who, "POST", name, path).status_code
            expected = {403} if name == "api:decide" else {302}
            if who is not Who.TOKEN or name != "api:decide":
                assert status in expected, (who, name)


@pytest.mark.parametrize(
    "path",
    [
        "/static/../manage.py",
        "/static/%2e%2e/manage.py",
        "/static/",
        "/.git/config",
        "/media/x",
        "/var/demo.json",
        "/admin/../var/keys/secret_key",
        "//evil.example/",
        "/requests/r-1",
    ],
)
def test_nothing_lies_beside_the_routes(world: World, path: str) -> None:
    for client in world.clients.values():
        response = client.get(path)
        assert response.status_code in {301, 302, 404}, path
        location = response.headers.get("Location", "/")
        assert location.startswith("/")
        assert not location.startswith("//")
