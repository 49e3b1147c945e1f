"""A server of the official package with the gate's extension, called by the official
client, with a real gate."""

from __future__ import annotations

import pytest

from reviews.models import ApprovalRequest, Execution
from tests.client.mcp.conftest import NOTES, Bench, connect, text_of
from tests.stack import PATIENCE_S

pytestmark = pytest.mark.servers
NOTE = {"to": "ann", "text": "Your parcel is on its way."}
GATED = [*NOTES, "gated"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_tool_runs_with_the_approved_arguments(bench: Bench, mode: str) -> None:
    with connect(bench.start(*GATED), mode=mode) as caller:
        called = caller.begin("send_note", **NOTE)
        bench.await_request()
        assert not bench.notes
        bench.decide("modify", args={**NOTE, "to": "bob"})
        result = called.result(PATIENCE_S)
    assert result.structured_content == {"sent": "bob"}
    assert text_of(result).startswith("A reviewer changed this call.")
    assert [note["to"] for note in bench.notes] == ["bob"]
    assert bench.read_proposal().status == "executed"


def test_a_rejected_call_does_not_run(bench: Bench) -> None:
    with connect(bench.start(*GATED)) as caller:
        called = caller.begin("send_note", **NOTE)
        bench.decide("reject", reason="Ann moved.")
        result = called.result(PATIENCE_S)
    assert result.is_error
    assert "Ann moved." in text_of(result)
    assert not bench.notes


def test_a_pending_call_is_repeated(bench: Bench) -> None:
    bench.extra["WAIT"] = "0"
    with connect(bench.start(*GATED)) as caller:
        assert "waits for approval" in text_of(caller.call("send_note", **NOTE))
        bench.decide()
        result = caller.call("send_note", **NOTE)
    assert result.structured_content == {"sent": "ann"}
    assert len(bench.notes) == 1


def test_a_read_passes_and_a_failure_is_left_to_people(bench: Bench) -> None:
    with connect(bench.start(*GATED)) as caller:
        assert not caller.call("read_notes", to="ann").is_error
        assert not ApprovalRequest.objects.exists()
        called = caller.begin("fail_note", **NOTE)
        bench.decide()
        assert "Do not call it again" in text_of(called.result(PATIENCE_S))
    assert bench.read_proposal().status == "unknown"
    assert Execution.objects.count() == 2
