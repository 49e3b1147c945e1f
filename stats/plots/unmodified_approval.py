"""How often people approve without a change, per tool and risk level."""

from __future__ import annotations

from ..charts import POLICY_LINK, Chart, Dot, DotPanel, Group, Plot, format_rate
from ..readings import Readings
from ..series import build_rate_maker, list_rate_cells, say_rate
from .outcome_mix import DECIDED, OUTCOMES, UNMODIFIED

LEAST, MOST = 0.5, 0.95  # the thresholds of a policy's usual alerts
BAND_LABEL = "expected: 50 to 95 %"
make_rate = build_rate_maker(UNMODIFIED, DECIDED)


def build_chart(readings: Readings) -> Chart:
    """A dot a tool and risk level, with its interval, over the expected range."""
    rates = {
        key: make_rate(bins)
        for key, bins in readings.by_tool_and_risk(OUTCOMES).items()
    }
    decided = {key: rate for key, rate in rates.items() if rate.total}
    dots = [Dot(f"{tool}, {risk}", rate) for (tool, risk), rate in decided.items()]
    said = say_rate(
        make_rate(readings.bins(OUTCOMES)),
        "People approved {} of the requests that they decided without a change.",
        "People decided no request in this period.",
    )
    high = [
        dot for dot in dots if dot.rate.total >= 200 and (dot.rate.share or 0) > MOST
    ]
    low = [dot for dot in dots if not dot.rate.few and (dot.rate.share or 0) < LEAST]
    for one in high:
        said += f" {one.label}: {format_rate(one.rate)}; its rule may be too broad."
    for one in low:
        said += f" {one.label}: {format_rate(one.rate)}; look at the agent's proposals."
    return Chart(
        said,
        ("Tool", "Risk level", "Rate", "Count", "Of", "95 % interval"),
        [
            (tool, str(risk), *list_rate_cells(rate), _format_interval(rate.interval))
            for (tool, risk), rate in decided.items()
        ],
        [DotPanel(dots, band=(LEAST, MOST), band_label=BAND_LABEL)] if dots else [],
        link_label="Policy",
        link=POLICY_LINK,
    )


def _format_interval(interval: tuple[float, float] | None) -> str:
    if interval is None:
        return "none"
    low, high = interval
    return f"{low * 100:.1f} to {high * 100:.1f} %"


PLOT = Plot(
    slug="unmodified-approval",
    title="Approved without a change",
    group=Group.OUTCOMES,
    place=40,
    definition=(
        "Requests that people approved without changing an argument, divided by all "
        "requests that they decided, with the 95 % interval (Wilson). An approval that "
        "was undone is not counted. Above 95 % over 200 requests, the rule may be too "
        "broad, or people approve without looking. Below 50 %, the agent's proposals "
        "are the problem. A sudden rise after a change of the agent deserves a look."
    ),
    measures=[OUTCOMES],
    build=build_chart,
    sliced=[OUTCOMES],
)
