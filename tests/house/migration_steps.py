"""The steps of a change of the schema: `make check` runs this module.

Processes of two successive releases use one database while an installation is
updated, so a change takes two releases: one expands the schema, the next fills in what
is missing and contracts it (docs/development.md). Each migration says its release and
its step, and one that contracts names the migration that it completes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping

import django
from django.db.migrations import AddField, Migration
from django.db.migrations.loader import MigrationLoader
from django.db.models import NOT_PROVIDED

from tests.sources import PACKAGES

# No release came before the first, so its migrations say nothing.
FIRST_RELEASE = {"0001_tables", "0002_triggers"}
STEPS = ("expand", "migrate", "contract")
# The release before names every column of its models, so a column leaves the models
# first (SeparateDatabaseAndState), and the database a release later.
BREAKING = {"RemoveField", "RenameField", "RenameModel", "AlterModelTable"}

MigrationName = tuple[str, str]


def list_faults(migrations: Mapping[MigrationName, Migration]) -> Iterator[str]:
    """A sentence for each fault of these migrations."""
    for (app, name), migration in sorted(migrations.items()):
        if name in FIRST_RELEASE:
            continue
        for fault in _list_own_faults(migration, migrations):
            yield f"{app}.{name}: {fault}"


def _list_own_faults(
    migration: Migration, migrations: Mapping[MigrationName, Migration]
) -> Iterator[str]:
    step = getattr(migration, "step", None)
    if step not in STEPS or not _parse_release(migration):
        yield f'says no step ({", ".join(STEPS)}) or no release ("0.2.0").'
        return
    kinds = {type(operation).__name__ for operation in migration.operations}
    for kind in sorted(kinds & BREAKING):
        yield f"{kind} takes away a name that the release before it uses."
    if step == "contract":
        yield from _list_contract_faults(migration, migrations)
        return
    if "DeleteModel" in kinds:
        yield "DeleteModel belongs to a contract, in a later release."
    for name in _list_required_fields(migration):
        yield f"the release before it inserts rows without {name}: allow null first."


def _list_contract_faults(
    migration: Migration, migrations: Mapping[MigrationName, Migration]
) -> Iterator[str]:
    completed = migrations.get(getattr(migration, "completes", ("", "")))
    if completed is None:
        yield "contracts and names no migration that it completes."
    elif _parse_release(completed) >= _parse_release(migration):
        yield (
            f"contracts in the release that expands ({completed.name}): processes of"
            " the release before it still run."
        )


def _list_required_fields(migration: Migration) -> Iterator[str]:
    for operation in migration.operations:
        if isinstance(operation, AddField):
            field = operation.field
            if not field.null and field.db_default is NOT_PROVIDED:
                yield f"{operation.model_name}.{operation.name}"


def _parse_release(migration: Migration) -> tuple[int, ...]:
    """The numbers of the release; none for the first one's migrations."""
    text = getattr(migration, "release", "")
    return tuple(int(number) for number in text.split(".") if number)


def load_migrations(apps: Iterable[str] = PACKAGES) -> dict[MigrationName, Migration]:
    """The migrations of our packages, from the disk."""
    loaded = MigrationLoader(None, ignore_no_migrations=True).disk_migrations
    return {name: loaded[name] for name in loaded if name[0] in set(apps)}


def main() -> int:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hitl.local.settings")
    django.setup()
    faults = list(list_faults(load_migrations()))
    sys.stdout.writelines(f"{fault}\n" for fault in faults)
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
