"""What a recount asks: plain queries over the gate's rows, for one tool, risk level and
period. Nothing here is shared with the measures: neither their SQL nor their days."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from stats.measures import Measure
from stats.readings import MetricFilters, load_readings
from tests.stats.generating import run_query

NOTICES = {
    "notice_sent": "n.sent_at - n.at",
    "notice_opened": "o.at - n.sent_at",
    "notice_decided": "d.at - o.at",
}
OTHER_CHANNELS = ("sms", "push", "slack", "chat", "webhook")
NOTICE = """
    SELECT extract(epoch FROM {interval}) AS s,
           CASE WHEN n.digest THEN 'digest' ELSE n.channel END AS c
    FROM reviews_notice n
    JOIN reviews_approvalrequest r ON r.id = n.request_id
    LEFT JOIN policies_person p ON p.id = n.person_id
    LEFT JOIN LATERAL (SELECT min(at) AS at FROM journal_logrecord WHERE
        kind = 'hold.taken' AND proposal = r.proposal_id AND at >= n.sent_at
        AND actor_id = coalesce(p.public_id, actor_id)) o ON true
    LEFT JOIN LATERAL (SELECT min(at) AS at FROM reviews_decision WHERE
        request_id = r.id AND reviewer_id = coalesce(p.id, reviewer_id)
        AND at >= o.at) d ON true
    WHERE {channel} AND r.settled_at >= :start AND r.settled_at < :end
      AND {interval} IS NOT NULL AND :of(r)
"""


class Period(NamedTuple):
    """The generated days, and what is asked of them."""

    filters: MetricFilters

    def fetch(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a recount; `:of` compares the tool and the risk level."""
        of = "(%(tool)s IN ('', {0}.tool_name) AND %(risk)s IN ('', {1}.risk))"
        text = sql.replace("%", "%%")
        for rows, risk in (("(p, v)", "v"), ("(r)", "r")):
            text = text.replace(f":of{rows}", of.format(rows[1], risk))
        text = text.replace(":start", "%(start)s::timestamptz")
        text = text.replace(":end", "%(end)s::timestamptz")
        text = text.replace(":sep", "chr(31)")
        start = datetime.combine(self.filters.first, time.min, UTC)
        return run_query(
            text,
            start=start,
            end=start + timedelta(days=len(self.filters.days)),
            tool=self.filters.tool,
            risk=self.filters.risk,
        )

    def bins(self, measure: Measure) -> dict[str, int]:
        """What the page reads."""
        return load_readings(self.filters, [measure]).bins(measure)

    def count_bins(self, sql: str) -> dict[str, int]:
        """How many rows of each bin; of two columns, the second comes first."""
        found: dict[str, int] = {}
        for row in self.fetch(sql):
            if row[0] is not None:
                name = "\x1f".join(reversed(row))
                found[name] = found.get(name, 0) + 1
        return found

    def percentiles(self, sql: str) -> list[int | None]:
        """The size, the median and the p90, in steps from 100 seconds on."""
        ((total, *found),) = self.fetch(
            "SELECT count(*), percentile_disc(0.5) WITHIN GROUP (ORDER BY s),"
            f" percentile_disc(0.9) WITHIN GROUP (ORDER BY s) FROM ({sql}) AS exact"
        )
        return [total, *(None if one is None else round_time(one) for one in found)]


def round_time(seconds: Decimal) -> int:
    """To the nearest step, halves up: an own rounding, on the digits."""
    scale = 1 if seconds < 100 else 10 ** (len(str(int(seconds))) - 2)
    lead = seconds / scale  # from 10 up to 100, but for short times
    step = 1 if scale == 1 or lead < 20 else 2 if lead < 50 else 5
    return int(lead / step + Decimal("0.5")) * step * scale
