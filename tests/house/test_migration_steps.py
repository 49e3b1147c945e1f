"""A change of the schema takes two releases, and what does not is refused."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import migrations, models

from tests.house.migration_steps import list_faults, load_migrations

NULLABLE = migrations.AddField("thing", "word", models.TextField(null=True))
REQUIRED = migrations.AddField("thing", "word", models.TextField())
DEFAULTED = migrations.AddField("thing", "word", models.TextField(db_default=""))
SET = migrations.AlterField("thing", "word", models.TextField())
GONE = migrations.RemoveField("thing", "word")
DELETED = migrations.DeleteModel("thing")
RENAMED = migrations.RenameField("thing", "word", "name")
EXPAND = ("gate", "0003_word")


def build_migration(name: str, *operations: Any, **says: Any) -> migrations.Migration:
    """One that says its release, its step and what it completes."""
    body = {"operations": operations, **says}
    migration: migrations.Migration = type("Migration", (migrations.Migration,), body)(
        name, "gate"
    )
    return migration


def find_faults(*written: migrations.Migration) -> str:
    return "\n".join(list_faults({("gate", one.name): one for one in written}))


EXPANDING = build_migration("0003_word", NULLABLE, release="0.2.0", step="expand")


def test_the_migrations_of_the_product_have_no_faults() -> None:
    assert not list(list_faults(load_migrations()))


def test_a_change_over_two_releases_has_no_fault() -> None:
    later = {"release": "0.3.0", "step": "contract", "completes": EXPAND}
    assert not find_faults(EXPANDING, build_migration("0004_set", SET, **later))


def test_a_contract_in_the_release_of_its_expand_is_refused() -> None:
    hasty = {"release": "0.2.0", "step": "contract", "completes": EXPAND}
    faults = find_faults(EXPANDING, build_migration("0004_set", SET, **hasty))
    assert "0004_set: contracts in the release that expands (0003_word)" in faults


def test_a_contract_names_what_it_completes() -> None:
    lone = build_migration("0004_set", SET, release="0.3.0", step="contract")
    assert "names no migration that it completes" in find_faults(lone)


@pytest.mark.parametrize(
    ("operation", "fault"),
    [
        (DELETED, "DeleteModel belongs to a contract"),
        (REQUIRED, "inserts rows without thing.word"),
    ],
)
def test_an_expand_takes_nothing_away(operation: Any, fault: str) -> None:
    says = {"release": "0.2.0", "step": "expand"}
    assert fault in find_faults(build_migration("0003_word", operation, **says))


@pytest.mark.parametrize("operation", [GONE, RENAMED])
def test_no_step_takes_a_name_away(operation: Any) -> None:
    says = {"release": "0.3.0", "step": "contract", "completes": EXPAND}
    written = build_migration("0004_gone", operation, **says)
    assert "takes away a name" in find_faults(EXPANDING, written)


def test_a_column_that_the_database_fills_is_no_fault() -> None:
    says = {"release": "0.2.0", "step": "expand"}
    assert not find_faults(build_migration("0003_word", DEFAULTED, **says))


@pytest.mark.parametrize("says", [{}, {"step": "expand"}, {"release": "0.2.0"}])
def test_a_migration_says_its_release_and_its_step(says: dict[str, str]) -> None:
    assert "says no step" in find_faults(build_migration("0003_word", **says))
