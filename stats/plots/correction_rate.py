"""How often people reject or change what an agent proposes."""

from __future__ import annotations

from ..charts import Chart, Group, Plot
from ..readings import Readings
from ..series import build_daily_rate_chart, build_rate_maker, say_rate
from .outcome_mix import CORRECTED, DECIDED, OUTCOMES

make_rate = build_rate_maker(CORRECTED, DECIDED)


def build_chart(readings: Readings) -> Chart:
    """The share per day and per tool."""
    return build_daily_rate_chart(
        readings,
        OUTCOMES,
        make_rate,
        lambda rate: say_rate(
            rate,
            "People rejected or changed {} of the requests that they decided.",
            "People decided no request in this period.",
        ),
        label="rejected or changed",
    )


PLOT = Plot(
    slug="correction-rate",
    title="Correction rate",
    group=Group.OUTCOMES,
    place=20,
    definition=(
        "Rejected requests and requests that a person changed, divided by all requests "
        "that people decided; an approval that was undone decides nothing. A rise can "
        "mean weak proposals, a tool that is too broad, or a risk level that does not "
        "fit."
    ),
    measures=[OUTCOMES],
    build=build_chart,
    sliced=[OUTCOMES],
)
