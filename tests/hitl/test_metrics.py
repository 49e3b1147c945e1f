"""`/metrics`: who may read it, and that its figures are those of the rows."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from journal import clock, restore_epochs
from reviews import standstills
from reviews.models import ApprovalRequest
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews import states

TOKEN = "a-token-of-prometheus-alone"
LABELS = {"queue", "tool", "tier", "status", "kind", "quantile", "check", "state"}
LABELS |= {"method", "route", "group", "task", "le"}  # names from the code
Sample = tuple[str, tuple[tuple[str, str], ...]]


@pytest.fixture
def _token(settings: Settings) -> None:
    changed = settings.COUNTERSEAL.model_copy(update={"metrics_token": TOKEN})
    settings.COUNTERSEAL = changed


def read(client: Client, token: str = TOKEN) -> dict[Sample, float]:
    answer = client.get("/metrics", headers={"Authorization": f"Bearer {token}"})
    assert answer.status_code == 200
    families = text_string_to_metric_families(answer.content.decode())
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def test_without_a_token_of_ours_there_is_no_page(gate: Gate, client: Client) -> None:
    answer = client.get("/metrics", headers={"Authorization": "Bearer "})
    assert answer.status_code == 404


@pytest.mark.parametrize("header", ["", "Bearer ", "Bearer x", TOKEN, f"Basic {TOKEN}"])
@pytest.mark.usefixtures("_token")
def test_another_token_reads_nothing(gate: Gate, client: Client, header: str) -> None:
    answer = client.get("/metrics", headers={"Authorization": header})
    assert (answer.status_code, answer.content) == (401, b"")
    assert answer["WWW-Authenticate"] == "Bearer"


@pytest.mark.usefixtures("_token")
def test_nobody_who_is_signed_in_reads_it(gate: Gate, client: Client) -> None:
    client.force_login(gate.sue)
    assert client.get("/metrics").status_code == 401


@pytest.mark.usefixtures("_token")
def test_the_figures_are_those_of_the_rows(gate: Gate, client: Client) -> None:
    states.open_alarm(gate)
    old = propose(gate.agent, customer="C-1", thread="t-9").request
    opened = clock.now() - timedelta(minutes=5)
    ApprovalRequest.objects.filter(pk=old.pk).update(opened_at=opened)
    propose(gate.agent, customer="C-2")
    decide(propose(gate.agent, customer="C-3").request, gate.rita)
    decide(propose(gate.agent, customer="C-4").request, gate.rita, "reject")
    found = read(client)
    money = (("queue", "money"), ("tier", "approve"))
    assert found["counterseal_requests_pending", money] == 2
    assert 300 <= found["counterseal_requests_oldest_pending_seconds", money] < 400
    rejected = (("status", "rejected"), ("tool", "pay"))
    assert found["counterseal_requests_settled_last_hour", rejected] == 1
    half = (("quantile", "0.5"), *rejected)
    assert 0 <= found["counterseal_requests_settled_last_hour_seconds", half] < 60
    assert found["counterseal_executions", (("status", "queued"),)] >= 1
    assert sum(v for (name, _), v in found.items() if name == "counterseal_alarms_open")
    assert found["counterseal_outbox_messages_waiting", ()] > 0
    assert found["counterseal_deliveries_waiting", ()] == 0
    assert found["counterseal_restore_unconfirmed", ()] == 0


@pytest.mark.usefixtures("_token")
def test_an_empty_gate_has_figures(gate: Gate, client: Client) -> None:
    found = read(client)
    assert found["counterseal_executions", (("status", "unknown"),)] == 0
    assert found["counterseal_sweeps_late", ()] == 0


@pytest.mark.usefixtures("_token")
def test_what_stands_still_is_a_figure(
    gate: Gate, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(standstills.known, "effects", 130.0)
    monkeypatch.setattr(standstills.known, "sweeps", ("hitl.tasks.expire_due",))
    monkeypatch.setattr(restore_epochs, "find_halt_reason", lambda: "behind")
    found = read(client)
    assert found["counterseal_effects_standstill_seconds", ()] == 130
    assert found["counterseal_sweeps_late", ()] == 1
    assert found["counterseal_restore_unconfirmed", ()] == 1


@pytest.mark.usefixtures("_token")
def test_nobody_is_named(gate: Gate, client: Client) -> None:
    request = propose(gate.agent).request
    decide(request, gate.rita, "reject")
    names = {
        value
        for _, labels in read(client)
        for name, value in labels
        if name not in LABELS
    }
    assert not names
    answer = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    for word in (request.pk, "riley", "t-1", gate.rita.public_id, "rita"):
        assert word not in answer.content.decode()
