"""Keeps webhook deliveries away from the gate's own ports: database, broker and web.

Agents choose the addresses of their endpoints, so a delivery never goes to one of these
ports, whatever networks the settings allow.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from urllib.parse import urlsplit

from django.conf import settings
from psycopg.conninfo import conninfo_to_dict

from . import addresses
from .addresses import NotAllowed, Target

REDIS_PORT, POSTGRES_PORT = 6379, "5432"
THIS_HOST = ""  # stands for this machine: a port that is bound here, or a Unix socket

HostPort = tuple[str, int]


def check_target(target: Target, *, networks: addresses.Networks) -> None:
    """Check an address as far as possible without resolving its name. Raises
    NotAllowed."""
    if (target.host.rstrip("."), target.port) in _list_public_names():
        raise NotAllowed("this is the gate itself")
    if addresses.is_literal(target.host):
        if not addresses.is_allowed(target.host, networks):
            raise NotAllowed(
                "this address is not public and is not in CALLBACK_NETWORKS"
            )
        _check_own_ports(target, [target.host], {})


def check_answers(target: Target, answers: Sequence[str], *, timeout: float) -> None:
    """Check the addresses (`answers`) to which the target's name was resolved.
    `timeout` is in seconds for each look-up. Raises NotAllowed, and NotSent where the
    name of one of the gate's own hosts does not resolve."""
    names = {
        host
        for host, port in _list_ports()
        if port == target.port and host != THIS_HOST and not addresses.is_literal(host)
    }
    known = {
        name: addresses.resolve_host(
            Target("http", name, target.port, "/"), timeout=timeout
        )
        for name in names
    }
    _check_own_ports(target, answers, known)


def _check_own_ports(
    target: Target, answers: Sequence[str], known: dict[str, list[str]]
) -> None:
    for host, port in _list_ports():
        if port != target.port:
            continue
        at = {_normalise_host(name) for name in known.get(host, [host])} - {THIS_HOST}
        here = host == THIS_HOST or any(map(_is_local_address, at))
        for answer in map(_normalise_host, answers):
            if answer not in at and not (here and _is_local_address(answer)):
                continue
            raise NotAllowed(f"port {port} there is one of the gate's own")


def _list_public_names() -> set[HostPort]:
    """The names and the port at which people reach the gate's pages. Only names are
    compared, because behind a proxy other services may share the address."""
    counterseal = settings.COUNTERSEAL
    parts = urlsplit(counterseal.base_url)
    port = parts.port or {"http": 80, "https": 443}[parts.scheme]
    names = [counterseal.hostname, *counterseal.allowed_hosts]
    return {(name.lower(), port) for name in names}


def _list_ports() -> Iterator[HostPort]:
    counterseal = settings.COUNTERSEAL
    yield from ((THIS_HOST, port) for port in counterseal.port)
    yield from _list_database_ports(counterseal.database_url)
    parts = urlsplit(counterseal.redis_url)
    if parts.scheme != "unix":
        yield parts.hostname or THIS_HOST, parts.port or REDIS_PORT


def _list_database_ports(url: str) -> Iterator[HostPort]:
    """The hosts and ports in a PostgreSQL URL. It may name several hosts, with one port
    for each or one for all."""
    options = conninfo_to_dict(url)
    hosts = str(options.get("hostaddr") or options.get("host") or "").split(",")
    ports = str(options.get("port") or POSTGRES_PORT).split(",")
    if len(ports) < len(hosts):
        ports = ports * len(hosts)
    for host, port in zip(hosts, ports, strict=False):
        on_socket = host.startswith(("/", "@"))
        yield (THIS_HOST if on_socket else host.lower()), int(port or POSTGRES_PORT)


def _normalise_host(host: str) -> str:
    try:
        return str(ip_address(host))
    except ValueError:
        return host


def _is_local_address(address: str) -> bool:
    """Whether this machine has the address; only its own addresses can be bound."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if parsed.is_loopback:
        return True
    family = socket.AF_INET6 if parsed.version == 6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True
