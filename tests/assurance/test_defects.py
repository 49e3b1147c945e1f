"""Each defect of the library fits some request, changes one thing of it and leaves
arguments that the tool accepts."""

from __future__ import annotations

from typing import Any

import pytest

from assurance.defects import BY_KIND, LIBRARY, CloneSubject, list_plantable
from assurance.examples import CALLS, RATIONALE, build_subjects
from reviews.choices import DefectKind


def plant_all(presenter: str) -> dict[DefectKind, CloneSubject]:
    subject = next(
        one for one in build_subjects() if one.definition.presenter == presenter
    )
    definition, args = subject.definition, subject.args
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
    planted = {kind for presenter in CALLS for kind in plant_all(presenter)}
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
