"""Several hosts on one machine: network namespaces around a switch that has no way out.

The data host holds PostgreSQL and Valkey, the others the product's processes; agents,
people and the outside world are on a host of their own, which this process moves to.
The machine's own network is not touched: a browser that is at work beside us would
take the change for an outage. Where the kernel does not permit namespaces, all of them
are this machine, told apart by their ports, and no host can be cut off."""

from __future__ import annotations

import ctypes
import itertools
import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from hitl.environment import LOOPBACK
from hitl.local.process import Program

DATA, OUTSIDE = "data", "outside"
_BITS = 24
_SUBNET = "10.213.7"  # seen by nobody else
_SPACES = Path("/run/netns")
_CLONE_NEWNET = 0x40000000  # linux/sched.h
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Host:
    """Where processes run: an address, and what stands before their commands."""

    name: str
    address: str = LOOPBACK
    prefix: tuple[str, ...] = ()


@dataclass
class Network:
    """The hosts by name, and the switch that they are at; none where there is none."""

    hosts: dict[str, Host] = field(default_factory=dict)
    switch: str = ""

    @property
    def real(self) -> bool:
        """Whether the hosts have a network of their own."""
        return bool(self.switch)

    @property
    def data(self) -> Host:
        return self.hosts[DATA]

    @property
    def outside(self) -> str:
        """The address of who is not the product: this process, too."""
        return self.hosts[OUTSIDE].address

    @property
    def apps(self) -> list[Host]:
        """The hosts of the product's own processes."""
        others = {DATA, OUTSIDE}
        return [host for name, host in self.hosts.items() if name not in others]

    @property
    def range(self) -> str:
        """All of its addresses, as PostgreSQL and the gate want to be told."""
        return f"{_SUBNET}.0/{_BITS}" if self.real else f"{LOOPBACK}/32"

    def cut(self, host: str) -> None:
        """Nothing reaches this host any more, and nothing leaves it."""
        _ip("-n", self.switch, "link", "set", host, "down")

    def mend(self, host: str) -> None:
        _ip("-n", self.switch, "link", "set", host, "up")


def build_network(apps: int, stack: ExitStack, *, alone: bool = False) -> Network:
    """The hosts, so many for the product, and this thread on the outside one; all as
    before when `stack` is closed. Call it before other threads are started: they go
    where their maker is. With `alone`, and where more is not permitted, all hosts are
    this machine."""
    names = [OUTSIDE, DATA, *(f"host-{number}" for number in range(apps))]
    if alone or not _permitted():
        return Network({name: Host(name) for name in names})
    mark = f"cs{os.getpid()}-{next(_numbers)}"
    network = Network(switch=_space(f"{mark}-switch", stack))
    _ip("-n", network.switch, "link", "add", "bridge", "type", "bridge")
    _ip("-n", network.switch, "link", "set", "bridge", "up")
    for place, name in enumerate(names):
        address = f"{_SUBNET}.{place + 1}"
        space = _space(f"{mark}-{name}", stack)
        network.hosts[name] = _connect(name, address, space, network.switch)
    stack.enter_context(_inside(f"{mark}-{OUTSIDE}"))
    return network


def _permitted() -> bool:
    """Root, on a kernel that lets root have namespaces, with the tools to make them."""
    if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("nsenter"):
        return False
    with ExitStack() as stack:
        try:
            _space(f"cs{os.getpid()}-probe", stack)
        except subprocess.CalledProcessError:
            return False
    return True


def _space(name: str, stack: ExitStack) -> str:
    _ip("netns", "add", name)
    stack.callback(_ip, "netns", "del", name)
    _ip("-n", name, "link", "set", "lo", "up")
    return name


def _connect(name: str, address: str, space: str, switch: str) -> Host:
    """A cable from the switch, where it has the host's name, to the host."""
    end = ("peer", "name", "eth0", "netns", space)
    _ip("-n", switch, "link", "add", name, "type", "veth", *end)
    _ip("-n", switch, "link", "set", name, "master", "bridge", "up")
    _ip("-n", space, "addr", "add", f"{address}/{_BITS}", "dev", "eth0")
    _ip("-n", space, "link", "set", "eth0", "up")
    return Host(name, address, ("nsenter", f"--net={_SPACES / space}"))


@contextmanager
def _inside(space: str) -> Iterator[None]:
    """This thread, and whom it starts, on that host."""
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    there = os.open(_SPACES / space, os.O_RDONLY)
    try:
        _move(there)
        yield
    finally:
        _move(before)
        os.close(there)
        os.close(before)


def _move(namespace: int) -> None:
    """setns(2). *Raises* OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, _CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def run_on_host(host: Host, program: Program, *more: str) -> Program:
    """The same on that host, with more arguments."""
    return replace(program, argv=[*host.prefix, *program.argv, *more])


def _ip(*args: str) -> None:
    """*Raises* CalledProcessError."""
    command: Sequence[str] = ("ip", *args)
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603
