"""Why people reject, per tool, rule and version of the agent."""

from __future__ import annotations

from collections import Counter

from reviews.choices import GIVEN_REASON_LABELS

from ..charts import POLICY_LINK, Bar, BarPanel, Chart, Group, Plot, format_rate
from ..measures import GIVEN, GIVEN_IN_DAY, SEPARATOR, Measure
from ..readings import Rate, Readings
from ..series import split_bins

# A version may have several rules: its rejection counts under each, and once in all.
REASONS = Measure(
    "rejection_reasons",
    f"""
    SELECT request.tool_name, request.risk, 'all' || chr(31) || decision.reason_code, 1
    FROM {GIVEN}
    WHERE {GIVEN_IN_DAY} AND decision.verdict = 'reject'
    UNION ALL
    SELECT request.tool_name, request.risk,
           concat_ws(chr(31), 'rule', decision.reason_code,
                     coalesce(rule.value ->> 'id', ''), revision.agent_version), 1
    FROM {GIVEN}
    JOIN reviews_requestversion AS version ON version.request_id = request.id
        AND version.number = decision.version
    JOIN reviews_revision AS revision ON revision.id = version.revision_id
    LEFT JOIN LATERAL jsonb_array_elements(version.rules) AS rule ON true
    WHERE {GIVEN_IN_DAY} AND decision.verdict = 'reject'
    """,  # noqa: S608 constants
)
MOST_ROWS = 100


def build_chart(readings: Readings) -> Chart:
    """One bar a reason, and a table of reason, tool, rule and version."""
    reasons = Counter(split_bins(readings.bins(REASONS))["all"])
    total = reasons.total()
    sentence = "Nobody rejected a request in this period."
    if total:
        code, count = reasons.most_common(1)[0]
        rate = format_rate(Rate(count, total))
        sentence = (
            f"The most frequent reason for a rejection is “{_label(code)}”: {rate}."
        )
    return Chart(
        sentence,
        ("Tool", "Reason", "Rule", "Agent's version", "Rejections"),
        _list_rows(readings),
        [
            BarPanel(
                ["rejections"],
                [Bar(_label(code), [n]) for code, n in reasons.most_common()],
            )
        ]
        if total
        else [],
        link_label="Policy",
        link=POLICY_LINK,
    )


def _list_rows(readings: Readings) -> list[tuple[str, str, str, str, int]]:
    rows = []
    for tool, bins in readings.by_tool(REASONS).items():
        for name, count in bins.items():
            kind, *parts = name.split(SEPARATOR)
            if kind == "rule":
                code, rule, version = (*parts, "", "")[:3]
                rows.append(
                    (tool, _label(code), rule or "none", version or "none", count)
                )
    rows.sort(key=lambda row: (-row[4], row))
    return rows[:MOST_ROWS]


def _label(code: str) -> str:
    return GIVEN_REASON_LABELS.get(code, "No reason")


PLOTS = [
    Plot(
        slug="rejection-reasons",
        title="Reasons for rejections",
        group=Group.OUTCOMES,
        place=50,
        definition=(
            "Rejections by the reason that the person chose, on the day of the "
            "decision; nothing undoes a rejection. The table has them per tool, rule "
            "of the policy and version of the agent: a reason that repeats under one "
            "rule is a case for another policy. A rejection under two rules stands in "
            "two rows of the table."
        ),
        measures=[REASONS],
        build=build_chart,
        sliced=[REASONS],
    ),
]
