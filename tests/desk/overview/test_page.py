"""The overview counts what it says, for those who may see it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agents import keys
from desk.overview.page import build_overview
from desk.overview.plot import build_plot
from hitl.health import probes
from journal import clock
from journal.errors import NotPermitted
from reviews import deadlines
from reviews.choices import Scope
from reviews.decisions.submission import PageEvidence
from reviews.models import Proposal
from reviews.stops import stops
from tests import factories
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import decide, propose
from tests.journal import history
from tests.markup import find_element, read_page, read_text
from tests.reviews.states import unknown


def test_each_figure_is_what_happened(gate: Gate) -> None:
    decided = propose(gate.agent, customer="C-1").request
    decide(decided, gate.rita)
    rejected = propose(gate.agent, customer="C-2").request
    decide(rejected, gate.rita, "reject", reason_code="unsafe")
    factories.overdue(propose(gate.agent, customer="C-3").request)
    deadlines.expire_chunk()
    waiting = propose(gate.agent, customer="C-4").request
    page = build_overview(gate.adam, clock.now())
    line = next(line for line in page.lines if line.count.pk == waiting.queue_id)
    assert (line.count.waiting, line.count.arrived) == (1, 4)
    assert (line.count.decided, line.count.expired) == (2, 1)
    assert line.outlook == "Grows by 2 an hour"
    assert str(gate.rita) in line.on_duty
    assert [row.id for row in page.expiring] == [waiting.pk]
    (own,) = page.deciders
    assert own.verdicts == ["1 approved unchanged", "1 rejected"]
    assert (own.count.decided, own.here) == (2, True)
    (line_of_agent,) = page.agents
    day = line_of_agent.day
    assert (day.proposed, day.refused, day.expired) == (4, 1, 1)
    assert page.plot.sentence == "In 12 hours 4 arrived, 2 were decided and 1 expired."


def test_a_vote_on_a_request_that_still_waits_is_not_counted(gate: Gate) -> None:
    request = propose(gate.agent, amount="600.00").request
    decide(request, gate.sue)
    request.refresh_from_db()
    assert request.status == "pending"
    assert not build_overview(gate.adam, clock.now()).deciders


def test_a_queue_where_requests_wait_and_nobody_is_on_duty_is_named(gate: Gate) -> None:
    request = propose(gate.agent).request
    page = build_overview(gate.adam, clock.now())
    assert page.unattended == [request.queue.title]


def test_an_administrator_reads_what_is_to_do(gate: Gate, as_: SignIn) -> None:
    part = build_overview(gate.adam, clock.now()).administration
    assert part is not None
    todo = {step.label for step in part.steps if not step.done}
    assert todo == {"An agent with a key", "A first decision"}
    keys.issue_key(agent=gate.agent, by=gate.adam)
    decide(propose(gate.agent).request, gate.rita)
    part = build_overview(gate.adam, clock.now()).administration
    assert part is not None
    assert not part.steps
    assert build_overview(gate.otto, clock.now()).administration is None


@pytest.mark.parametrize("who", ["rita", "owen"])
def test_it_is_not_for_everybody(gate: Gate, who: str) -> None:
    with pytest.raises(NotPermitted):
        build_overview(getattr(gate, who), clock.now())


def test_a_stopped_agent_has_the_problems_of_the_agents_list(
    gate: Gate, as_: SignIn
) -> None:
    effect = unknown(gate)
    for n in range(5):
        request = propose(gate.agent, customer=f"C-{n}").request
        decide(request, gate.rita, "reject", reason_code="unsafe")
    long_ago = clock.now() - timedelta(days=3)
    Proposal.objects.filter(pk=effect.proposal_id).update(created_at=long_ago)
    stops.create_stop(
        scope=Scope.AGENT, key=gate.agent.slug, person=gate.sue, reason="Look."
    )
    client = as_("sue")
    problems = ("1 with unknown result", "5 of 5 refused")
    shown = read_text(client.get("/overview/"), "agents")
    assert f"Stopped; {'; '.join(problems)}" in shown
    listed = read_text(client.get("/agents/"), "agents")
    assert all(problem in listed for problem in problems)
    for path in ("/overview/", "/agents/"):
        assert "as long as" in read_text(client.get(path))


def test_a_median_is_rounded_as_in_the_log(gate: Gate, as_: SignIn) -> None:
    took = PageEvidence(took_ms=4600)
    decide(propose(gate.agent).request, gate.rita, page=took)
    client = as_("adam")
    assert "5 s" in read_text(client.get("/overview/"), "deciders")
    assert "5 s" in read_text(client.get("/log/?kind=decision"))


def test_numbers_lead_to_what_they_count(gate: Gate, as_: SignIn) -> None:
    source = read_page(as_("adam").get("/overview/"))
    assert "/log/?flag=expired" in find_element(source, "tiles")
    queues = find_element(source, "queues")
    assert queues.count('href="/queues/') == queues.count('class="idle"') > 1
    assert 'href="/queues/' not in read_page(as_("sue").get("/overview/"))


def test_an_auditors_part_comes_first(gate: Gate, as_: SignIn) -> None:
    propose(gate.agent)
    history.place_records()
    page = build_overview(gate.otto, clock.now())
    assert page.audits
    client = as_("otto")
    source = read_page(client.get("/overview/"))
    assert source.index('data-testid="presets"') < source.index('data-testid="tiles"')
    assert f'href="/log/{page.head}/"' in source
    assert client.get(f"/log/{page.head}/").status_code == 200
    assert not build_overview(gate.adam, clock.now()).audits


def test_presets_are_for_auditors_and_open_changes_for_administrators(
    gate: Gate,
) -> None:
    assert build_overview(gate.otto, clock.now()).presets
    assert not build_overview(gate.sue, clock.now()).presets


def test_the_plot_fits_its_frame() -> None:
    plot = build_plot({(0, "arrived"): 10, (2, "expired"): 5}, 22, 3)
    assert [label.text for label in plot.labels] == ["22:00", "23:00", "0:00"]
    assert max(bar.x + bar.width for bar in plot.bars) <= 640
    assert min(bar.y for bar in plot.bars) == 10
    assert len(plot.rows) == 3


def test_the_health_of_the_servers_is_one_line(
    as_: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "log are in order" in as_("alma").get("/overview/").content.decode()
    monkeypatch.setattr(probes.known, "broker", "unreachable")
    text = as_("otto").get("/overview/").content.decode()
    assert "broker: unreachable." in text
    assert 'href="/health/"' in text
    assert 'href="/health/"' not in as_("sam").get("/overview/").content.decode()
