"""Letters go to agents, and never to the gate's own database, broker or web."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_network
from typing import Any
from unittest import mock

import pytest

from reviews.outbound import addresses, own_ports, webhooks
from reviews.outbound.addresses import NotAllowed
from tests.reviews.service import Service

EVERYWHERE = [ip_network("0.0.0.0/0"), ip_network("::/0")]
NAMES = {
    "db.example": ["10.1.0.1"],
    "other.example": ["10.1.0.1"],
    "mine.example": ["127.0.0.1"],
    "agent.example": ["10.1.0.9"],
}
GATE = {
    "base_url": "https://gate.example",
    "allowed_hosts": ["inside.example"],
    "port": [8000, 8001],
    "database_url": "postgresql://u:p@db.example:15432,127.0.0.1:16432/x",
    "redis_url": "redis://10.1.0.2:16333/0",
    "callback_networks": EVERYWHERE,
}


def lookup(host: str, port: int) -> list[str]:
    return NAMES[host]


@pytest.fixture
def configure(settings: Any) -> Callable[..., None]:
    """The gate's own addresses; keywords are other ones."""

    def change(**fields: Any) -> None:
        update = {**GATE, **fields}
        settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=update)

    change()
    return change


def check(url: str) -> None:
    target = addresses.parse_url(url)
    own_ports.check_target(target, networks=EVERYWHERE)
    with mock.patch.object(addresses, "look_up_host", lookup):
        answers = addresses.resolve_host(target, timeout=5)
        own_ports.check_answers(target, answers, timeout=5)


@pytest.mark.parametrize(
    "url",
    [
        "https://gate.example/api/v1/proposals",
        "https://GATE.example.:443/",
        "https://inside.example/",
        "http://127.0.0.1:8000/",
        "http://127.0.0.1:8001/",
        "http://127.9.9.9:8000/",
        "http://[::1]:8000/",
        "http://[0:0:0:0:0:0:0:1]:8000/",
        "http://0.0.0.0:8000/",
        "http://mine.example:8000/",
        "http://127.0.0.1:16432/",
        "http://mine.example:16432/",
        "http://10.1.0.1:15432/",
        "http://db.example:15432/",
        "http://other.example:15432/",
        "http://10.1.0.2:16333/",
    ],
)
def test_the_gates_own_ports_are_refused(configure: Any, url: str) -> None:
    with pytest.raises(NotAllowed, match=r"gate's own|gate itself"):
        check(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://agent.example/hook",
        "http://agent.example:8000/",  # as the web, on a host that is not the gate's
        "http://10.1.0.1:8000/",
        "http://10.1.0.2:15432/",
        "http://db.example:9000/",
        "http://127.0.0.1:9000/",
    ],
)
def test_the_same_port_of_another_host_is_not(configure: Any, url: str) -> None:
    check(url)


def test_servers_on_sockets_of_this_machine_have_no_port(configure: Any) -> None:
    configure(
        database_url="postgresql:///x?host=/run/pg&port=15432",
        redis_url="unix:///run/valkey.sock",
    )
    with pytest.raises(NotAllowed):
        check("http://127.0.0.1:15432/")  # it may listen there, too
    check("http://10.1.0.2:16333/")


def test_a_letter_is_not_sent_to_the_web_of_the_gate(
    configure: Any, service: Service
) -> None:
    configure(port=[service.port])
    with pytest.raises(NotAllowed):
        webhooks.send_webhook_event(
            service.url, b"{}", message="m-1", secrets=[], timeout=5
        )
    assert service.connections == 0


def test_the_network_of_tools_is_not_open_to_letters(
    settings: Any, service: Service
) -> None:
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(
        update={"callback_networks": []}
    )
    with pytest.raises(NotAllowed, match="CALLBACK_NETWORKS"):
        webhooks.send_webhook_event(
            service.url, b"{}", message="m-1", secrets=[], timeout=5
        )
    assert service.connections == 0
    assert webhooks.post_signed_json(service.url, {}, timeout=5).status == 200


def test_an_address_with_a_zone_is_in_no_network() -> None:
    networks = [ip_network("fe80::/10")]
    assert addresses.is_allowed("fe80::1", networks)
    assert not addresses.is_allowed("fe80::1%lo", networks)


def test_a_name_at_an_own_port_is_no_push_endpoint(
    configure: Any, service: Service
) -> None:
    """Only the resolved address shows that it is this machine."""
    configure(port=[service.port])
    url = f"http://mine.example:{service.port}/"
    with (
        mock.patch.object(addresses, "look_up_host", lookup),
        pytest.raises(NotAllowed, match="the gate's own"),
    ):
        webhooks.post_body(url, b"", {}, timeout=5, foreign=True)
    assert service.connections == 0
