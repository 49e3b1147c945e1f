"""Which texts are a `traceparent`, and what is sent on."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from reviews.outbound import trace_context

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
GIVEN = f"00-{TRACE}-{SPAN}-01"


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (GIVEN, GIVEN),
        (f" {GIVEN} ", GIVEN),
        (f"00-{TRACE}-{SPAN}-00", f"00-{TRACE}-{SPAN}-00"),
        (f"cc-{TRACE}-{SPAN}-01-what-the-future-will-be", GIVEN),
        (f"00-{TRACE}-{SPAN}-01-more", None),
        (f"cc-{TRACE}-{SPAN}-01more", None),
        (f"ff-{TRACE}-{SPAN}-01", None),
        (f"00-{'0' * 32}-{SPAN}-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (GIVEN.upper(), None),
        (f"00-{TRACE}-{SPAN}", None),
        (f"{GIVEN}\r\nX-Evil: 1", None),
        ("", None),
    ],
)
def test_a_traceparent_is_parsed_as_the_specification_says(text, known):
    found = trace_context.parse_traceparent(text)
    assert (found and str(found)) == known


def test_what_is_caused_is_below_a_span_that_exists(settings: Settings) -> None:
    assert trace_context.build_trace_headers("", "x-1") == {}
    as_given = {"traceparent": GIVEN}
    assert trace_context.build_trace_headers(GIVEN, "x-1") == as_given
    exporting = {"otel_exporter_otlp_endpoint": "http://127.0.0.1:4318"}
    settings.COUNTERSEAL = settings.COUNTERSEAL.model_copy(update=exporting)
    own = f"00-{TRACE}-{trace_context.compute_span_id('x-1')}-01"
    assert trace_context.build_trace_headers(GIVEN, "x-1") == {"traceparent": own}
    unsampled = GIVEN[:-1] + "0"
    sent = trace_context.build_trace_headers(unsampled, "x-1")
    assert sent == {"traceparent": unsampled}
