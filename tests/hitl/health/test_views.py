"""`/livez` and `/readyz`: who may ask them, what makes a process unready, and what only
degrades it."""

from __future__ import annotations

import pytest
from django.conf import settings as django_settings
from django.db import connection
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings
from structlog.testing import capture_logs

from hitl.health import probes
from journal import restore_epochs
from journal.statements import Statement
from reviews import standstills

BASE_URL = django_settings.COUNTERSEAL.base_url
PROBES = ["/livez", "/readyz"]


@pytest.fixture(autouse=True)
def _anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "known", probes.HealthState())
    # It would close the connection of the test's transaction.
    monkeypatch.setattr(probes, "close_old_connections", lambda: None)


@pytest.fixture
def production(settings: Settings) -> None:
    """The settings by which an installation answers to its own name alone, over TLS."""
    settings.ALLOWED_HOSTS = ["gate.example.com"]
    settings.SECURE_SSL_REDIRECT = True


def test_livez_asks_nobody(client: Client) -> None:
    assert client.get("/livez").json() == {"status": "ok"}


@pytest.mark.django_db
def test_readyz_names_each_check(client: Client) -> None:
    response = client.get("/readyz")
    names = ("status", "database", "disk", "broker", "effects", "sweeps", "log")
    assert response.json() == dict.fromkeys(names, "ok")
    assert "no-store" in response["Cache-Control"]


@pytest.mark.django_db
def test_it_is_ready_without_the_broker(client: Client, settings: Settings) -> None:
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(
        update={"redis_url": "redis://127.0.0.1:1/0"}
    )
    probes.update_health()
    response = client.get("/readyz")
    assert response.status_code == 200
    assert response.json()["status"] == "degraded"
    assert response.json()["broker"] == "unreachable"


@pytest.mark.django_db
def test_it_is_ready_without_workers(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = standstills.StandstillState(effects=50, sweeps=("hitl.tasks.tick",))
    monkeypatch.setattr(standstills, "known", late)
    response = client.get("/readyz")
    assert (response.status_code, response.json()["status"]) == (200, "degraded")
    assert response.json()["effects"] == "none was claimed for 50 s"
    assert response.json()["sweeps"] == "late: hitl.tasks.tick"


@pytest.mark.django_db
def test_it_is_not_ready_once_it_is_told_to_stop(client: Client) -> None:
    probes.mark_stopping()
    response = client.get("/readyz")
    assert (response.status_code, response.json()["status"]) == (503, "stopping")
    assert client.get("/livez").status_code == 200


@pytest.mark.django_db
def test_it_is_not_ready_while_migrations_are_not_applied(client: Client) -> None:
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'reviews'")
    response = client.get("/readyz")
    assert (response.status_code, response.json()["status"]) == (503, "unavailable")
    assert response.json()["database"] == "migrations are not applied"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("failing", "text"),
    [
        ("SELECT 1 / 0", "unreachable"),
        ("SELECT true", "is a standby, which takes no changes"),
    ],
)
def test_it_is_not_ready_without_a_database_that_takes_changes(
    client: Client, monkeypatch: pytest.MonkeyPatch, failing: str, text: str
) -> None:
    probes.known.migrated = True
    monkeypatch.setattr(probes, "_IN_RECOVERY", Statement(failing))
    monkeypatch.setattr(restore_epochs, "find_halt_reason", lambda: "")

    response = client.get("/readyz")
    assert (response.status_code, response.json()["database"]) == (503, text)


@pytest.mark.django_db
def test_it_takes_two_short_queries(
    client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    client.get("/readyz")
    with django_assert_max_num_queries(2):
        client.get("/readyz")


@pytest.mark.django_db
@pytest.mark.usefixtures("production")
@pytest.mark.parametrize("path", PROBES)
def test_a_process_answers_by_its_address_and_without_tls(
    client: Client, path: str
) -> None:
    answer = client.get(path, headers={"Host": "10.0.0.7:8000"})
    assert answer.status_code == 200
    assert client.get("/sign-in/", headers={"Host": "10.0.0.7:8000"}).status_code != 200


@pytest.mark.usefixtures("production")
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_who_asks_for_a_page_by_address_gets_one_line_and_leaves_no_error(
    client: Client, caplog: pytest.LogCaptureFixture, scheme: str
) -> None:
    with capture_logs() as lines:
        answer = client.get(
            "/", headers={"Host": "10.0.0.7:8000"}, secure=scheme == "https"
        )
    assert answer.status_code == 400
    assert f"This gate answers at {BASE_URL}." in answer.content.decode()
    assert [line["log_level"] for line in lines] == ["info"]
    assert not caplog.records


@pytest.mark.usefixtures("production")
def test_prometheus_reads_by_address_too(client: Client, settings: Settings) -> None:
    assert client.get("/metrics", headers={"Host": "10.0.0.7"}).status_code == 404


@pytest.mark.parametrize("path", PROBES)
def test_a_probe_is_only_read(client: Client, path: str) -> None:
    assert client.post(path).status_code == 405
