"""Several hosts on one machine: network namespaces on a bridge that has no way out.

The data host holds PostgreSQL and Valkey, the others the product's processes; agents,
people and the outside world are on the bridge itself. Where the kernel does not permit
namespaces, all of them are this machine, told apart by their ports, and no host can be
cut off."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from hitl.environment import LOOPBACK
from hitl.local.process import Program

DATA = "data"
_BITS = 24
_TRIES = 20


@dataclass(frozen=True, slots=True)
class Host:
    """Where processes run: an address, and what stands before their commands."""

    name: str
    address: str = LOOPBACK
    prefix: tuple[str, ...] = ()


@dataclass
class Network:
    """The hosts by name, the ends of their cables, and the address of all others."""

    hosts: dict[str, Host]
    outside: str = LOOPBACK
    cables: dict[str, str] = field(default_factory=dict)

    @property
    def real(self) -> bool:
        """Whether the hosts have a network of their own."""
        return bool(self.cables)

    @property
    def data(self) -> Host:
        return self.hosts[DATA]

    @property
    def apps(self) -> list[Host]:
        """The hosts of the product's own processes."""
        return [host for host in self.hosts.values() if host.name != DATA]

    @property
    def range(self) -> str:
        """All of its addresses, as PostgreSQL and the gate want to be told."""
        if not self.real:
            return f"{LOOPBACK}/32"
        return f"{self.outside.rpartition('.')[0]}.0/{_BITS}"

    def cut(self, host: str) -> None:
        """Nothing reaches this host any more, and nothing leaves it."""
        _ip("link", "set", self.cables[host], "down")

    def mend(self, host: str) -> None:
        _ip("link", "set", self.cables[host], "up")


def build(apps: int, stack: ExitStack, *, alone: bool = False) -> Network:
    """A data host and so many for processes; taken down when `stack` is closed. With
    `alone`, and where more is not permitted, all of them are this machine."""
    names = [DATA, *(f"host-{number}" for number in range(apps))]
    if alone or not _permitted():
        return Network({name: Host(name) for name in names})
    bridge, subnet = _bridge(stack)
    network = Network({}, outside=f"{subnet}.1")
    for place, name in enumerate(names):
        address = f"{subnet}.{place + 2}"
        network.cables[name] = cable = f"{bridge}-{place}"
        network.hosts[name] = _host(name, address, cable, bridge, stack)
    return network


def on(host: Host, program: Program, *more: str) -> Program:
    """The same on that host, with more arguments."""
    return replace(program, argv=[*host.prefix, *program.argv, *more])


def _bridge(stack: ExitStack) -> tuple[str, str]:
    """The first of our names that is free, and its addresses but for the last part.
    What was taken down stays a moment longer in the kernel."""
    for number in range(os.getpid(), os.getpid() + _TRIES):
        bridge, subnet = f"hp{number}", f"10.{100 + number // 250 % 100}.{number % 250}"
        if _ip("link", "add", bridge, "type", "bridge", check=False):
            break
    stack.callback(_ip, "link", "del", bridge, check=False)
    _ip("addr", "add", f"{subnet}.1/{_BITS}", "dev", bridge)
    _ip("link", "set", bridge, "up")
    return bridge, subnet


def _permitted() -> bool:
    """Root, on a kernel that lets root have namespaces, with the tool to make them."""
    if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("nsenter"):
        return False
    probe = f"hp{os.getpid()}-probe"
    made = _ip("netns", "add", probe, check=False)
    _ip("netns", "del", probe, check=False)
    return made


def _host(name: str, address: str, cable: str, bridge: str, stack: ExitStack) -> Host:
    space = f"{bridge}-{name}"
    _ip("netns", "add", space)
    stack.callback(_ip, "netns", "del", space, check=False)
    stack.callback(_ip, "link", "del", cable, check=False)
    end = ("peer", "name", "eth0", "netns", space)
    _ip("link", "add", cable, "type", "veth", *end)
    _ip("link", "set", cable, "master", bridge, "up")
    _ip("-n", space, "addr", "add", f"{address}/{_BITS}", "dev", "eth0")
    _ip("-n", space, "link", "set", "eth0", "up")
    _ip("-n", space, "link", "set", "lo", "up")
    return Host(name, address, ("nsenter", f"--net=/run/netns/{space}"))


def _ip(*args: str, check: bool = True) -> bool:
    """Whether it was done. *Raises* CalledProcessError when it had to be."""
    command: Sequence[str] = ("ip", *args)
    done = subprocess.run(command, check=check, capture_output=not check)  # noqa: S603
    return done.returncode == 0
