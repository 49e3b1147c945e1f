"""People by HTTP alone: by the people's API, and in a signed-in session where pages and
fresh passwords need one."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from typing import Any

import httpx2

from .agents import Action

# What the people's API answers: `send("POST", "/requests/q-1/decide", json=verdict)`.
Send = Callable[..., httpx2.Response]
Request = dict[str, Any]  # as the people's API shows it

LOOK_S = 0.05  # between two looks at an empty queue
# A lost race: the reviewer looks again and finds the request as it is now.
LOST_RACE = frozenset({"conflict"})


def list_requests(send: Send, **params: int) -> list[Request]:
    """What waits for this person."""
    answer = send("GET", "/requests", params=params).raise_for_status()
    return list(answer.json()["items"])


def build_verdict(request: Request, verdict: str, **fields: Any) -> dict[str, Any]:
    """A verdict on exactly what was shown."""
    bound = {name: request[name] for name in ("version", "action_hash")}
    return {**bound, "verdict": verdict, **fields}


@dataclass
class Reviewer:
    """Finds the action behind each request by what the request shows: thread, tool and
    arguments. What is no action of these is not answered, and the run stops."""

    send: Send
    actions: Sequence[Action]
    rejects: Callable[[Any], bool]  # whether an action is to be rejected
    stopping: threading.Event = field(default_factory=threading.Event)
    lost_race: frozenset[str] = LOST_RACE

    def work(self) -> None:
        actions = {identify(a.thread, a.tool, a.args): a for a in self.actions}
        while not self.stopping.is_set():
            requests = list_requests(self.send)
            for request in requests:
                shown = (request[name] for name in ("thread", "tool", "args"))
                self._decide(request, reject=self.rejects(actions[identify(*shown)]))
            if not requests:
                self.stopping.wait(LOOK_S)

    def _decide(self, request: Request, *, reject: bool) -> None:
        reason = "not_needed" if reject else ""
        verdict = build_verdict(
            request, "reject" if reject else "approve", reason_code=reason
        )
        answer = self.send("POST", f"/requests/{request['id']}/decide", json=verdict)
        if answer.status_code != 409 or answer.json()["code"] not in self.lost_race:
            answer.raise_for_status()


def identify(thread: str, tool: str, args: dict[str, Any]) -> str:
    """What tells one action of a run from every other."""
    return json.dumps([thread, tool, args], sort_keys=True)


class Session:
    """One person's signed-in session. Raises httpx2.HTTPError.

    Cookies are kept by hand: a library's jar would not send `Secure` ones to plain
    http, where browsers trust loopback.
    """

    def __init__(self, name: str, password: str) -> None:
        self.login = {"username": name, "password": password}
        self.cookies: dict[str, str] = {}
        self._http = httpx2.Client(trust_env=False, timeout=15)

    def get(self, address: str, path: str) -> httpx2.Response:
        return self._send("GET", address, path)

    def post(self, address: str, path: str, **body: Any) -> httpx2.Response:
        """A form, or JSON with `json=`; signed in first where that is needed."""
        if not self._find_cookie("session"):
            self.get(address, "/sign-in/")
            self._send("POST", address, "/sign-in/", data=self.login)
        return self._send("POST", address, path, **body)

    def leave(self) -> None:
        """The next form begins with a sign-in."""
        self.cookies.clear()

    def _send(
        self, method: str, address: str, path: str, **body: Any
    ) -> httpx2.Response:
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        headers = {"Cookie": cookies, "X-CSRFToken": self._find_cookie("csrf")}
        answer = self._http.request(method, address + path, headers=headers, **body)
        for line in answer.headers.get_list("set-cookie"):
            for name, morsel in SimpleCookie(line).items():
                self.cookies[name] = morsel.value
        self._http.cookies.clear()
        return answer

    def _find_cookie(self, kind: str) -> str:
        values = (v for name, v in self.cookies.items() if name.endswith(kind))
        return next(values, "")
