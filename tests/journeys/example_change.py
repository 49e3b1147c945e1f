"""An example of a change of the schema, over two releases that follow this one.

Every execution gets a word. The first release expands: it adds the column, which may be
null, and writes it. The second fills in the rows that older processes wrote, in chunks,
and contracts: null is no longer allowed.
"""

from __future__ import annotations

import ast
import inspect
import shutil
from pathlib import Path
from typing import NamedTuple

from django.apps import apps
from django.db import connection

from reviews.models import Execution
from tests.guards import ROOT

LEFT_OUT = (
    *(".git", ".venv", ".*_cache", ".hypothesis", ".import_linter_cache"),
    *("var", "node_modules"),
)
APP = Execution._meta.app_label
TABLE = Execution._meta.db_table

HEADER = """
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("{app}", "{before}")]
    release = "{release}"
"""
EXPAND = """
    step = "expand"
    operations = [
        migrations.AddField(
            "execution", "word", models.CharField(max_length=8, null=True)
        ),
        # A default of Python's, after the column: rows that are there stay null.
        migrations.AlterField(
            "execution",
            "word",
            models.CharField(max_length=8, null=True, default="new"),
        ),
    ]
"""
# Each statement is a transaction of its own, and a row in use is left for the next.
FILL = """
    atomic = False
    step = "migrate"
    operations = [migrations.RunPython(lambda apps, editor: fill(editor.connection))]


def fill(connection):
    with connection.cursor() as cursor:
        while True:
            cursor.execute(
                "UPDATE {table} SET word = 'old' WHERE id IN (SELECT id FROM {table}"
                " WHERE word IS NULL LIMIT 2 FOR UPDATE SKIP LOCKED)"
            )
            cursor.execute("SELECT EXISTS (SELECT FROM {table} WHERE word IS NULL)")
            if cursor.fetchone() == (False,):
                return
"""
CONTRACT = """
    step = "contract"
    completes = ("{app}", "{expand}")
    operations = [
        migrations.AlterField(
            "execution", "word", models.CharField(max_length=8, default="new")
        ),
    ]
"""


class Releases(NamedTuple):
    """The trees of three releases, the first of them the present checkout."""

    present: Path
    expanded: Path
    contracted: Path


def write_releases(folder: Path) -> Releases:
    """Write the trees of both later releases into this folder."""
    before = max(path.stem for path in _find_migrations(ROOT).glob("[0-9]*.py"))
    first = int(before[:4]) + 1
    names = ("word", "words_of_old_rows", "every_word")
    expand, fill, contract = (
        f"{number:04}_{name}" for number, name in enumerate(names, first)
    )
    expanded = _copy(ROOT, folder / "expanded", "null=True, ")
    _write(expanded, expand, EXPAND, before=before, release="0.2.0")
    contracted = _copy(expanded, folder / "contracted", "")
    _write(contracted, fill, FILL, before=expand, release="0.3.0")
    _write(contracted, contract, CONTRACT, before=fill, release="0.3.0", expand=expand)
    return Releases(ROOT, expanded, contracted)


def count_words() -> dict[str, int]:
    """How many executions have which word."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT word, count(*) FROM {TABLE} GROUP BY word")
        return dict(cursor.fetchall())


def _copy(source: Path, target: Path, null: str) -> Path:
    """The tree with its compiled modules, so that its processes start as fast; and with
    the field in its model."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(*LEFT_OUT))
    module = target / _find_model().relative_to(ROOT)
    lines = (ROOT / module.relative_to(target)).read_text().splitlines(keepends=True)
    field = f'    word = models.CharField(max_length=8, {null}default="new")\n'
    lines.insert(_find_first_field("".join(lines)) - 1, field)
    module.write_text("".join(lines))
    return target


def _write(tree: Path, name: str, body: str, **facts: str) -> None:
    facts = {"app": APP, "table": TABLE, **facts}
    text = "".join(part.format(**facts) for part in (HEADER, body))
    (_find_migrations(tree) / f"{name}.py").write_text(text)


def _find_migrations(tree: Path) -> Path:
    package = Path(apps.get_app_config(APP).path).resolve()
    return tree / package.relative_to(ROOT) / "migrations"


def _find_model() -> Path:
    file = inspect.getsourcefile(Execution)
    assert file is not None
    return Path(file).resolve()


def _find_first_field(text: str) -> int:
    """The line of the first field of the model, counted from 1."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef) and node.name == Execution.__name__:
            return next(one.lineno for one in node.body if isinstance(one, ast.Assign))
    raise AssertionError("the model is not where it says")
