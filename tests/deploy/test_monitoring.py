"""The board, the alerts and the scrape for Prometheus: read by its own tool, and held
against the figures that a gate shows."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from tests.conftest import Gate
from tests.deploy.programs import DEPLOY, run
from tests.guards import ROOT

FOLDER = DEPLOY / "monitoring"
TOKEN = "a-token-of-prometheus-alone"
NAME = re.compile(r"\bcounterseal_\w+")
PARTS = re.compile(r"_(?:bucket|sum|count|total)$")


def test_prometheus_reads_the_files() -> None:
    run("promtool", "check", "rules", str(FOLDER / "alerts.yml"))
    config = str(FOLDER / "prometheus.yml")
    run("promtool", "check", "config", "--syntax-only", config)


def test_the_alerts_fire_when_they_should() -> None:
    run("promtool", "test", "rules", str(ROOT / "tests/deploy/alerts.yml"))


def list_rules() -> list[Any]:
    (group,) = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
    return list(group["rules"])


def list_queries() -> list[str]:
    board = json.loads((FOLDER / "grafana.json").read_text())
    panels = [
        target["expr"] for panel in board["panels"] for target in panel["targets"]
    ]
    return panels + [rule["expr"] for rule in list_rules()]


def test_every_figure_is_one_that_a_gate_shows(
    gate: Gate, client: Client, settings: Settings
) -> None:
    changed = settings.COUNTERSEAL.model_copy(update={"metrics_token": TOKEN})
    settings.COUNTERSEAL = changed
    answer = client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    shown = {f.name for f in text_string_to_metric_families(answer.content.decode())}
    named = {name for query in list_queries() for name in NAME.findall(query)}
    assert {PARTS.sub("", name) for name in named} <= shown


@pytest.mark.parametrize("rule", list_rules(), ids=lambda rule: rule["alert"])
def test_every_alert_says_where_to_read_on(rule: Any) -> None:
    page, _, anchor = rule["annotations"]["runbook"].partition("#")
    heads = re.findall(r"^#+ (.+)$", (ROOT / page).read_text(), re.M)
    anchors = {re.sub(r"[^\w -]", "", head).lower().replace(" ", "-") for head in heads}
    assert anchor in anchors
