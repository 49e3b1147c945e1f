"""T13: every file of the JSON test suite as a body, and as an argument of one."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reviews.models import Proposal
from tests.agents.conftest import Caller

HEAD, TAIL = b'{"thread":"t","tool":"look","args":{"q":', b"}}"
Shared = Callable[[str], Path]


def corpus(shared: Shared) -> list[tuple[str, str, bytes]]:
    entries = json.loads(shared("vectors/json_test_suite.json").read_text())
    return [(e["case"], e["expect"], base64.b64decode(e["base64"])) for e in entries]


@pytest.mark.proof
@pytest.mark.parametrize("inside", [False, True], ids=["as body", "as argument"])
def test_no_invalid_json_becomes_a_proposal(
    caller: Caller, shared: Shared, record_proof: Any, inside: bool
) -> None:
    seen: Counter[int] = Counter()
    wrong = []
    cases = corpus(shared)
    for number, (case, expect, raw) in enumerate(cases):
        body = HEAD + raw + TAIL if inside else raw
        response = caller.post("/proposals", body, **{"Idempotency-Key": f"j{number}"})
        seen[response.status_code] += 1
        refused = response.status_code in {400, 413, 422}
        if response.status_code >= 500 or (expect == "reject" and not refused):
            wrong.append((case, response.status_code))
    assert wrong == []
    assert len(cases) == 318
    assert Proposal.objects.count() == seen[201]
    where = "as an argument" if inside else "as the body"
    counts = ", ".join(f"{n} x {status}" for status, n in sorted(seen.items()))
    record_proof("T13", f"{len(cases)} files {where}: {counts}, 0 invalid accepted")


def test_duplicate_keys_are_refused(caller: Caller, shared: Shared) -> None:
    twice = [raw for case, _, raw in corpus(shared) if "duplicated_key" in case]
    assert twice
    for raw in twice:
        response = caller.post(
            "/proposals", HEAD + raw + TAIL, **{"Idempotency-Key": "k"}
        )
        assert response.status_code == 400
