"""How the policy checks that people still look: canaries."""

from __future__ import annotations

from pydantic import Field, StrictBool

from .definitions import DocumentPart


class Assurance(DocumentPart):
    """Checks of the reviewers. Tell your reviewers before you switch one on."""

    # Clones of approved requests with one planted defect, which can never be executed.
    # Each reviewer gets about one in 52 decisions, and about one in 37 after many
    # unchanged approvals or missed canaries. The next one never depends on the last.
    canaries: StrictBool = False
    # The share of approvals and rejections by one person, at medium and high risk, that
    # another person reviews a second time within a day, without knowing the verdict. It
    # is four times as large for decisions before the minimum reading time, and for the
    # first ones on a payee or record.
    second_reviews: float = Field(default=0, ge=0, le=0.25)
