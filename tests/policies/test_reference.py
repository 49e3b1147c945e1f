"""The reference and the schema of the policy document are those of the models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema_rs import Draft202012Validator

from policies import reference
from policies.documents import Document, ToolDefinition

ROOT = Path(__file__).parents[2]
STEPS = "manage.py policy_reference --write"


def test_the_pages_in_docs_are_those_that_the_models_make() -> None:
    docs = ROOT / "docs"
    assert (docs / "policy-reference.md").read_text(
        "utf-8"
    ) == reference.render_page(), STEPS
    assert (docs / "policy.schema.json").read_text(
        "utf-8"
    ) == reference.render_schema(), STEPS


@pytest.mark.parametrize("file", ["demo/policy.yaml", "bench/policy.yaml"])
def test_a_shipped_policy_fits_the_schema(file: str) -> None:
    data: Any = yaml.safe_load((ROOT / file).read_text("utf-8"))
    schema = json.loads(reference.render_schema())
    wrong = Draft202012Validator(schema).iter_errors(
        json.loads(json.dumps(data).replace("${STORE_URL}", "http://store.example"))
    )
    assert [(error.instance_path, error.message) for error in wrong] == []


def test_a_typo_does_not_fit_the_schema() -> None:
    data = yaml.safe_load((ROOT / "demo/policy.yaml").read_text("utf-8"))
    data["tools"]["process_refund"]["presentr"] = "money"
    schema = json.loads(reference.render_schema())
    assert not Draft202012Validator(schema).is_valid(data)


def test_the_reference_names_every_key_and_what_it_was_asked_for() -> None:
    page = reference.render_page()
    for model in (Document, ToolDefinition):
        for name, field in model.model_fields.items():
            assert f"| `{field.alias or name}` |" in page
    for word in ("before", "keys", "preconditions", "labels", "dry_run", "free_form"):
        assert f"`{word}`" in page
    assert "| `uncertain` |" in page
