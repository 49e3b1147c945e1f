"""Which addresses an outward call may reach: public HTTP services, and the private
networks the settings name. Everything else is refused before a socket is opened.

The rule is an allow-list where one exists (IPv6 global unicast, three kinds of port)
and the IANA special-purpose registries where it does not (IPv4). Sources: RFC 6890 and
its registries, the fetch standard's list of bad ports, proof.md 4.3.
"""

from __future__ import annotations

import queue
import re
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from urllib.parse import SplitResult, urlsplit

Address = IPv4Address | IPv6Address
Networks = Sequence[IPv4Network | IPv6Network]
Resolver = Callable[[str, int], Iterable[str]]

# One reading of an address only: no space, control, non-ASCII (a full-width dot is a
# dot to IDNA) or backslash (a slash to some parsers).
_PLAIN = re.compile(r"[!-\[\]-~]+")
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?:{_LABEL}\.)*{_LABEL}\.?")
# The last label of a name is never a number: 127.1, 2130706433 and 0x7f.1 are
# addresses to the C library, under rules nobody reviews.
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")

_GLOBAL_UNICAST = IPv6Network("2000::/3")
_SPECIAL = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",  # this network; 0.0.0.0 is loopback to Linux
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT, and some clouds' metadata
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure's host agent
        "169.254.0.0/16",  # link-local, and most clouds' metadata
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved and broadcast
        "2001::/23",  # protocol assignments, Teredo among them
        "2001:db8::/32",
        "2002::/16",  # 6to4 carries an IPv4 address inside
        "2620:4f:8000::/48",
        "3fff::/20",
    )
)
# Ports above 1023 on which something other than a web service is likely to listen.
_PORTS = """
    1080 1433 1434 1521 1719 1720 1723 2049 2181 2375 2376 2379 2380 3128 3306
    3389 3659 4045 4190 4369 5060 5061 5432 5433 5671 5672 5900 5984 6000 6379
    6380 6432 6566 6665 6666 6667 6668 6669 6679 6697 7000 7001 8500 9042 9092
    9200 9300 10080 10250 10255 11211 15672 16379 25565 26379 27017 27018 27019
"""
_OTHER_SERVICES = frozenset(int(port) for port in _PORTS.split())


class NotSent(Exception):
    """No connection was made: nothing left the building."""


class NotAllowed(NotSent):
    """The address is refused: nothing left the building."""


@dataclass(frozen=True, slots=True)
class Target:
    """An address, read once; every later step uses these parts and no other parser."""

    scheme: str
    host: str  # lower case; an IPv6 literal without brackets
    port: int
    path: str  # with the query

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        default = {"http": 80, "https": 443}[self.scheme]
        return host if self.port == default else f"{host}:{self.port}"


def parse(url: str) -> Target:
    """The parts of an http or https address. Raises `NotAllowed` for any other text."""
    if not _PLAIN.fullmatch(url):
        raise NotAllowed("the address has characters other than plain ASCII")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise NotAllowed("the address cannot be read") from None
    _check_form(parts)
    if port is None:
        port = 443 if parts.scheme == "https" else 80
    _check_port(port)
    path = parts.path or "/"
    query = f"?{parts.query}" if parts.query else ""
    return Target(parts.scheme, _host(parts), port, path + query)


def reach(
    target: Target, *, networks: Networks, resolve: Resolver, timeout: float
) -> list[str]:
    """The addresses a connection may be pinned to, after one look-up of the name.

    One forbidden answer refuses the name: a service that answers with a public and a
    private address is either broken or rebinding. `timeout` is in seconds. Raises
    `NotAllowed`, and `NotSent` when the name does not resolve.
    """
    found = answers(target, resolve=resolve, timeout=timeout)
    for answer in found:
        if not allowed(answer, networks):
            raise NotAllowed(f"{target.host} is at {answer}, which is not public")
    return found


def answers(target: Target, *, resolve: Resolver, timeout: float) -> list[str]:
    """The addresses of a host, whatever they are. Raises `NotSent` for none."""
    literal = _literal(target.host)
    found = [target.host] if literal else _ask(target, resolve, timeout)
    if not found:
        raise NotSent(f"{target.host} has no address")
    return found


def allowed(answer: str, networks: Networks) -> bool:
    """Is this one address public, or inside a network that the settings name?"""
    address = _literal(answer)
    if address is None or "%" in answer:  # a zone names a local interface
        return False
    return _within(address, networks) or _public(address)


def is_literal(host: str) -> bool:
    """Is this an address already, and no name to look up?"""
    return _literal(host) is not None


def lookup(host: str, port: int) -> list[str]:
    """The system's resolver."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _check_form(parts: SplitResult) -> None:
    if parts.scheme not in ("http", "https"):
        raise NotAllowed("only http and https addresses are called")
    if "@" in parts.netloc:
        raise NotAllowed("the address carries a user name")
    if parts.fragment:
        raise NotAllowed("the address carries a fragment")


def _check_port(port: int) -> None:
    web = port in (80, 443) or port >= 1024
    if not web or port in _OTHER_SERVICES:
        raise NotAllowed(f"port {port} is not one of a web service")


def _host(parts: SplitResult) -> str:
    host = (parts.hostname or "").lower()
    if _literal(host):
        return host
    last = host.rstrip(".").rpartition(".")[2]
    if len(host) > 253 or not _NAME.fullmatch(host) or _NUMBER.fullmatch(last):
        raise NotAllowed("the host is neither a name nor a plain address")
    return host


def _literal(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _within(address: Address, networks: Networks) -> bool:
    return any(address in n for n in networks if n.version == address.version)


def _public(address: Address) -> bool:
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        # Outside it lie loopback, link-local, private and multicast space, and every
        # form that carries an IPv4 address: mapped, compatible, NAT64.
        return False
    return not _within(address, _SPECIAL)


def _ask(target: Target, resolve: Resolver, timeout: float) -> list[str]:
    """The C resolver takes no time-out, so it answers from a thread of its own."""
    answer: queue.SimpleQueue[list[str] | OSError] = queue.SimpleQueue()

    def work() -> None:
        try:
            answer.put(list(resolve(target.host, target.port)))
        except (OSError, UnicodeError) as error:
            answer.put(OSError(str(error)))

    threading.Thread(target=work, daemon=True, name="resolve").start()
    try:
        found = answer.get(timeout=max(timeout, 0.001))
    except queue.Empty:
        raise NotSent(f"{target.host} did not resolve in time") from None
    if isinstance(found, OSError):
        raise NotSent(f"{target.host} does not resolve")
    return found
