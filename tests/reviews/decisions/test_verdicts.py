from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from desk.components.choice import VERDICT_WORDINGS
from reviews.choices import VERDICT_SPECS, Verdict
from reviews.decisions.verdicts import VERDICTS


@pytest.mark.parametrize("table", [VERDICT_SPECS, VERDICTS, VERDICT_WORDINGS])
def test_every_verdict_has_its_row(table: Mapping[Verdict, Any]) -> None:
    assert set(table) == set(Verdict)


def test_the_buttons_and_the_codes_have_one_order() -> None:
    assert list(VERDICT_WORDINGS) == list(VERDICT_SPECS)


@pytest.mark.parametrize("verdict", Verdict)
def test_a_batch_says_what_a_verdict_does_to_it(verdict: Verdict) -> None:
    wording = VERDICT_WORDINGS[verdict]
    assert bool(wording.batch_effect) == VERDICT_SPECS[verdict].batchable
