"""The export of traces over OTLP. It follows the log: of each proposal that ended since
the last run it exports the spans, and then notes how far it read.

An export that fails is repeated by the next run, and two runs at once may export the
same; a span has the same id each time.
"""

from __future__ import annotations

import os
from datetime import timedelta
from functools import cache

from django.db.models import Max
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace.export import SpanExportResult
from structlog.stdlib import get_logger

from journal import clock
from journal.models import LogPosition
from reviews import transitions
from reviews.choices import FINISHED, UNGRANTED
from reviews.models import Proposal, TraceExport

from .spans import build_spans

CHUNK = 1_000  # log records that are read at once
# What ended longer ago is left out: the export was off, or its server was down.
LATEST = timedelta(days=1)
END_KINDS = frozenset(
    edge.logged_as
    for machine, targets in (
        (transitions.request, UNGRANTED),
        (transitions.execution, FINISHED),
    )
    for edge in machine.edges
    if edge.target in targets
)

logger = get_logger(__name__)


def export_traces() -> int:
    """Export the spans of proposals that ended since the last run; return how many log
    records were read. The first run reads none: earlier proposals are not exported.
    Caller holds no transaction."""
    newest = LogPosition.objects.aggregate(seq=Max("seq"))["seq"]
    progress, _ = TraceExport.objects.get_or_create(
        pk=1, defaults={"through": -1 if newest is None else newest}
    )
    read = list(
        LogPosition.objects.filter(seq__gt=progress.through)
        .order_by("seq")
        .values_list("seq", "record__kind", "record__proposal", "record__at")[:CHUNK]
    )
    if not read:
        return 0
    oldest = clock.now() - LATEST
    ended = {
        proposal for _, kind, proposal, at in read if kind in END_KINDS and at > oldest
    }
    if not _export_proposals(ended):
        return 0
    # A run beside this one that read further keeps what it noted.
    last = read[-1][0]
    TraceExport.objects.filter(pk=1, through__lt=last).update(through=last)
    return len(read)


def _export_proposals(ids: set[str]) -> bool:
    """Whether the server has their spans now."""
    proposals = Proposal.objects.filter(pk__in=ids).exclude(traceparent="")
    spans = build_spans(list(proposals), _build_resource())
    if not spans or _build_exporter().export(spans) is SpanExportResult.SUCCESS:
        return True
    logger.warning("traces_not_exported", spans=len(spans))
    return False


@cache
def _build_exporter() -> OTLPSpanExporter:
    """OpenTelemetry's own variables say where, with which headers and how long."""
    return OTLPSpanExporter()


@cache
def _build_resource() -> Resource:
    named = "OTEL_SERVICE_NAME" in os.environ
    return Resource.create({} if named else {SERVICE_NAME: "counterseal"})
