"""Riley's own function, which no policy declares."""

from __future__ import annotations

import json
from pathlib import Path

from counterseal_client import Gate
from demo.riley.credits import offer_credit
from tests.client.gate import KEY, running


def test_it_is_described_and_books_nothing_without_an_approval(tmp_path: Path) -> None:
    ledger = tmp_path / "credits.jsonl"
    with running() as server:
        server.answers["issue_credit"] = {"status": "rejected", "decision": None}
        with Gate(server.url, KEY) as gate:
            offer_credit(gate, ledger)
        sent = json.loads(server.calls[0][3])
    said = sent["tool_description"]
    assert said["text"].startswith("Issue a store credit")
    assert set(said["schema"]["properties"]) == set(sent["args"])
    assert not ledger.exists()
