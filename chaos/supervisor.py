"""Supervisors do what takes a session: second votes with a password, stops, answers to
unknown effects."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import httpx

from bench.seed import PASSWORD

from .generator import read_thread
from .ledger import Ledger
from .people import Desk, Found

UNKNOWN = re.compile(r"/unknown/(x-[a-z0-9]+)/")
SETTLED = 2  # of so many unknown effects one is settled


@dataclass
class Supervisor(Desk):
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
        """Half of what nobody knows is answered, as the service's own books say."""
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

    def _done(self, path: str, call: Callable[[str], httpx.Response]) -> bool:
        try:
            self.tried(path, call)
        except httpx.HTTPStatusError as error:
            return self.stands(error.response.status_code)
        return True
