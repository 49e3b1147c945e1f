"""What the tool itself says would happen: its word, its source, its time."""

from __future__ import annotations

from reviews.presenters import present_effect
from reviews.presenters.shapes import Cell
from tests.reviews.presenters import kinds
from tests.reviews.presenters.kinds import loud
from tests.reviews.presenters.test_everything import page_of, read

AT = "2026-03-01T14:20:41.123456+00:00"


def dry(found):
    args, before = kinds.EXAMPLES["run_sql"]
    definition = kinds.definition("run_sql")
    return present_effect(definition, args, before=before, dry_run=found)


def test_an_object_is_rows_and_a_text_is_one():
    shown = dry({"says": {"rows": 3, "table": {"name": "t"}}, "source": "db", "at": AT})
    assert shown.dry_run is not None
    assert [(row.label, row.cell) for row in shown.dry_run.rows] == [
        ("Rows", Cell("3", "number", sure=True)),
        ("Table name", Cell("t", sure=True)),
    ]
    said = dry({"says": "<b>nothing</b>", "at": AT})
    page = page_of(said)
    assert "<b>nothing" not in page
    assert "<b>nothing</b>" in read(page)


def test_source_and_time_stand_beside_it():
    page = read(page_of(dry({"says": ["a"], "source": "the\u202edb", "at": AT})))
    assert "Resultofthetool'sdryrun" in page
    assert "the⟦U+202E⟧db·14:20:41" in page


def test_a_failure_is_loud_and_says_that_nothing_is_known():
    shown = dry({"problem": "the service answered 503", "at": "nonsense"})
    assert "The dry run failed" in loud(shown)
    page = read(page_of(shown))
    assert "theserviceanswered503.Theeffectisnotknown." in page


def test_without_a_dry_run_nothing_is_said_of_one():
    assert dry(None).dry_run is None
    assert "dryrun" not in read(page_of(dry(None))).lower()
