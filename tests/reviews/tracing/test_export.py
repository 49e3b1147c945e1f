"""What reaches an OTLP server: one of ours, which reads the published protocol."""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from pytest_django import Settings

from agents import keys
from hitl import tasks
from journal import sequencer
from reviews.executions import run
from reviews.models import Execution, Proposal, TraceExport
from reviews.outbound.trace_context import compute_span_id
from reviews.tracing import export
from tests.agents.conftest import Caller
from tests.conftest import Gate
from tests.factories import decide
from tests.loopback import LoopbackServer, serve_calls
from tests.reviews.outbound.test_trace_context import GIVEN, SPAN, TRACE

# The sequencer places only records of committed transactions.
pytestmark = pytest.mark.django_db(transaction=True)
NUMBERS = itertools.count()


class Collector(LoopbackServer):
    """Answers `status`, and keeps what it was sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status = 200
        self.sent: list[ExportTraceServiceRequest] = []
        self.bodies: list[bytes] = []

    @property
    def spans(self) -> dict[str, Span]:
        """By name, of all that was accepted."""
        return {
            span.name: span
            for sent in self.sent
            for resource in sent.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        }


class Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Content-Encoding"] == "gzip":
            body = gzip.decompress(body)
        assert (self.path, self.headers["X-Team"]) == ("/v1/traces", "payments")
        if self.server.status == 200:
            self.server.bodies.append(body)
            self.server.sent.append(ExportTraceServiceRequest.FromString(body))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Stay silent."""


@pytest.fixture
def collector(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Collector]:
    """A server that the export of this test knows; the export has begun."""
    server = Collector()
    url = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=payments")
    endpoint = {"otel_exporter_otlp_endpoint": url}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=endpoint)
    export._build_exporter.cache_clear()
    with serve_calls(server):
        assert export_all() == 0
        yield server
        export._build_exporter.cache_clear()


def export_all() -> int:
    sequencer.sequence_records()
    return int(tasks.export_traces())


def propose(gate: Gate, traceparent: str = GIVEN, **fields: Any) -> Proposal:
    caller = Caller(keys.issue_key(agent=gate.agent, by=gate.owen), NUMBERS)
    said = caller.propose(traceparent=traceparent, **fields)
    assert said.status_code == 201, said.content
    return Proposal.objects.get(pk=said.json()["id"])


def test_an_executed_proposal_is_three_spans(gate: Gate, collector: Collector) -> None:
    proposal = propose(gate, customer="C-secret")
    decide(proposal.request, gate.rita)
    assert export_all() > 0
    assert collector.spans == {}, "it has not ended"
    run.run_execution(proposal.executions.get().pk)
    assert export_all() > 0
    spans, execution = collector.spans, Execution.objects.get()
    assert set(spans) == {"proposal pay", "approval", "execution pay"}
    assert {span.trace_id.hex() for span in spans.values()} == {TRACE}
    root = spans["proposal pay"]
    assert root.parent_span_id.hex() == SPAN
    below = {spans[name].parent_span_id for name in ("approval", "execution pay")}
    assert below == {root.span_id}
    assert spans["execution pay"].span_id.hex() == compute_span_id(execution.pk)
    events = [event.name for event in spans["approval"].events]
    assert events == ["request.opened", "request.authorized"]
    assert root.start_time_unix_nano <= spans["approval"].start_time_unix_nano
    assert root.end_time_unix_nano == spans["execution pay"].end_time_unix_nano
    assert spans["execution pay"].status.code == Status.STATUS_CODE_UNSET
    for secret in (b"C-secret", b"rita", b"Rita", gate.rita.public_id.encode()):
        assert secret not in collector.bodies[0]
    assert (export_all(), len(collector.sent)) == (0, 1), "nothing is sent twice"


def test_a_rejection_ends_it_and_the_others_are_left_out(
    gate: Gate, collector: Collector
) -> None:
    unsampled = GIVEN[:-1] + "0"
    rejected, others = propose(gate), [propose(gate, unsampled, amount="5.00")]
    others.append(propose(gate, amount="6.00"))
    for proposal in (rejected, others[0]):
        decide(proposal.request, gate.rita, "reject")
    export_all()
    assert set(collector.spans) == {"proposal pay", "approval"}
    ids = collector.spans["proposal pay"].attributes[0]
    assert ids.value.string_value == rejected.pk


def test_what_the_server_did_not_take_is_sent_again(
    gate: Gate, collector: Collector
) -> None:
    decide(propose(gate).request, gate.rita, "reject")
    collector.status = 400
    before = TraceExport.objects.get().through
    assert export_all() == 0
    assert TraceExport.objects.get().through == before
    collector.status = 200
    assert export_all() > 0
    assert len(collector.spans) == 2


def test_without_a_server_nothing_is_read(gate: Gate) -> None:
    decide(propose(gate).request, gate.rita, "reject")
    assert export_all() == 0
    assert not TraceExport.objects.exists()
