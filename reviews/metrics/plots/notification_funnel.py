"""How long a notification, opening the request and deciding it take."""

from __future__ import annotations

from reviews.metrics.charts import Chart, Group, Plot, format_seconds
from reviews.metrics.measures import SEPARATOR, Measure, build_seconds_sql
from reviews.metrics.readings import Bins, Readings, Times
from reviews.metrics.series import list_time_cells

# Per person: their notice, the first time that they opened the request after it, and
# their first decision after that.
_STEPS = """
    FROM reviews_approvalrequest AS request
    JOIN reviews_notice AS notice ON notice.request_id = request.id
        AND notice.sent_at IS NOT NULL
    JOIN policies_person AS person ON person.id = notice.person_id
    LEFT JOIN LATERAL (
        SELECT min(record.at) AS at FROM journal_logrecord AS record
        WHERE record.proposal = request.proposal_id AND record.kind = 'lease.taken'
          AND record.actor_id = person.public_id AND record.at >= notice.sent_at
    ) AS opened ON true
    LEFT JOIN LATERAL (
        SELECT min(vote.at) AS at FROM reviews_decision AS vote
        WHERE vote.request_id = request.id AND vote.reviewer_id = person.id
          AND vote.at >= opened.at
    ) AS decided ON true
    WHERE request.settled_at >= %(start)s AND request.settled_at < %(end)s
"""


def _build_measure(name: str, interval: str) -> Measure:
    return Measure(
        name,
        f"""
        SELECT request.tool_name, request.risk,
               CASE WHEN notice.digest THEN 'digest' ELSE 'mail' END || chr(31)
                   || {build_seconds_sql(interval)}, 1
        {_STEPS}
        """,
    )


STEPS = {
    "Event to mail": _build_measure("notice_sent", "(notice.sent_at - notice.at)"),
    "Mail to opened": _build_measure("notice_opened", "(opened.at - notice.sent_at)"),
    "Opened to decided": _build_measure("notice_decided", "(decided.at - opened.at)"),
}
CHANNELS = {"mail": "Mail", "digest": "Digest mail"}


def build_chart(readings: Readings) -> Chart:
    """A table of medians: the steps are too different for one axis."""
    rows = []
    said = "Nobody was notified of a request that was settled in this period."
    for channel, label in CHANNELS.items():
        found = {
            title: _select_channel(readings.bins(measure), channel)
            for title, measure in STEPS.items()
        }
        sent, opened, decided = found.values()
        if not sent.total:
            continue
        rows += [(label, title, *list_time_cells(one)) for title, one in found.items()]
        if channel == "mail":
            said = (
                f"Of {sent.total:,} mails, {opened.total:,} led to the request being "
                f"opened and {decided.total:,} to a decision by the person. The "
                f"medians are {format_seconds(sent.median)} until the mail,"
                f" {format_seconds(opened.median)} until the page was opened, and"
                f" {format_seconds(decided.median)} until the decision."
            )
    return Chart(said, ("Channel", "Step", "Median", "p90", "Count"), rows)


def _select_channel(bins: Bins, channel: str) -> Times:
    prefix = f"{channel}{SEPARATOR}"
    return Times(
        {
            name.removeprefix(prefix): count
            for name, count in bins.items()
            if name.startswith(prefix)
        }
    )


PLOT = Plot(
    slug="notification-funnel",
    title="Notified, opened, decided",
    group=Group.TIMES,
    place=70,
    definition=(
        "For each mail about a request: the time from the event to the mail, from "
        "the mail until its reader claimed the request, and from then until the same "
        "person decided it. It counts on the day on which the request was settled. "
        "Most mails lead to no decision of their reader, because another person "
        "decides first."
    ),
    measures=list(STEPS.values()),
    build=build_chart,
)
