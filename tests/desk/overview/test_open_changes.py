"""Whatever two administrators decide is on the overview while it waits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agents.models import Agent
from agents.registry import AgentChange
from assurance import library
from desk.overview.open_changes import list_open_changes
from journal import clock
from journal.models import LogPeriod
from policies import versions
from policies.choices import Risk, Role
from reviews.administration import authority, provisioning_tokens
from reviews.choices import DefectKind, Scope, StopMode
from reviews.stops import stops
from tests import factories
from tests.agents import loosening
from tests.assurance.datasets import asking
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import propose
from tests.markup import read_text
from tests.reviews.states import proposed_repair


@pytest.fixture
def asked(gate: Gate) -> dict[str, str]:
    """One of each kind that Adam, or somebody else, asked for: its subject, and where
    it is answered."""
    document = {**factories.document_of_tests(), "currency": "EUR"}
    draft = versions.save_draft(text_or_mapping=document, author=gate.adam)
    wanted = replace(authority.load_authority(gate.tom), role=Role.SUPERVISOR)
    authority.change_authority(
        person=gate.tom, wanted=wanted, reason="Grows.", by=gate.adam
    )
    kind = next(iter(DefectKind))
    library.propose_change(person=gate.adam, kind=kind, weight=3, reason="Rare.")
    factories.decide(propose(gate.agent).request, gate.rita)
    asking.ask(gate)
    provisioning_tokens.make_token(reason="The provider.", by=gate.adam)
    stop = stops.create_stop(
        scope=Scope.EVERYTHING,
        key="",
        mode=StopMode.STOPPED,
        reason="Look first.",
        person=gate.alma,
    )
    stops.lift_stop(stop_id=stop.pk, person=gate.adam, reason="All is well.")
    period = LogPeriod.objects.latest("number")
    LogPeriod.objects.filter(pk=period.pk).update(
        asked_by=gate.adam.public_id, archive_file="period.jsonl.gz"
    )
    Agent.objects.update(risk_ceiling=Risk.LOW)
    loosening.ask(gate, AgentChange(risk_ceiling=Risk.HIGH))
    return {
        f"Version {draft.number} of the policy": f"/policies/{draft.number}/",
        f"Agent {gate.agent.name}": "/agents/riley/",
        str(gate.tom): f"/people/{gate.tom.public_id}/",
        "Planted defect": f"/assurance/defects/{kind}/",
        "Dataset": "/assurance/datasets/",
        "Provisioning": "/people/provisioning/",
        "Stop": "/stop/",
        f"Period {period.number} of the log": "/log/",
    }


def test_each_kind_is_listed_with_its_page(
    gate: Gate, as_: SignIn, asked: dict[str, str]
) -> None:
    lines = list_open_changes(gate.alma, clock.now())
    assert len(lines) == len(asked)
    for subject, url in asked.items():
        (line,) = [one for one in lines if one.subject.startswith(subject)]
        assert line.url == url
        assert line.by == gate.adam, subject
    client = as_("alma")
    shown = read_text(client.get("/overview/"), "changes")
    assert all(subject in shown for subject in asked)
    assert shown.count("by Adam Example") == len(asked)
    assert "A change waits" in read_text(client.get("/agents/"), "agents")
    assert all(client.get(line.url).status_code == 200 for line in lines)
    own = read_text(as_("adam").get("/overview/"), "changes")
    assert own.count("by you") == len(asked)
    assert not list_open_changes(gate.sue, clock.now())


def test_an_auditor_reads_no_kind_that_is_not_theirs(
    gate: Gate, asked: dict[str, str]
) -> None:
    lines = list_open_changes(gate.otto, clock.now())
    subjects = {line.subject.split(" “")[0] for line in lines}
    assert subjects == asked.keys() - {"Planted defect", "Dataset"}


def test_a_repair_that_a_supervisor_proposed_is_for_administrators(gate: Gate) -> None:
    repair = proposed_repair(gate)
    (line,) = list_open_changes(gate.adam, clock.now())
    assert line.url == f"/repairs/{repair.pk}/"
    assert line.by == gate.sue
    assert not list_open_changes(gate.otto, clock.now())
