"""The statistics page and its CSV files."""

from __future__ import annotations

import csv

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from reviews import permissions
from reviews.roles import Permission
from stats.charts import Group

from ..components import frame
from ..components.frame import require_person
from ..log.exports import BYTE_ORDER_MARK, format_cell
from . import page as queries
from .page import StatisticsFilters


@require_safe
def statistics(request: HttpRequest, group: str = Group.OUTCOMES) -> HttpResponse:
    """The plots of one group, for a tool, a risk level and a period. The owner of
    agents, who sees no figures of the gate, is led to those of the agents."""
    person = require_person(request)
    sees = permissions.has_permission(person, Permission.SEE_STATISTICS)
    if not sees and person.agents.exists():
        return redirect("agents:own_statistics")
    page = queries.build_statistics_page(
        person,
        group,
        StatisticsFilters.read(request.GET),
        frame.get_frame(request).now,
    )
    return render(request, "desk/statistics/statistics.html", {"page": page})


@require_safe
def download_plot(request: HttpRequest, slug: str) -> HttpResponse:
    """The whole table of one plot as CSV; no cell can carry a formula."""
    chart = queries.load_plot_table(
        require_person(request),
        slug,
        StatisticsFilters.read(request.GET),
        frame.get_frame(request).now,
    )
    answer = HttpResponse(
        content_type="text/csv; charset=utf-8",
        headers={
            "Content-Disposition": f'attachment; filename="{slug}.csv"',
            "Cache-Control": "no-store",
        },
    )
    answer.write(BYTE_ORDER_MARK)
    writer = csv.writer(answer, lineterminator="\r\n")
    for row in (chart.columns, *chart.rows):
        writer.writerow(format_cell(cell) for cell in row)
    return answer
