"""The log: the explorer, one record, and exports as jobs."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from journal import archives
from reviews import permissions
from reviews.roles import Permission

from ..components import frame, htmx
from ..components.frame import require_person
from ..forms import SavedViewForm
from ..stop import revoke
from . import exports as export_queries
from . import filters as log_queries
from . import pages

CONTENT_TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl"}


@require_safe
@htmx.vary_on_htmx
def log(request: HttpRequest) -> HttpResponse:
    """The audit log: every change as a sentence."""
    return render_log_page(request, log_queries.LogFilters.read(request.GET))


def render_log_page(
    request: HttpRequest,
    filters: log_queries.LogFilters,
    form: SavedViewForm | None = None,
) -> HttpResponse:
    """Render the log with these filters, and a saved-view form that was refused."""
    page = pages.build_log_page(require_person(request), filters)
    template = htmx.choose_template(request, "desk/log/log.html", "log-table")
    context = {"page": page, "view_form": form}
    return render(request, template, context, status=422 if form else 200)


@require_safe
def log_record(request: HttpRequest, seq: int) -> HttpResponse:
    """One record by its number: its sentence, its codes and its exact bytes."""
    return _render_record(
        request, pages.load_record_by_number(require_person(request), seq)
    )


@require_safe
def log_new(request: HttpRequest, pk: int) -> HttpResponse:
    """A record without a sequence number yet. It gets one within about a second; then
    this redirects to `log_record`."""
    record = pages.load_record_by_id(require_person(request), pk)
    if record.event.seq is not None:
        return redirect(record.event.url)
    return _render_record(request, record)


def _render_record(request: HttpRequest, record: pages.RecordPage) -> HttpResponse:
    who = require_person(request)
    url = revoke.find_revoke_url(who, record.decider) if record.decider else ""
    context = {"record": record, "revoke_url": url}
    return render(request, "desk/log/log_record.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@htmx.vary_on_htmx
def exports(request: HttpRequest) -> HttpResponse:
    """The person's exports with their progress; POST requests another one."""
    permissions.check_permission(require_person(request), Permission.EXPORT)
    if request.method == "POST":
        export_queries.create_export(
            person=require_person(request),
            file_format=request.POST.get("format", ""),
            query=request.POST.get("query", "")[:1000],
        )
        return redirect("reviews:exports")
    lines = export_queries.list_exports(
        require_person(request), now=frame.get_frame(request).now
    )
    running = any(line.running for line in lines)
    template = htmx.choose_template(request, "desk/log/exports.html", "export-table")
    archived = archives.list_archived_parts()
    context = {"lines": lines, "running": running, "archived": archived}
    return render(request, template, context)


@require_safe
def export_file(request: HttpRequest, pk: str) -> HttpResponseBase:
    """A finished export as a download, never shown in the browser."""
    permissions.check_permission(require_person(request), Permission.EXPORT)
    export = export_queries.load_finished_export(require_person(request), pk)
    name = f"counterseal-log-{export.asked_at:%Y%m%d-%H%M%S}.{export.format}"
    return StreamingHttpResponse(
        export.parts.stream_bodies(),
        content_type=CONTENT_TYPES[export.format],
        headers={
            "Content-Disposition": f'attachment; filename="{name}"',
            "Cache-Control": "no-store",
        },
    )
