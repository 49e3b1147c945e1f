"""The log in a terminal, by `counterseal log` and `counterseal log verify`."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.core.management import CommandError
from django.utils.dateparse import parse_datetime

from desk.log import terminal
from desk.log.filters import LogFilters
from journal import clock, sequencer
from tests import factories
from tests.agents.test_commands import run
from tests.conftest import Gate
from tests.factories import decide, propose


def test_records_are_lines_in_their_order(gate: Gate) -> None:
    request = propose(gate.agent).request
    decide(request, gate.rita, "reject", reason_code="unsafe")
    times = [line[:23] for line in run("read_log").splitlines()]
    assert times == sorted(times)
    last = run("read_log", kind="decision").splitlines()[-1]
    assert "UTC  not placed yet  Rita Example rejected" in last
    assert last.endswith(f"[{request.proposal.pk}]")


def test_it_is_narrowed_as_the_page_is(gate: Gate) -> None:
    first = propose(gate.agent).request
    second = propose(factories.agent(gate.owen, "other")).request
    decide(first, gate.rita)
    assert len(run("read_log", lines=1).splitlines()) == 1
    assert first.proposal.pk in run("read_log", request=first.pk)
    assert second.proposal.pk not in run("read_log", search=first.pk)
    assert "Rita" in run("read_log", actor="rita")
    assert run("read_log", agent="nobody") == ""
    assert run("read_log", since="1h") == run("read_log", "--since=1h") != ""
    assert run("read_log", since="2999-01-01") == ""
    with pytest.raises(CommandError, match="--since: write a duration such as 1h"):
        run("read_log", since="lately")


@pytest.mark.django_db
def test_a_duration_is_a_time_of_the_past() -> None:
    since = parse_datetime(terminal.parse_since("90s"))
    assert since is not None
    assert timedelta(seconds=80) < clock.now() - since < timedelta(seconds=100)
    with pytest.raises(ValueError, match="before the years"):
        terminal.parse_since("999999999d")


def test_hostile_text_cannot_act_on_the_terminal(gate: Gate) -> None:
    run("release_agent", "riley", "1\x1b[2J\u202e\n2", by="adam")
    printed = run("read_log", kind="agent")
    assert printed.replace("\n", "").isprintable()
    assert "\u202e" not in printed
    for line in run("read_log", json=True).splitlines():
        assert line.isascii()
        assert json.loads(line)["leaf"]


@pytest.mark.django_db(transaction=True)
def test_new_records_follow_in_the_order_of_the_log(gate: Gate) -> None:
    sequencer.sequence_records()
    rows = terminal.follow_records(LogFilters.read({"agent": "riley"}), 10)
    assert next(rows) == []
    proposal = propose(gate.agent)
    sequencer.sequence_records()
    new = next(rows)
    assert proposal.pk in {row.proposal for row in new}
    places = [row.position.seq for row in new]
    assert places == sorted(places)
    printed = "".join(terminal.format_records(new, as_json=False))
    assert "not placed yet" not in printed


@pytest.mark.django_db(transaction=True)
def test_the_whole_log_is_checked_against_a_noted_root(gate: Gate) -> None:
    propose(gate.agent)
    sequencer.sequence_records()
    noted = json.loads(run("verify_log", json=True))
    assert (noted["ok"], noted["faults"], noted["not_placed"]) == (True, [], 0)
    propose(gate.agent)
    sequencer.sequence_records()
    printed = run("verify_log", records=noted["records"], root=noted["root"].upper())
    assert f"The first {noted['records']} are those that were noted." in printed
    with pytest.raises(CommandError, match="together"):
        run("verify_log", records=3)
    with pytest.raises(SystemExit) as ended:
        run("verify_log", records=noted["records"] + 1, root=noted["root"])
    assert ended.value.code == 1
