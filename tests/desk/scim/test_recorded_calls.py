"""The calls that Okta and Microsoft Entra document, in their order and word for word,
and what each expects."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Gate
from tests.desk.scim.conftest import Call

pytestmark = pytest.mark.django_db
RECORDED = Path(__file__).parent / "recorded"
MEDIA_TYPE = "application/scim+json"
MISSING = object()


def fill(value: Any, kept: dict[str, str]) -> Any:
    """With the ids that earlier answers had in place of their names."""
    text = json.dumps(value)
    return json.loads(re.sub(r"\{\{(\w+)\}\}", lambda hit: kept[hit[1]], text))


def reach(body: Any, path: str) -> Any:
    for step in re.findall(r"\w+", path):
        try:
            body = body[int(step) if step.isdigit() else step]
        except (KeyError, IndexError):
            return MISSING
    return body


@pytest.mark.parametrize("provider", ["okta", "entra"])
def test_a_provider_gets_what_it_expects(gate: Gate, call: Call, provider: str) -> None:
    recorded = json.loads((RECORDED / f"{provider}.json").read_text())
    kept: dict[str, str] = {}
    for step in recorded["calls"]:
        wanted = fill({**step, "keep": {}}, kept)
        bearer = {"bearer": step["token"]} if "token" in step else {}
        answer = call(step["method"], wanted["path"], wanted.get("body"), **bearer)
        name = f"{step['name']}: {answer.content.decode()}"
        assert answer.status_code == step["status"], name
        if answer.status_code == 204:
            assert not answer.content
            continue
        assert answer["Content-Type"] == MEDIA_TYPE
        body = json.loads(answer.content)
        for path, value in wanted.get("has", {}).items():
            assert reach(body, path) == value, f"{path} of {name}"
        for path in step.get("filled", ()):
            assert reach(body, path) not in (MISSING, None, "", []), f"{path} of {name}"
        for path in step.get("missing", ()):
            assert reach(body, path) is MISSING, f"{path} of {name}"
        kept |= {key: reach(body, path) for key, path in step.get("keep", {}).items()}
