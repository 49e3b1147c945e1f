"""The list of runs: all of them for people who read all, and an owner's own."""

from __future__ import annotations

import pytest

from agents import proposals
from agents.choices import ThreadResult
from desk.agents import runs
from desk.agents.run_summaries import find_result_icon
from policies.choices import Role
from reviews.choices import Scope, StopMode
from reviews.effects import describe
from reviews.stops import stops
from tests import factories
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.markup import find_element, read_page, read_text
from tests.reviews.states import unknown

pytestmark = pytest.mark.django_db
PAGE = "/runs/"


@pytest.fixture
def other(gate: Gate) -> None:
    """A second owner with an agent, and three runs."""
    olga = factories.person("olga", Role.OWNER)
    gate.people["olga"] = olga
    robin = factories.agent(olga, "robin")
    for agent, thread in ((gate.agent, "t-a"), (gate.agent, "t-b"), (robin, "t-c")):
        factories.propose(agent, thread=thread)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("sue", {"t-a", "t-b", "t-c"}),
        ("otto", {"t-a", "t-b", "t-c"}),
        ("owen", {"t-a", "t-b"}),
        ("olga", {"t-c"}),
    ],
)
def test_each_reads_the_runs_that_concern_them(
    gate: Gate, other: None, as_: SignIn, name: str, shown: set[str]
) -> None:
    page = read_page(as_(name).get(PAGE))
    assert {run for run in ("t-a", "t-b", "t-c") if run in page} == shown
    assert "t-a" not in read_page(as_(name).get(PAGE, {"agent": "robin"}))


def test_a_reviewer_is_refused(gate: Gate, other: None, as_: SignIn) -> None:
    assert as_("rita").get(PAGE).status_code == 403


def test_it_goes_on_page_by_page_and_says_what_is_paused(
    gate: Gate, other: None, as_: SignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "PAGE", 2)
    key = stops.build_thread_key("riley", "t-b")
    stops.create_stop(
        scope=Scope.THREAD, key=key, person=gate.sue, reason="odd", mode=StopMode.PAUSED
    )
    client = as_("sue")
    first = client.get(PAGE, {"state": "unfinished"})
    assert "Paused" in read_page(first)
    assert "t-a" not in read_page(first)
    rest = client.get(PAGE + first.context["page"].older_url)
    assert "t-a" in read_page(rest)
    assert "Older runs" not in read_page(rest)
    assert client.get(PAGE, {"before": "x" * 30}).status_code == 200


@pytest.mark.parametrize(
    ("result", "outcomes", "icon"),
    [
        ("completed", ["executed", "rejected"], "ok"),
        ("completed", ["executed", "unknown"], "warn"),
        ("completed", ["failed"], "warn"),
        ("gave_up", ["executed"], "void"),
        ("failed", [], "no"),
    ],
)
def test_the_icon_of_a_finished_run_is_of_its_end(
    result: str, outcomes: list[str], icon: str
) -> None:
    assert find_result_icon(result, outcomes) == icon


def test_a_row_reads_what_the_run_did_and_what_went_wrong(
    gate: Gate, as_: SignIn
) -> None:
    effect = unknown(gate)
    run = effect.proposal.thread
    proposals.finish_thread(agent=gate.agent, name=run, result=ThreadResult.COMPLETED)
    brief = describe.load_brief(effect.grant.revision)
    effect_words = describe.format_sentence(brief.effect)
    client = as_("sue")
    for path, testid in ((PAGE, "runs"), (f"/agents/{gate.agent.slug}/", "")):
        text = read_text(client.get(path), testid)
        assert "Completed 1 with unknown result" in text
        assert effect_words in text
    page = client.get(PAGE)
    (row,) = page.context["page"].runs
    assert row.icon == "warn"
    assert row.summary.counts == {"unknown": 1}
    assert find_element(read_page(page), "runs").count("<time") == 2
    run_page = client.get(f"/threads/{gate.agent.slug}/{run}/")
    assert run_page.context["page"].icon == "warn"
