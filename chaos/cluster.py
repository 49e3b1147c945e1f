"""What a run plays on: places for processes, hosts and addresses. What dies by itself
is started again, as a supervisor would."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hitl.local.layout import Layout
from hitl.local.process import Child, kill_group

from .network import DATA, Host, Network
from .options import Options
from .slots import Slot

AGAIN_S = 0.5  # after which the dead are started again
STEP_S = 0.02  # between two looks at everything
REST_S = 15.0  # more than the longest task and the longest wait


@dataclass
class Stage:
    """One installation and the world around it."""

    here: Layout
    options: Options
    network: Network
    ports: list[int]
    provider_port: int
    slots: dict[str, Slot] = field(default_factory=dict)

    @property
    def webs(self) -> list[Slot]:
        return [slot for slot in self.slots.values() if slot.name.startswith("web")]

    @property
    def workers(self) -> list[Slot]:
        return [slot for slot in self.slots.values() if slot.name.startswith("worker")]

    def host(self, number: int) -> Host:
        """Where the web process or worker of this number runs: hosts take turns."""
        return self.network.apps[number % len(self.network.apps)]

    @property
    def addresses(self) -> list[str]:
        """Of the web processes."""
        ports = enumerate(self.ports)
        return [f"http://{self.host(n).address}:{port}" for n, port in ports]

    @property
    def outside(self) -> str:
        """The address on which services of somebody else are reached."""
        return self.network.outside

    @property
    def provider(self) -> str:
        return f"http://{self.outside}:{self.provider_port}"

    @property
    def told(self) -> str:
        """What runs where, in a few words."""
        size = f"{len(self.ports)} web processes and {self.options.workers} workers"
        if not self.network.real:
            return f"{size} on one host, told apart by their ports"
        return f"{size} on {self.options.hosts} hosts, the servers on another"

    @property
    def ledger(self) -> Path:
        return self.here.state / "ledger.sqlite"

    @property
    def faults(self) -> Path:
        return self.here.state / "faults"

    @property
    def traces(self) -> Path:
        return self.here.state / "traces"

    def launch(self, name: str, start: Callable[[], Child], host: str = DATA) -> Slot:
        slot = Slot(name, start, host)
        slot.run()
        self.slots[name] = slot
        return slot

    def keep(self) -> list[str]:
        """Start again who died; their names. Call it often, from the main thread."""
        again = []
        for slot in self.slots.values():
            if slot.again_at is None and slot.child.exit_code() is not None:
                kill_group(slot.child.pid)
                slot.again_at = time.monotonic() + AGAIN_S
            elif slot.again_at is not None and time.monotonic() >= slot.again_at:
                slot.run()
                again.append(slot.name)
        return again

    def rest(self) -> None:
        """The product's processes come to their end: what is looked at stands still."""
        ours = [slot.child for slot in (*self.webs, *self.workers)]
        for child in ours:
            child.ask_to_stop()
        for child in ours:
            child.end(within=REST_S)

    def log(self, name: str) -> str:
        file = self.here.logs / f"{name}.log"
        return file.read_text(errors="replace") if file.exists() else ""

    def keep_logs(self, folder: Path, *, broken: bool) -> None:
        """What the processes said, where something did not hold; nothing is left there
        of an earlier run."""
        shutil.rmtree(folder, ignore_errors=True)
        if broken:
            shutil.copytree(self.here.logs, folder)
