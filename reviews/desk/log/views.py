"""The log: the explorer, one record, and exports as jobs."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from reviews import permissions
from reviews.desk.components import frame, htmx
from reviews.desk.components.frame import person
from reviews.desk.forms import ViewForm
from reviews.desk.stop import revoke
from reviews.permissions import Permission

from . import exports as export_queries
from . import filters as log_queries
from . import pages

TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/jsonl"}


@require_safe
@htmx.varies
def log(request: HttpRequest) -> HttpResponse:
    """The audit log: every change as a sentence."""
    return shown(request, log_queries.Filters.read(request.GET))


def shown(
    request: HttpRequest, filters: log_queries.Filters, form: ViewForm | None = None
) -> HttpResponse:
    """Render the log with these filters, and a saved-view form that was refused."""
    page = pages.page(person(request), filters)
    template = htmx.part(request, "reviews/log.html", "log-table")
    context = {"page": page, "view_form": form}
    return render(request, template, context, status=422 if form else 200)


@require_safe
def log_record(request: HttpRequest, seq: int) -> HttpResponse:
    """One record by its number: its sentence, its codes and its exact bytes."""
    return _record(request, pages.numbered(person(request), seq))


@require_safe
def log_new(request: HttpRequest, pk: int) -> HttpResponse:
    """A record without a sequence number yet. It gets one within about a second; then
    this redirects to `log_record`."""
    record = pages.record(person(request), pk)
    if record.event.seq is not None:
        return redirect(record.event.url)
    return _record(request, record)


def _record(request: HttpRequest, record: pages.RecordPage) -> HttpResponse:
    who = person(request)
    url = revoke.url_for(who, record.decider) if record.decider else ""
    context = {"record": record, "revoke_url": url}
    return render(request, "reviews/log_record.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@htmx.varies
def exports(request: HttpRequest) -> HttpResponse:
    """The person's exports with their progress; POST requests another one."""
    permissions.check(person(request), Permission.EXPORT)
    if request.method == "POST":
        export_queries.ask(
            person=person(request),
            file_format=request.POST.get("format", ""),
            query=request.POST.get("query", "")[:1000],
        )
        return redirect("reviews:exports")
    lines = export_queries.of(person(request), now=frame.of(request).now)
    running = any(line.running for line in lines)
    template = htmx.part(request, "reviews/exports.html", "export-table")
    return render(request, template, {"lines": lines, "running": running})


@require_safe
def export_file(request: HttpRequest, pk: str) -> HttpResponseBase:
    """A finished export as a download, never shown in the browser."""
    permissions.check(person(request), Permission.EXPORT)
    export = export_queries.finished(person(request), pk)
    name = f"holdpoint-log-{export.asked_at:%Y%m%d-%H%M%S}.{export.format}"
    return StreamingHttpResponse(
        export_queries.body(export),
        content_type=TYPES[export.format],
        headers={
            "Content-Disposition": f'attachment; filename="{name}"',
            "Cache-Control": "no-store",
        },
    )
