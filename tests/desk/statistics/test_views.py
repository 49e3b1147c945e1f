"""The statistics page: who sees it, its filters, its drawings and its files."""

from __future__ import annotations

import codecs
import csv
import itertools
import re
from datetime import timedelta
from xml.etree import ElementTree

import pytest

from desk.components import svg
from desk.statistics.page import StatisticsFilters
from journal import clock
from reviews.models import MetricRollup
from stats import rollups
from stats.charts import (
    Bar,
    BarPanel,
    Dot,
    DotPanel,
    Group,
    Line,
    LinePanel,
    Panel,
    Point,
    Unit,
)
from stats.plots import list_plots
from stats.readings import Rate
from tests.conftest import Gate
from tests.desk.conftest import SignIn
from tests.factories import decide, propose

pytestmark = pytest.mark.django_db
SVG = re.compile(r"<svg class=\"plot\".*?</svg>", re.S)


@pytest.fixture
def counted(gate: Gate) -> None:
    """One payment approved, one rejected, and today's figures."""
    decide(propose(gate.agent, customer="C-1").request, gate.rita)
    decide(propose(gate.agent, customer="C-2").request, gate.rita, "reject")
    rollups.mark_changed_days(now=clock.now())
    assert rollups.compute_day(day=clock.now().date())


def read(as_: SignIn, path: str, who: str = "sue") -> str:
    answer = as_(who).get(path)
    assert answer.status_code == 200, path
    return answer.content.decode()


def test_supervisors_administrators_and_auditors_see_it(
    counted: None, as_: SignIn
) -> None:
    for who in ("sue", "adam", "otto"):
        assert ">Statistics<" in read(as_, "/statistics/", who)
    assert as_("owen").get("/statistics/")["Location"] == "/own-statistics/"
    assert as_("rita").get("/statistics/").status_code == 403
    for who in ("rita", "owen"):
        assert as_(who).get("/statistics/plots/outcome-mix/").status_code == 403
    assert as_("sue").get("/statistics/nothing/").status_code == 404
    assert as_("sue").get("/statistics/plots/nothing/").status_code == 404


def test_each_plot_is_a_sentence_a_drawing_and_a_table(
    counted: None, as_: SignIn
) -> None:
    sources = [read(as_, f"/statistics/{group}/") for group in Group]
    for plot in list_plots():
        assert sum(f'id="{plot.slug}"' in source for source in sources) == 1, plot.slug
    drawings = SVG.findall("".join(sources))
    assert len(drawings) > 4  # the lines of one day are dots, and not drawn
    for drawing in drawings:
        root = ElementTree.fromstring(drawing)
        named = {one.get("id"): one.text for one in root if one.get("id")}
        assert all(named[name] for name in root.get("aria-labelledby", "").split())
    said = "People rejected or changed 50 % (1 of 2, few) of the requests"
    assert said.replace("50 %", "50\N{NO-BREAK SPACE}%") in sources[0]
    assert "var(--bg)" in "".join(drawings), "few are drawn hollow"


def test_a_filter_says_which_tool_risk_and_period(counted: None, as_: SignIn) -> None:
    nothing = "People decided no request in this period."
    assert nothing not in read(as_, "/statistics/?tool=pay&risk=high&days=7")
    assert nothing in read(as_, "/statistics/?tool=pay&risk=low")
    assert nothing in read(as_, "/statistics/?tool=tag")
    assert StatisticsFilters.read({"risk": "odd", "days": "9999"}).query == ""


def test_one_day_leads_with_four_numbers_and_draws_no_single_dot(
    counted: None, as_: SignIn
) -> None:
    source = read(as_, "/statistics/")
    numbers = re.findall(r"<dd>\s*(\S[^<]*?)\s*<small>([^<]+)<", source)
    assert numbers[0] == ("2", "0 expired")
    assert numbers[1] == numbers[2] == ("1", "50 % of those decided")
    assert len(numbers) == 4
    assert source.index("numbers") < source.index('class="plots"')
    correction = source.partition('id="correction-rate"')[2].partition("</section>")[0]
    assert "<svg" not in correction
    assert "(1 of 2, few)" in correction, "the sentence stays"
    assert 'data-testid="numbers"' not in read(as_, "/statistics/times/")


def test_a_month_of_requests_begins_with_its_curves(counted: None, as_: SignIn) -> None:
    for row in MetricRollup.objects.filter(measure="outcomes"):
        for back in (1, 2):
            MetricRollup.objects.create(
                day=row.day - timedelta(days=back),
                measure=row.measure,
                tool=row.tool,
                risk=row.risk,
                bins=row.bins,
            )
    source = read(as_, "/statistics/")
    assert 'data-testid="numbers"' not in source
    correction = source.partition('id="correction-rate"')[2].partition("</section>")[0]
    assert "<svg" in correction


def test_how_one_person_works_is_for_supervisors(counted: None, as_: SignIn) -> None:
    said = "Only supervisors see figures of so few people."
    assert said not in read(as_, "/statistics/attention/")
    for who in ("adam", "otto"):
        assert read(as_, "/statistics/attention/", who).count(said) == 6
        file = as_(who).get("/statistics/plots/reviewer-load/")
        assert file.content.decode("utf-8-sig").strip() == ""


def test_what_is_withheld_says_what_too_few_people_did(
    counted: None, as_: SignIn
) -> None:
    MetricRollup.objects.filter(measure="canary_deciders").delete()
    MetricRollup.objects.filter(measure="deciders").update(measure="canary_deciders")
    source = read(as_, "/statistics/attention/", "adam")
    plot = source.partition('id="canary-catch"')[2].partition("</section>")[0]
    assert "Fewer than three people decided a canary here" in plot
    other = source.partition('id="decision-drift"')[2].partition("</section>")[0]
    assert "decided a canary" not in other


def test_one_band_of_a_session_is_not_compared_with_itself(
    counted: None, as_: SignIn
) -> None:
    source = read(as_, "/statistics/attention/")
    drift = source.partition('id="decision-drift"')[2].partition("</section>")[0]
    assert "There are too few others to compare." in drift
    assert drift.count("decisions 1 to 5") == 1


def test_a_file_has_the_table_and_no_formula(counted: None, as_: SignIn) -> None:
    MetricRollup.objects.filter(tool="pay").update(tool="=cmd|'/c calc'!A1")
    answer = as_("sue").get("/statistics/plots/outcome-mix/")
    assert answer["Content-Type"].startswith("text/csv")
    assert answer.content.startswith(codecs.BOM_UTF8)
    rows = list(csv.reader(answer.content.decode("utf-8-sig").splitlines()))
    assert rows[0][0] == "Tool"
    assert rows[1] == ["'=cmd|'/c calc'!A1", "1", "0", "0", "1", "0", "2"]


def test_an_axis_has_exact_values_and_counts_are_whole() -> None:
    def list_ticks(value: float, unit: Unit) -> list[str]:
        panel = LinePanel(["1 Nov"], [Line("", [Point(value, 99)])], unit)
        drawing = svg.draw_panel(panel, "plot", "Plot", "")
        return re.findall(r'text-anchor="end" fill="[^"]+">([^<]+)<', drawing)[:3]

    assert list_ticks(0.2, Unit.SHARE) == ["0 %", "12.5 %", "25 %"]
    assert list_ticks(1, Unit.COUNT) == ["0", "1", "2"]
    assert list_ticks(5, Unit.COUNT) == ["0", "3", "6"]
    assert list_ticks(9, Unit.COUNT) == ["0", "5", "10"]
    assert list_ticks(30, Unit.COUNT) == ["0", "20", "40"]


def test_the_label_of_a_goal_stays_within_its_drawing() -> None:
    dots = [Dot("one", Rate(30, 30))]
    for goal, anchor in ((0.9, "end"), (0.1, "start")):
        panel = DotPanel(dots, goal=goal)
        drawing = svg.draw_panel(panel, "plot", "Plot", "")
        assert re.search(rf'text-anchor="{anchor}"[^>]*>goal \d+ %<', drawing)


def _draw(panel: Panel) -> tuple[str, list[str]]:
    drawing = svg.draw_panel(panel, "plot", "Plot", "")
    lines = re.findall(
        r'<path d="([^"]*)" stroke="currentcolor"[^>]*dasharray', drawing
    )
    return drawing, lines


def test_no_line_joins_days_of_one_or_two_cases() -> None:
    points = [Point(share, total) for share, total in ((0, 1), (1, 2), (0.5, 3))]
    points += [Point(0.4, 30), Point(None, 0), Point(1, 1)]
    line = Line("rate", points)
    panel = LinePanel([str(n) for n in range(6)], [line], Unit.SHARE)
    drawing, (path, *_) = _draw(panel)
    assert (path.count("M"), path.count("L")) == (1, 1)
    assert drawing.count("h0") == 5 * 2 - 1, "each day has its dot, hollow ones two"
    counts = LinePanel(["1", "2"], [Line("n", points[:2])], Unit.COUNT)
    assert "L" in _draw(counts)[1][0]


def test_the_last_level_is_as_wide_as_the_others() -> None:
    line = Line("asked", [Point(n, n) for n in (1, 4, 2)])
    panel = LinePanel(["1 Nov", "2 Nov", "3 Nov"], [line], Unit.COUNT, steps=True)
    _, (path, *_) = _draw(panel)
    begins = [float(x) for x in re.findall(r"[MH]([\d.]+)", path)]
    widths = [round(end - begin) for begin, end in itertools.pairwise(begins)]
    assert len(widths) == 3
    assert len(set(widths)) == 1
    assert begins[-1] <= svg.WIDTH


def test_a_legend_keeps_its_distance_from_the_first_row() -> None:
    panel = BarPanel(["approved", "rejected"], [Bar("pay", [3, 2])])
    drawing, _ = _draw(panel)
    text = {t: float(y) for y, t in re.findall(r'y="([\d.]+)"[^>]*>([^<]+)<', drawing)}
    assert text["pay"] - text["approved"] >= svg.LABEL_HEIGHT + svg.LEGEND_GAP - 5
