"""Somebody who decides, at whichever web process lives: what reviewers and supervisors
have in common."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from .calls import Call, Notebook
from .session import Session

LOOK_S = 0.3  # between two looks
TRIES = 12
# A sign-in whose answer was lost: not the last word on what was asked.
SIGNED_OUT = {302, 401, 403}
LATER = 429

Found = dict[str, Any]


@dataclass
class Desk:
    """One person in a thread of their own."""

    name: str
    token: str
    addresses: Sequence[str]
    notebook: Notebook
    stopping: threading.Event
    done: set[str] = field(default_factory=set)
    seen: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.session = Session(self.name)
        headers = {"Authorization": f"Bearer {self.token}"}
        self.http = httpx.Client(headers=headers, trust_env=False, timeout=15)

    def work(self) -> None:
        while not self.stopping.wait(LOOK_S):
            try:
                self.look()
            except Exception as error:
                self.notebook.count(f"{self.name}: {type(error).__name__}")

    def look(self) -> None:
        raise NotImplementedError

    def api(self, method: str, path: str, **said: Any) -> httpx.Response:
        return self.tried(
            path, lambda at: self.http.request(method, f"{at}/api/v1{path}", **said)
        )

    def page(self, path: str, **form: str) -> httpx.Response:
        return self.tried(path, lambda at: self.session.post(at, path, data=form))

    def tried(self, path: str, call: Callable[[str], httpx.Response]) -> httpx.Response:
        """The answer, from whichever web process lives. Raises httpx.HTTPError when
        none does for long; a lost answer is asked for again, for a verdict counts
        once."""
        began, asked = time.time(), []
        web = random.randrange(len(self.addresses))  # noqa: S311 - a balancer's choice
        for tries in range(TRIES):
            asked.append(web)
            try:
                answer = _accepted(call(self.addresses[web]))
            except httpx.HTTPError as error:
                if not _worth_another(error) or tries == TRIES - 1:
                    raise
                web = (web + 1) % len(self.addresses)
                time.sleep(min(2.0, 0.1 * 2**tries))
                continue
            if len(asked) > 1:
                now = time.time()
                self.notebook.called(Call("person", path, began, now, tuple(asked)))
            return answer
        raise TimeoutError(path)

    def stands(self, status: int) -> bool:
        """Whether a refusal is the last word; who was signed out signs in again."""
        self.notebook.count(f"person: {status}")
        if status in SIGNED_OUT:
            self.session.leave()
            return False
        return status < 500 and status != LATER


def _accepted(answer: httpx.Response) -> httpx.Response:
    """Pages answer a form with a redirect. Raises HTTPStatusError for a refusal."""
    if answer.status_code >= 400 or answer.headers.get("location", "") == "/sign-in/":
        raise httpx.HTTPStatusError(
            f"{answer.status_code}", request=answer.request, response=answer
        )
    return answer


def _worth_another(error: httpx.HTTPError) -> bool:
    if not isinstance(error, httpx.HTTPStatusError):
        return True
    answer = error.response
    lost_race = answer.status_code == 409 and '"conflict"' in answer.text
    return answer.status_code >= 500 or lost_race
