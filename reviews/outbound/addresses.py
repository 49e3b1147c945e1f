"""The addresses that outgoing calls may reach: public HTTP services, and the private
networks that the settings name. Any other is refused before a socket is opened.

The rule is an allow-list where one exists (IPv6 global unicast, three kinds of port)
and the IANA special-purpose registries where none does (IPv4). Sources: RFC 6890 and
its registries, the Fetch standard's list of bad ports.
"""

from __future__ import annotations

import queue
import re
import socket
import threading
from collections.abc import Sequence
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

# Refuses characters that parsers read differently: spaces, control characters,
# non-ASCII (IDNA reads a full-width dot as a dot) and backslashes (some parsers read
# them as slashes).
_PLAIN = re.compile(r"[!-\[\]-~]+")
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"(?:{_LABEL}\.)*{_LABEL}\.?")
# A host whose last label is a number is refused: the C library reads 127.1, 2130706433
# and 0x7f.1 as addresses, by its own rules.
_NUMBER = re.compile(r"0x[0-9a-f]*|[0-9]+")

_GLOBAL_UNICAST = IPv6Network("2000::/3")
_SPECIAL = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",  # this network; Linux treats 0.0.0.0 as loopback
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT and the metadata services of some clouds
        "127.0.0.0/8",
        "168.63.129.16/32",  # Azure's host agent
        "169.254.0.0/16",  # link-local and the metadata services of most clouds
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
    """The call failed before any byte of the request was sent."""


class NotAllowed(NotSent):
    """The address is refused, so nothing was sent."""


@dataclass(frozen=True, slots=True)
class Target:
    """A parsed URL. Every later step uses these parts, so that no second parser can
    read the URL differently."""

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


def parse_url(url: str) -> Target:
    """Parse an http or https URL. Raises `NotAllowed` for any other text, and for a URL
    with a user name, a fragment, a forbidden port or an invalid host."""
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
    return Target(parts.scheme, _parse_host(parts), port, path + query)


def resolve_allowed(target: Target, *, networks: Networks, timeout: float) -> list[str]:
    """The addresses to which a connection may be pinned, from one look-up of the name.
    One forbidden address refuses the name: a name with both a public and a private
    address is either misconfigured or a DNS rebinding attack. `timeout` is in seconds.
    Raises `NotAllowed`, and `NotSent` when the name does not resolve."""
    answers = resolve_host(target, timeout=timeout)
    for answer in answers:
        if not is_allowed(answer, networks):
            raise NotAllowed(f"{target.host} is at {answer}, which is not public")
    return answers


def resolve_host(target: Target, *, timeout: float) -> list[str]:
    """All addresses of a host, without checking them. `timeout` is in seconds. Raises
    `NotSent` when there are none, or not in time."""
    literal = _parse_literal(target.host)
    answers = [target.host] if literal else _resolve_in_thread(target, timeout)
    if not answers:
        raise NotSent(f"{target.host} has no address")
    return answers


def is_allowed(answer: str, networks: Networks) -> bool:
    """Whether this address is public or inside one of the networks."""
    address = _parse_literal(answer)
    # guard: zone
    if address is None or "%" in answer:  # a zone names a local interface
        return False
    return _is_within(address, networks) or _is_public(address)


def is_literal(host: str) -> bool:
    """Whether this host is an IP address and not a name."""
    return _parse_literal(host) is not None


def look_up_host(host: str, port: int) -> list[str]:
    """The addresses of a host from the system's resolver. Raises OSError."""
    entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in entries))


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


def _parse_host(parts: SplitResult) -> str:
    host = (parts.hostname or "").lower()
    if _parse_literal(host):
        return host
    last = host.rstrip(".").rpartition(".")[2]
    if len(host) > 253 or not _NAME.fullmatch(host) or _NUMBER.fullmatch(last):
        raise NotAllowed("the host is neither a name nor a plain address")
    return host


def _parse_literal(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _is_within(address: Address, networks: Networks) -> bool:
    return any(address in n for n in networks if n.version == address.version)


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address) and address not in _GLOBAL_UNICAST:
        # The rest is loopback, link-local, private and multicast space, and every form
        # that carries an IPv4 address: mapped, compatible, NAT64.
        return False
    return not _is_within(address, _SPECIAL)


def _resolve_in_thread(target: Target, timeout: float) -> list[str]:
    """Resolve in a separate thread, because the C resolver has no timeout."""
    answer: queue.SimpleQueue[list[str] | OSError] = queue.SimpleQueue()

    def work() -> None:
        try:
            answer.put(look_up_host(target.host, target.port))
        except (OSError, UnicodeError) as error:
            answer.put(OSError(str(error)))

    threading.Thread(target=work, daemon=True, name="resolve").start()
    try:
        answers = answer.get(timeout=max(timeout, 0.001))
    except queue.Empty:
        raise NotSent(f"{target.host} did not resolve in time") from None
    if isinstance(answers, OSError):
        raise NotSent(f"{target.host} does not resolve")
    return answers
