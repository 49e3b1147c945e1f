"""Each defect of the library fits some request, changes one thing of it and leaves
arguments that the tool accepts."""

from __future__ import annotations

from typing import Any

import pytest

from policies.documents import ToolDefinition
from reviews.assurance.defects import BY_KIND, LIBRARY, CloneSubject, list_plantable
from reviews.choices import DefectKind
from tests.reviews import definitions

TEXT = {"type": "string"}
LIST = {"type": "array", "items": TEXT}


def build_tool(presenter: str, args: dict[str, Any], money: bool) -> ToolDefinition:
    kinds = {
        name: LIST if isinstance(value, list) else {"type": ["string", "boolean"]}
        for name, value in args.items()
    }
    return definitions.tool(
        presenter=presenter,
        schema={"type": "object", "properties": kinds},
        money=[{"amount": "amount", "currency": "currency"}] if money else [],
    )


REQUESTS: dict[str, dict[str, Any]] = {
    "email": {
        "to": ["ann@example.com"],
        "bcc": [],
        "subject": "Your order",
        "body": "Hello",
    },
    "money": {
        "payee": "Ann",
        "account": "DE89370400440532013000",
        "amount": "40.00",
        "currency": "EUR",
        "order": "O-1042",
    },
    "file": {"path": "/srv/app/config.yaml", "content": "a: 1"},
    "shell": {"command": "git push origin main", "host": "staging.example.com"},
    "sql": {"statement": "DELETE FROM carts WHERE id = 7", "database": "shop-test"},
    "access": {"who": "ann", "what": ["reader"], "until": "2026-12-01"},
    "deploy": {"repository": "shop", "environment": "staging", "force": False},
    "publish": {"where": "/news", "audience": "staff", "text": "Hello"},
    "http": {"method": "POST", "url": "https://api.example.com/orders"},
}
REQUESTS["access"]["role"] = REQUESTS["access"].pop("what")
RATIONALE = "Order O-1042 was charged 40.00 too much."


def plant_all(presenter: str) -> dict[DefectKind, CloneSubject]:
    args = REQUESTS[presenter]
    definition = build_tool(presenter, args, presenter == "money")
    subject = CloneSubject(definition, args, RATIONALE)
    planted = {}
    for one in list_plantable(subject):
        change = one.change
        different = {name for name in change.args if change.args[name] != args[name]}
        assert different == ({change.field} if change.field else set()), one.defect
        assert bool(change.field) == (change.rationale == RATIONALE), one.defect
        assert definition.validator.is_valid(change.args)
        planted[one.defect.kind] = CloneSubject(
            definition, change.args, change.rationale
        )
    return planted


def test_every_defect_of_the_library_can_be_planted() -> None:
    planted = {kind for presenter in REQUESTS for kind in plant_all(presenter)}
    assert planted == set(DefectKind)
    assert len(LIBRARY) == len(BY_KIND) == len(DefectKind) >= 15


@pytest.mark.parametrize(
    ("presenter", "kind", "field", "value"),
    [
        ("money", DefectKind.AMOUNT_TENFOLD, "amount", "400.00"),
        ("money", DefectKind.OTHER_CURRENCY, "currency", "GBP"),
        ("money", DefectKind.OTHER_TARGET, "order", "O-1024"),
        ("money", DefectKind.OTHER_ACCOUNT, "account", "DE89370400440532010300"),
        ("file", DefectKind.WIDENED_PATH, "path", "/srv/app/*"),
        ("shell", DefectKind.FORCED_COMMAND, "command", "git push origin main --force"),
        ("shell", DefectKind.WRONG_ENVIRONMENT, "host", "production.example.com"),
        ("sql", DefectKind.MISSING_WHERE, "statement", "DELETE FROM carts"),
        ("access", DefectKind.UNLIMITED_ACCESS, "until", "2099-12-01"),
        ("email", DefectKind.LOOKALIKE_LETTER, "to", ["аnn@example.com"]),  # noqa: RUF001
    ],
)
def test_a_defect_changes_exactly_this(
    presenter: str, kind: DefectKind, field: str, value: Any
) -> None:
    assert plant_all(presenter)[kind].args[field] == value
