"""Datasets: one that waits for consent, one that is finished, and a form that was
refused."""

from __future__ import annotations

from assurance.datasets import files
from tests.assurance.datasets.asking import ask, consent
from tests.gallery.scene import SceneGroup, Submission
from tests.gallery.store import StoreGate

DATASETS = SceneGroup("datasets", shows=("reviews:datasets",))
PAGE = "/assurance/datasets/"
WRONG = {
    "purpose": "Compare two versions of Riley.",
    "since": "2026-11-01",
    "until": "yesterday",
    "train": "80",
    "validation": "15",
    "test": "15",
}


@DATASETS.preparation
def decide_refunds(gate: StoreGate) -> None:
    for amount in ("31.00", "32.00", "33.00"):
        gate.approve(gate.refund(amount))


DATASETS.add("none", "No datasets yet.", PAGE, "adam")
DATASETS.add("wrong", "Choose at least one tool.", Submission(PAGE, WRONG), "adam")


@DATASETS.scene("asked", "required to refuse", "alma")
def show_asked(gate: StoreGate) -> str:
    ask(gate, tools=["process_refund"])
    return PAGE


@DATASETS.scene("finished", "approve: 3", "otto")
def show_finished(gate: StoreGate) -> str:
    finished = consent(gate, ask(gate, tools=["process_refund"]))
    files.write_dataset(finished.pk)
    return PAGE
