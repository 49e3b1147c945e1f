"""The library of defects: the list, a kind, and a change that waits."""

from __future__ import annotations

from assurance import library
from policies.models import Person
from reviews.choices import DefectKind
from tests.gallery.scene import SceneGroup
from tests.gallery.store import StoreGate

LIBRARY = SceneGroup("library", shows=("reviews:defects", "reviews:defect"))
PAGE = "/assurance/defects/"
KIND = DefectKind.EXTRA_BCC

LIBRARY.add("list", "Library of defects", PAGE, "adam")
LIBRARY.add("kind", "Propose a change", f"{PAGE}{KIND}/", "adam")


@LIBRARY.scene("change", "A change waits for an answer", "alma")
def show_change(gate: StoreGate) -> str:
    adam = Person.objects.get(pk=gate.adam.pk)
    library.propose_change(
        person=adam, kind=KIND, weight=2, reason="Two of three reviewers missed it."
    )
    return f"{PAGE}{KIND}/"


LIBRARY.add("own-change", "You proposed it.", f"{PAGE}{KIND}/", "adam")
