"""Datasets asked for, consented and written by the product's own operations."""

from __future__ import annotations

import gzip
import json
from typing import Any

from assurance.datasets import consent as consents
from assurance.datasets import files
from assurance.datasets.consent import DatasetTerms
from journal import clock
from policies.models import Person
from reviews.models import Dataset
from tests.conftest import Gate

PURPOSE = "Compare two versions of the refund agent."


def ask(gate: Gate, by: Person | None = None, **fields: Any) -> Dataset:
    """A dataset of today's payments that Adam asks for and Otto owns."""
    today = clock.now().date()
    terms = DatasetTerms(
        **{
            "purpose": PURPOSE,
            "owner": gate.otto,
            "tools": ["pay"],
            "since": today,
            "until": today,
            **fields,
        }
    )
    return consents.ask_dataset(person=reload(by or gate.adam), terms=terms)


def consent(gate: Gate, dataset: Dataset, by: Person | None = None) -> Dataset:
    """Alma's consent."""
    return consents.consent_dataset(
        dataset_id=dataset.pk, person=reload(by or gate.alma)
    )


def write(gate: Gate, **fields: Any) -> Dataset:
    """The same, finished after Alma's consent."""
    dataset = consent(gate, ask(gate, **fields))
    assert files.write_dataset(dataset.pk)
    dataset.refresh_from_db()
    return dataset


def read(dataset: Dataset) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The header and the lines."""
    header, *lines = map(json.loads, read_text(dataset).splitlines())
    return header, lines


def read_text(dataset: Dataset) -> str:
    return gzip.decompress(b"".join(dataset.parts.stream_bodies())).decode()


def reload(person: Person) -> Person:
    """Without the roles that an earlier check kept."""
    return Person.objects.get(pk=person.pk)
