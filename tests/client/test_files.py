from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from counterseal_client import AsyncGate, File
from counterseal_client.calls import HttpAnswer, HttpCall
from reviews.evidence import files
from reviews.evidence.formats import FORMATS
from reviews.models import ApprovalRequest, EvidenceFile
from tests.client.test_tools import LETTER, Desk
from tests.client.test_tools import desk as desk
from tests.reviews.evidence.hostile_files import build_png

ROWS = b"item,price\nlamp,12\n"


def test_a_file_knows_its_name_and_type(tmp_path: Path) -> None:
    path = tmp_path / "Shot.PNG"
    path.write_bytes(build_png())
    file = File(path, sensitive=True)
    assert (file.name, file.media_type, file.sensitive) == (
        "Shot.PNG",
        "image/png",
        True,
    )
    assert File(ROWS, name="a.csv").media_type in files.MEDIA_TYPES
    assert set(FORMATS) < set(files.MEDIA_TYPES)


@pytest.mark.parametrize("name", ["", "page.html", "picture.svg", "noending"])
def test_a_file_that_the_gate_does_not_show_is_refused_here(name: str) -> None:
    with pytest.raises(ValueError, match=r"pass a name that ends in one of \.png"):
        File(b"<svg/>", name=name)


@pytest.mark.servers
def test_a_tool_gives_its_calls_files_as_evidence(desk: Desk) -> None:
    def collect(to: str, text: str) -> list[File]:
        return [
            File(ROWS, name="prices.csv", source="shop"),
            File(build_png(), name=to),
        ]

    write = desk.build_writer(desk.gate, evidence=collect)
    given = {**LETTER, "to": "a.png"}
    first, again = (
        write.propose(given, thread="t", call_id="1", rationale="asked")
        for _ in range(2)
    )
    assert first.id == again.id  # the same call, with files sent twice
    items = ApprovalRequest.objects.get().sealed.revision.evidence
    assert [item["file"]["name"] for item in items] == ["prices.csv", "a.png"]
    assert items[0]["source"] == "shop"
    assert EvidenceFile.objects.count() == 2


@pytest.mark.servers
def test_a_proposal_takes_files_and_texts_in_one_order(desk: Desk) -> None:
    text = {"kind": "note", "text": "a lamp"}
    evidence: list[Mapping[str, Any] | File] = [
        text,
        File(ROWS, name="prices.csv", sensitive=True),
    ]
    proposal = desk.gate.propose("t", "write", LETTER, rationale="x", evidence=evidence)
    first, second = ApprovalRequest.objects.get().sealed.revision.evidence
    assert first["text"] == "a lamp"
    assert second["file"]["sensitive"]
    other = [File(build_png(), name="b.png")]
    desk.gate.revise(proposal.id, LETTER, rationale="x", evidence=other)
    (item,) = ApprovalRequest.objects.get().sealed.revision.evidence
    assert item["file"]["name"] == "b.png"


def test_both_gates_send_the_file_before_the_proposal() -> None:
    gate = AsyncGate("http://gate.example", "cs_key")
    flow = gate.operations.propose("t", "w", {}, evidence=[File(ROWS, name="a.csv")])
    upload = next(flow)
    assert isinstance(upload, HttpCall)
    assert (upload.url, upload.content) == ("http://gate.example/api/v1/evidence", ROWS)
    assert upload.headers["Content-Type"] == "text/csv"
    proposal = flow.send(HttpAnswer(201, {}, b"{}"))
    assert isinstance(proposal, HttpCall)
    assert proposal.url.endswith("/proposals")
    assert File(ROWS, name="a.csv").sha256.encode() in (proposal.content or b"")
