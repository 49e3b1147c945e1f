"""How long a notification, opening the request and deciding it take, per channel."""

from __future__ import annotations

from ..charts import Bar, BarPanel, Chart, Group, Plot
from ..measures import Measure, build_seconds_sql
from ..readings import Readings, Times
from ..series import list_time_cells, split_bins

# Per notice: the first time that its reader opened the request after it, and their
# first decision after that. Anybody may be the reader of a notice to a place.
_STEPS = """
    FROM reviews_approvalrequest AS request
    JOIN reviews_notice AS notice ON notice.request_id = request.id
        AND notice.sent_at IS NOT NULL
    LEFT JOIN policies_person AS person ON person.id = notice.person_id
    LEFT JOIN LATERAL (
        SELECT min(record.at) AS at FROM journal_logrecord AS record
        WHERE record.proposal = request.proposal_id AND record.kind = 'hold.taken'
          AND (person.id IS NULL OR record.actor_id = person.public_id)
          AND record.at >= notice.sent_at
    ) AS opened ON true
    LEFT JOIN LATERAL (
        SELECT min(vote.at) AS at FROM reviews_decision AS vote
        WHERE vote.request_id = request.id
          AND (person.id IS NULL OR vote.reviewer_id = person.id)
          AND vote.at >= opened.at
    ) AS decided ON true
    WHERE request.settled_at >= %(start)s AND request.settled_at < %(end)s
"""


def _build_measure(name: str, interval: str) -> Measure:
    return Measure(
        name,
        f"""
        SELECT request.tool_name, request.risk,
               CASE WHEN notice.digest THEN 'digest'
                    WHEN notice.channel = 'email' THEN 'mail'
                    ELSE notice.channel END || chr(31)
                   || {build_seconds_sql(interval)}, 1
        {_STEPS}
        """,
    )


STEPS = {
    "Event to message": _build_measure("notice_sent", "(notice.sent_at - notice.at)"),
    "Message to opened": _build_measure(
        "notice_opened", "(opened.at - notice.sent_at)"
    ),
    "Opened to decided": _build_measure("notice_decided", "(decided.at - opened.at)"),
}
# A channel that is not listed here is shown by its own name.
CHANNELS = {
    "mail": "Mail",
    "digest": "Digest mail",
    "slack": "Slack",
    "chat": "Chat webhook",
    "sms": "Text message",
    "push": "Push",
    "webhook": "Webhook",
}


def build_chart(readings: Readings) -> Chart:
    """One bar a channel; the times are a table, because the steps are too different for
    one axis."""
    rows, bars, totals = [], [], [0, 0, 0]
    steps = [split_bins(readings.bins(measure)) for measure in STEPS.values()]
    used = set().union(*steps)
    for channel in [*filter(used.__contains__, CHANNELS), *sorted(used - {*CHANNELS})]:
        label = CHANNELS.get(channel, channel)
        times_of_steps = [Times(step[channel]) for step in steps]
        rows += [
            (label, title, *list_time_cells(times))
            for title, times in zip(STEPS, times_of_steps, strict=True)
        ]
        sent, opened, decided = (times.total for times in times_of_steps)
        bars.append(Bar(label, [decided, opened - decided, sent - opened]))
        counts = zip(totals, (sent, opened, decided), strict=True)
        totals = [total + count for total, count in counts]
    sentence = "Nobody was notified of a request that was settled in this period."
    if bars:
        sentence = (
            f"Of {totals[0]:,} messages, {totals[1]:,} led to the request being opened "
            f"and {totals[2]:,} to a decision."
        )
    return Chart(
        sentence,
        ("Channel", "Step", "Median", "p90", "Count"),
        rows,
        [BarPanel(["decided", "opened only", "not opened"], bars)] if bars else [],
        link_label="On call and drills",
        link="reviews:on_call",
    )


PLOTS = [
    Plot(
        slug="notification-funnel",
        title="Notified, claimed, decided",
        group=Group.TIMES,
        place=70,
        definition=(
            "For each message about a request, per channel: the time from the event to "
            "the message, from the message until its reader claimed the request, and "
            "from then until the same person first decided it, also if that was "
            "undone. Of a message to a place, such as a room of a chat, anybody may be "
            "the reader. It counts on the day on which the request was settled. Most "
            "messages lead to no decision of their reader, because another person "
            "decides first."
        ),
        measures=list(STEPS.values()),
        build=build_chart,
    ),
]
