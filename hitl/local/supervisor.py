"""The supervisor of `counterseal up`: keeps services running and stops them in order.

It has one thread and one loop. It restarts a child that ends, with a growing delay, and
reports this. If the supervisor itself is killed, its children end with it (process.py).
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FrameType

from . import process
from .layout import InstallationError
from .process import Child

BACKOFF_S = (0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
SETTLED_S = 60.0  # a child that ran this long did start; resets its back-off
POLL_S = 0.1

StartChild = Callable[[], Child]


class StartInterrupted(BaseException):
    """A stop signal arrived during the start."""


@dataclass
class SupervisedService:
    """One child and how to start it again. `stop_within` is its share, in seconds, of
    the five that a stop may take."""

    start: StartChild
    stop_within: float
    may_finish: bool = False  # exit code 0 is an end, not a failure
    child: Child = field(init=False)
    failures: int = 0
    began: float = 0.0
    again_at: float | None = None

    def run(self) -> None:
        self.child = self.start()
        self.began = time.monotonic()
        self.again_at = None


@dataclass
class Supervisor:
    """The running services, in the order they were started."""

    say: Callable[[str], None]
    services: dict[str, SupervisedService] = field(default_factory=dict)
    stop_asked: int = 0
    starting: bool = True

    def launch(self, name: str, service: SupervisedService) -> None:
        """Start a service and supervise it from now on.

        *Raises* InstallationError.
        """
        service.run()
        self.services[name] = service

    def listen_for_stop(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._ask)

    def keep(self) -> None:
        """Restart what ends, until a stop signal arrives."""
        self.starting = False
        while not self.stop_asked:
            for name, service in self.services.items():
                self._look_after(name, service)
            time.sleep(POLL_S)

    def stop(self, order: Sequence[Sequence[str]]) -> None:
        """Stop the groups one after the other and the services of a group together. A
        second Ctrl-C kills what is left."""
        self.starting = False
        for names in order:
            group = [self.services[name] for name in names if name in self.services]
            running = [service for service in group if service.again_at is None]
            asked = time.monotonic()
            for service in running:
                service.child.ask_to_stop()
            for service in running:
                self._stop_one(service, asked + service.stop_within)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        """Handle a stop signal; the second one kills all services."""
        self.stop_asked += 1
        if self.starting:
            raise StartInterrupted
        if self.stop_asked > 1:
            for service in self.services.values():
                process.kill_group(service.child.pid)

    def _stop_one(self, service: SupervisedService, until: float) -> None:
        if not service.child.end(within=max(0.0, until - time.monotonic())):
            self.say(f"{service.child.name} did not stop in time and was killed")

    def _look_after(self, name: str, service: SupervisedService) -> None:
        if service.again_at is not None:
            if time.monotonic() >= service.again_at:
                self._start_again(name, service)
            return
        code = service.child.exit_code()
        if code is None or (code == 0 and service.may_finish):
            return
        process.kill_group(service.child.pid)  # its children must not outlive it
        if time.monotonic() - service.began > SETTLED_S:
            service.failures = 0
        self._postpone(name, service, _describe_exit(code))

    def _start_again(self, name: str, service: SupervisedService) -> None:
        try:
            service.run()
        except InstallationError as fault:
            self._postpone(name, service, str(fault))
        else:
            self.say(f"{name} is running again")

    def _postpone(self, name: str, service: SupervisedService, why: str) -> None:
        delay = BACKOFF_S[min(service.failures, len(BACKOFF_S) - 1)]
        service.failures += 1
        service.again_at = time.monotonic() + delay
        self.say(f"{name} stopped ({why}): restarting it in {delay:g} s")


def _describe_exit(code: int) -> str:
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name
