"""Reviewers and supervisors, who decide at whichever web process lives.

They look at the queue by the people's API and give the verdict that the name of the
thread calls for. Some things need a signed-in session: pages, and verdicts with a fresh
password. Cookies are kept by hand: a library's jar would not send `Secure` ones to
plain http, where browsers trust loopback.
"""

from __future__ import annotations

import queue
import random
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from typing import Any

import httpx2

from bench.seed import PASSWORD

from .generator import read_thread
from .history import Call, History
from .services import Ledger


class Session:
    """One person's signed-in session. Raises httpx2.HTTPError."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.cookies: dict[str, str] = {}
        self._http = httpx2.Client(trust_env=False, timeout=15)

    def get(self, address: str, path: str) -> httpx2.Response:
        return self._send("GET", address, path)

    def post(self, address: str, path: str, **said: Any) -> httpx2.Response:
        """A form, or JSON with `json=`; signed in first where that is needed."""
        if not self._is_in:
            self._sign_in(address)
        return self._send("POST", address, path, **said)

    def leave(self) -> None:
        """The next form begins with a sign-in."""
        self.cookies.clear()

    @property
    def _is_in(self) -> bool:
        return any(name.endswith("session") for name in self.cookies)

    def _sign_in(self, address: str) -> None:
        self.get(address, "/sign-in/")
        said = {"username": self.name, "password": PASSWORD}
        self._send("POST", address, "/sign-in/", data=said)

    def _send(
        self, method: str, address: str, path: str, **said: Any
    ) -> httpx2.Response:
        sent = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        headers = {"Cookie": sent, "X-CSRFToken": self._token}
        answer = self._http.request(method, address + path, headers=headers, **said)
        for line in answer.headers.get_list("set-cookie"):
            for name, morsel in SimpleCookie(line).items():
                self.cookies[name] = morsel.value
        self._http.cookies.clear()
        return answer

    @property
    def _token(self) -> str:
        found = (v for name, v in self.cookies.items() if name.endswith("csrf"))
        return next(found, "")


LOOK_S = 0.3  # between two looks
TRIES = 12
# A sign-in whose answer was lost: not the last word on what was asked.
SIGNED_OUT = {302, 401, 403}
LATER = 429

Found = dict[str, Any]


@dataclass
class DeskUser:
    """One person in a thread of their own."""

    name: str
    token: str
    addresses: Sequence[str]
    history: History
    stopping: threading.Event
    done: set[str] = field(default_factory=set)
    seen: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.session = Session(self.name)
        headers = {"Authorization": f"Bearer {self.token}"}
        self.http = httpx2.Client(headers=headers, trust_env=False, timeout=15)

    def work(self) -> None:
        while not self.stopping.wait(LOOK_S):
            try:
                self.look()
            except Exception as error:
                self.history.count(f"{self.name}: {type(error).__name__}")

    def look(self) -> None:
        raise NotImplementedError

    def api(self, method: str, path: str, **said: Any) -> httpx2.Response:
        return self.tried(
            path, lambda at: self.http.request(method, f"{at}/api/v1{path}", **said)
        )

    def page(self, path: str, **form: str) -> httpx2.Response:
        return self.tried(path, lambda at: self.session.post(at, path, data=form))

    def tried(
        self, path: str, call: Callable[[str], httpx2.Response]
    ) -> httpx2.Response:
        """The answer, from a web process that is up. Raises httpx2.HTTPError when
        none does for long; a lost answer is asked for again, for a verdict counts
        once."""
        began, asked = time.time(), []
        web = random.randrange(len(self.addresses))  # noqa: S311 - a balancer's choice
        for tries in range(TRIES):
            asked.append(web)
            try:
                answer = _accepted(call(self.addresses[web]))
            except httpx2.HTTPError as error:
                if not _worth_another(error) or tries == TRIES - 1:
                    raise
                web = (web + 1) % len(self.addresses)
                time.sleep(min(2.0, 0.1 * 2**tries))
                continue
            if len(asked) > 1:
                now = time.time()
                self.history.called(Call("person", path, began, now, tuple(asked)))
            return answer
        raise TimeoutError(path)

    def stands(self, status: int) -> bool:
        """Whether a refusal is the last word; who was signed out signs in again."""
        self.history.count(f"person: {status}")
        if status in SIGNED_OUT:
            self.session.leave()
            return False
        return status < 500 and status != LATER


def _accepted(answer: httpx2.Response) -> httpx2.Response:
    """Pages answer a form with a redirect. Raises HTTPStatusError for a refusal."""
    if answer.status_code >= 400 or answer.headers.get("location", "") == "/sign-in/":
        raise httpx2.HTTPStatusError(
            f"{answer.status_code}", request=answer.request, response=answer
        )
    return answer


def _worth_another(error: httpx2.HTTPError) -> bool:
    if not isinstance(error, httpx2.HTTPStatusError):
        return True
    answer = error.response
    lost_race = answer.status_code == 409 and '"conflict"' in answer.text
    return answer.status_code >= 500 or lost_race


ALONE_S = 12.0  # after which what should be in a batch is decided alone
SHY = {"expire", "withdraw"}  # nobody answers these
BOTH = 7  # of so many requests one is decided by two people at once


@dataclass
class Reviewer(DeskUser):
    """Decides every second request; some are decided by two reviewers at once."""

    place: int = 0
    failed: queue.SimpleQueue[str] = field(default_factory=queue.SimpleQueue)

    def look(self) -> None:
        self._retry()
        found = self.api("GET", "/requests", params={"limit": 100}).json()["items"]
        for asked in found:
            number, kind = read_thread(asked["thread"])
            mark = f"{asked['id']} {asked['version']}"
            if kind in SHY or mark in self.done or not asked["can_decide"]:
                continue
            if number % BOTH and number % 2 != self.place:
                continue
            if kind == "batch" and self._waits_for_others(asked):
                continue
            if self._answer(asked, number, kind):
                self.done.add(mark)
        if self.place == 0:
            self._batches()

    def _waits_for_others(self, asked: Found) -> bool:
        first = self.seen.setdefault(asked["id"], time.monotonic())
        return time.monotonic() < first + ALONE_S

    def _answer(self, asked: Found, number: int, kind: str) -> bool:
        if kind == "stop" and number % 2:
            return True  # left to who stops it
        said: dict[str, Any] = {"verdict": "approve"}
        if kind == "reject" or (kind == "recall" and asked["version"] > 1):
            said = {"verdict": "reject", "reason_code": "wrong_amount"}
        if kind == "edit":
            args = {**asked["args"], "amount": "5.00"}
            said = {"verdict": "modify", "args": args, "reason_code": "wrong_amount"}
        done = self._say(asked, said)
        if done and kind == "recall" and asked["version"] == 1:
            self._quietly(lambda: self.page(f"/requests/{asked['id']}/recall/"))
        return done

    def _say(self, asked: Found, said: dict[str, Any]) -> bool:
        """Whether there is nothing more to say to this version."""
        bound = {"version": asked["version"], "action_hash": asked["action_hash"]}
        path = f"/requests/{asked['id']}/decide"
        return self._quietly(lambda: self.api("POST", path, json={**bound, **said}))

    def _quietly(self, call: Callable[[], httpx2.Response]) -> bool:
        """Decided already is as good; whatever else is counted."""
        try:
            call()
        except httpx2.HTTPStatusError as error:
            return self.stands(error.response.status_code)
        return True

    def _batches(self) -> None:
        for line in self.api("GET", "/batches").json()["items"]:
            if line["status"] != "open" or line["id"] in self.done:
                continue
            batch = self.api("GET", f"/batches/{line['id']}").json()
            if self._waits_for_more(batch):
                continue
            inside = [m for m in batch["items"] if m["status"] == "pending"]
            said = {
                "digest": batch["digest"],
                "items": [member["entry"]["request"] for member in inside],
                "verdict": "approve",
                "stop_at_failure": False,
            }
            path = f"/batches/{line['id']}/decide"
            if self._quietly(lambda p=path, s=said: self.api("POST", p, json=s)):  # type: ignore[misc]
                self.done.add(line["id"])

    def _waits_for_more(self, batch: Found) -> bool:
        first = self.seen.setdefault(batch["id"], time.monotonic())
        return time.monotonic() < first + 3.0

    def _retry(self) -> None:
        """What the service declined once is let run again."""
        waiting = set()
        while not self.failed.empty():
            waiting.add(self.failed.get())
        for request in waiting:
            self._quietly(lambda at=request: self.page(f"/requests/{at}/retry/"))  # type: ignore[misc]


UNKNOWN = re.compile(r"/unknown/(x-[a-z0-9]+)/")
SETTLED = 2  # of so many unknown effects one is settled


@dataclass
class Supervisor(DeskUser):
    """What takes a session; one of the two also stops and settles."""

    ledger: Ledger | None = None

    def look(self) -> None:
        found = self.api("GET", "/requests", params={"limit": 100}).json()["items"]
        for asked in found:
            _, kind = read_thread(asked["thread"])
            mark = f"{asked['id']} {asked['version']}"
            if mark in self.done:
                continue
            if kind == "escalate" and asked["can_decide"] and self._vote(asked):
                self.done.add(mark)
            if kind == "stop" and self.ledger and self._stop(asked):
                self.done.add(mark)
        if self.ledger is not None:
            self._settle(self.ledger)

    def _vote(self, asked: Found) -> bool:
        said = {
            "version": asked["version"],
            "action_hash": asked["action_hash"],
            "verdict": "approve",
            "reason_code": "verified",
            "password": PASSWORD,
        }
        path = f"/api/v1/requests/{asked['id']}/decide"
        return self._done(path, lambda at: self.session.post(at, path, json=said))

    def _stop(self, asked: Found) -> bool:
        target = f"thread:{asked['agent']}/{asked['thread']}"
        form = {"target": target, "mode": "stopped", "reason_code": "wrong"}
        path = f"/threads/{asked['agent']}/{asked['thread']}/stop/"
        return self._done(path, lambda at: self.session.post(at, path, data=form))

    def _settle(self, ledger: Ledger) -> None:
        """Settle half of the unknown effects, as the service's ledger says."""
        page = self.tried("/unknown/", lambda at: self.session.get(at, "/unknown/"))
        for execution in set(UNKNOWN.findall(page.text)) - self.done:
            self.done.add(execution)
            if sum(map(ord, execution)) % SETTLED:
                continue
            happened = ledger.happened_of(execution)
            said = "yes" if happened else "no"
            form = {"happened": said, "reason": "by the service's books"}
            self._done(
                "settle",
                lambda at, x=execution, f=form: self.session.post(  # type: ignore[misc]
                    at, f"/unknown/{x}/", data=f
                ),
            )

    def _done(self, path: str, call: Callable[[str], httpx2.Response]) -> bool:
        try:
            self.tried(path, call)
        except httpx2.HTTPStatusError as error:
            return self.stands(error.response.status_code)
        return True
