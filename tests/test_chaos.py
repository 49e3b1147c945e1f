"""What `make chaos` rests on: the same seed is the same run, the checkers see what is
wrong, a recovery counts from the fault that hit it, the page says what was found."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from chaos import (
    effect_checker,
    generator,
    log_checker,
    recovery_times,
    report,
    run,
    services,
)
from chaos.agents import Driver
from chaos.claims import Claim
from chaos.figures import Figures
from chaos.history import Fault, Hold, Holds, Span
from chaos.nemesis import Nemesis
from chaos.options import BETWEEN, FAULT_KINDS, RETAIL, SHORT, Options
from chaos.services import Effect
from journal import clock, errors, log, sequencer
from policies import callables
from policies.documents import parse_document
from reviews.alarms import standing
from reviews.choices import AlarmKind
from reviews.executions import redeem, settle
from reviews.models import Execution
from reviews.tool_services import executors
from tests import worlds
from tests.conftest import Gate
from tests.factories import decide, propose
from tests.reviews import states
from world.database import Ledger

OPTIONS = Options(**SHORT, between=BETWEEN[True], seed=7, short=True)  # type: ignore[arg-type]


def test_the_same_seed_asks_the_same() -> None:
    first = generator.generate_operations(OPTIONS)
    assert generator.generate_operations(OPTIONS) == first
    assert len(first) == OPTIONS.requests
    assert {operation.kind for operation in first} == set(generator.OPERATION_KINDS)
    assert generator.read_thread(first[3].thread) == (3, first[3].kind)


def test_the_command_repeats_the_run() -> None:
    assert OPTIONS.command == "make chaos SHORT=1 ARGS='--seed 7'"
    retail = Options(**RETAIL, between=BETWEEN[False], seed=7, short=False, retail=True)  # type: ignore[arg-type]
    assert replace(retail, requests=9).command == (
        "make chaos RETAIL=1 ARGS='--seed 7 --requests 9'"
    )


@pytest.mark.parametrize(
    ("late", "left", "enough", "goes_on"),
    [
        (-1, 0, True, True),  # the time is not over
        (1, 0, True, False),
        (1, 1, True, True),  # a slow machine
        (1, 0, False, True),  # a kind of fault is missing
        (200, 1, False, False),  # it takes too long
    ],
)
def test_faults_go_on_until_all_was_asked_for(
    *, late: float, left: int, enough: bool, goes_on: bool
) -> None:
    began = time.monotonic() - OPTIONS.seconds - late
    driver = cast(Driver, SimpleNamespace(began=began, left=left))
    nemesis = cast(Nemesis, SimpleNamespace(enough=enough))
    assert run.build_load_condition(OPTIONS, driver, nemesis)() is goes_on


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "services.sqlite")


def effect(execution: Execution, **changes: str) -> Effect:
    return services.build_effect(
        "pay",
        {
            "idempotency_key": execution.idempotency_key,
            "execution": execution.pk,
            "fence": 1,
            "args": {**execution.grant.revision.args, **changes},
        },
    )


def check(ledger: Ledger) -> effect_checker.EffectFindings:
    findings = effect_checker.EffectFindings()
    findings.check_effects(ledger.load(Effect))
    return findings


def list_doubled(ledger: Ledger) -> list[str]:
    claims = check(ledger).doubled.values()
    return [failure for claim in claims for failure in claim.failures]


@pytest.mark.django_db
def test_the_checker_sees_what_happened_twice_or_not(
    gate: Gate, ledger: Ledger
) -> None:
    execution = states.succeeded(gate)
    assert check(ledger).lost.failures
    ledger.add(effect(execution))
    fine = check(ledger)
    assert (fine.lost.failures, fine.unauthorised.failures) == ([], [])
    assert list_doubled(ledger) == []
    ledger.add(effect(execution))
    assert list_doubled(ledger)


@pytest.mark.django_db
def test_what_happened_after_a_person_said_no_must_be_told_by_an_alarm(
    gate: Gate, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(services.CLASSES, "pay_opaque", "opaque")
    execution = states.unknown(gate)
    execution.refresh_from_db()
    late = execution.fence
    settle.settle_unknown(
        execution_id=execution.pk, person=gate.sue, happened=False, reason="no entry"
    )
    ledger.add(effect(execution))
    assert list_doubled(ledger)
    execution.refresh_from_db()
    with pytest.raises(errors.StaleFence):
        redeem.report_outcome(
            execution=execution,
            fence=late,
            action_hash=execution.grant.action_hash,
            outcome=executors.build_success({"sent": 1}),
            actor=log.SYSTEM,
        )
    assert (list_doubled(ledger), check(ledger).belied) == ([], 1)
    ledger.add(effect(execution))
    assert list_doubled(ledger)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kind", "verdict", "fine"),
    [("reject", "reject", True), ("reject", "approve", False), ("keyed", "reject", 0)],
)
def test_the_checker_sees_what_ended_as_nobody_asked(
    gate: Gate, kind: str, verdict: str, fine: bool
) -> None:
    request = propose(gate.agent, thread=f"c00001-{kind}").request
    decide(request, gate.rita, verdict)
    unasked = effect_checker.check_ends({}).unasked
    assert (unasked.n, not unasked.failures) == (1, bool(fine))


@pytest.mark.django_db
def test_the_checker_compares_what_agents_were_told(gate: Gate) -> None:
    request = propose(gate.agent, thread="c00001-reject").request
    decide(request, gate.rita, "reject")
    proposal = request.proposal_id
    for heard, fine in (("rejected", True), ("unknown", False), ("executed", False)):
        otherwise = effect_checker.check_ends({proposal: heard}).otherwise
        assert (otherwise.n, not otherwise.failures) == (1, fine)


@pytest.mark.django_db
def test_the_checker_sees_alarms_but_for_those_that_must_be() -> None:
    for kind, alarming in ((AlarmKind.LATE_REPORT, 0), (AlarmKind.TWICE, 1)):
        standing.raise_alarm(
            kind, subject="x-1", proposal=None, data={}, now=clock.now()
        )
        assert len(effect_checker.check_ends({}).alarming.failures) == alarming


@pytest.mark.django_db
def test_the_checker_sees_what_nobody_approved(gate: Gate, ledger: Ledger) -> None:
    ledger.add(effect(states.succeeded(gate), amount="41.00"))
    assert "other arguments" in check(ledger).unauthorised.failures[0]
    ledger.add(services.build_effect("pay", {"idempotency_key": "cs-nobody"}))
    assert "no execution" in check(ledger).unauthorised.failures[0]


@pytest.mark.django_db(transaction=True)
def test_the_replay_sees_a_status_that_nobody_wrote(gate: Gate) -> None:
    execution = states.succeeded(gate)
    while sequencer.sequence_records():
        pass
    fine = log_checker.check_log()
    assert [claim.failures for claim in fine.claims] == [[], [], []]
    assert fine.steps["execution"] == 3
    forge(execution)
    illegal = log_checker.check_log().illegal.failures
    assert any("failed" in failure for failure in illegal)


def forge(execution: Execution) -> None:
    from django.db import transaction

    with transaction.atomic():
        worlds.rewrite(Execution, execution.pk, status="failed")


def test_a_recovery_counts_from_the_last_fault_that_hit() -> None:
    span = Span("execution", "x-1", began=100.0, ended=120.0)
    holds = {"x-1": [Hold("worker-0", 101.0, pid=7)]}
    others = Fault("worker", 110.0, 110.0, "worker-1", slot="worker-1")
    own = Fault("worker", 105.0, 105.0, "worker-0", slot="worker-0")
    server = Fault("postgres", 111.0, 113.0, "postgres")
    assert seconds(span, [others], holds) is None
    assert seconds(span, [own, others], holds) == 15.0
    assert seconds(span, [own, server], holds) == 7.0
    assert seconds(span, [Fault("postgres", 90.0, 95.0)], holds) is None


def seconds(span: Span, faults: list[Fault], holds: Holds) -> float | None:
    recovery = recovery_times.find_recovery(span, faults, holds)
    return recovery.seconds if recovery else None


def build_figures(failures: int) -> Figures:
    return Figures(
        at="2026-11-21T07:00:00+00:00",
        command=OPTIONS.command,
        seed=7,
        short=True,
        cluster="two of each",
        seconds=90.0,
        loaded=75.0,
        requests=240,
        proposals=240,
        effects=200,
        records=2400,
        steps=1900,
        claims=[Claim("effects doubled", 240, ["<b>two</b> effects"] * failures)],
        faults=[{"kind": "pause", "at": 9.0, "until": 18.0, "target": "worker-0"}],
        kinds=dict.fromkeys(FAULT_KINDS, 2),
        outcomes={"succeeded": 200, "rejected": 40},
        classes={"keyed": {"succeeded, 1 effects": 200}},
        recoveries={
            what: {"n": 3, "p50": 1.0, "p99": 7.5, "most": 7.5}
            for what in ("execution", "call", "timer")
        },
        slow=[],
        recovered=[{"what": "execution", "at": 20.0, "seconds": 7.5, "kind": "pause"}],
        asked=[1.0, 2.0],
        ended=[3.0, 20.0],
        stale={"pauses": 1, "refused": 2, "accepted": 0},
        restarts=dict.fromkeys(("postgres", "web-0"), 2),
        services={"do succeeded": 200},
        counts=dict(Counter()),
        given_up=0,
        belied=0,
        left={},
        troubles=[],
    )


@pytest.mark.parametrize("failures", [0, 1])
def test_the_page_and_the_table_say_what_was_found(
    failures: int, tmp_path: Path
) -> None:
    figures, file = build_figures(failures), tmp_path / "report.html"
    report.write_page(figures, file)
    text = file.read_text()
    assert ("Broken" in text) == bool(failures)
    assert "<b>two" not in text  # whatever it is about, it is text
    assert figures.command.replace("'", "&#x27;") in text
    assert "http" not in text.replace("http_timeout", "")
    assert ("BROKEN" in report.format_table(figures)) == bool(failures)
    assert json.loads(figures.as_json())["held"] == (not failures)


def test_what_allows_some_says_so_instead_of_a_bound() -> None:
    assert Claim("", 400, [], "1 took longer, 4 may").bound == "1 took longer, 4 may"


def test_a_bound_is_three_by_n() -> None:
    assert Claim("", 10_000).bound == "at most 0.030 %"
    assert Claim("").bound == "nothing tried"


def test_rates_are_a_second() -> None:
    width, values = report.count_rates([0.5, 0.6, 5.0], 10.0)
    assert (width, values[0], sum(values) * width) == (1.0, 2.0, 3.0)


def test_its_policy_can_be_followed() -> None:
    document = parse_document(
        generator.build_policy("http://127.0.0.1:1"), further=callables.list_problems
    )
    assert document.tools["deploy"].executor.kind == "agent"
