"""Run the checks of one framework and print what they found."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .catalogue import AXES, CheckFailed, CheckNotRun, CheckResult
from .catalogue import CHECKS as SENTENCES
from .checks import admin, channels, durable, idempotent, typed, verified
from .servers import start_server
from .subject import Subject, Target
from .variants import VARIANTS, list_variants

Check = Callable[[Subject], None]
CHECKS: Mapping[str, Check] = {
    **durable.CHECKS,
    **idempotent.CHECKS,
    **typed.CHECKS,
    **channels.CHECKS,
    **verified.CHECKS,
    **admin.CHECKS,
}
_LIBRARY = "the library has none; a service around it would have to bring it"
ABSENT: Mapping[str, str] = {
    **dict.fromkeys([*channels.CHECKS, *admin.CHECKS], _LIBRARY),
    "verified.expiry": "a request of the library never expires",
}
"""What no framework offers by itself, so that there is nothing to check."""
_NO_EDIT = "the library has no answer that changes the arguments"
UNEDITABLE: Mapping[str, str] = dict.fromkeys(
    ["typed.edit_typed", "typed.edit_same_tool", "typed.bad_edit"], _NO_EDIT
)
"""What a framework without edits does not offer either."""


@dataclass(slots=True)
class Score:
    """The results of one variant, bare or with Counterseal."""

    variant: str
    release: str
    gated: bool
    results: list[CheckResult] = field(default_factory=list)

    @property
    def title(self) -> str:
        return "with Counterseal" if self.gated else "bare"

    def count_held(self, axis: str = "") -> int:
        """How many checks held, on one axis or on all."""
        return sum(
            result.outcome == "held" and axis in ("", result.axis)
            for result in self.results
        )


def list_absent(variant: str) -> dict[str, str]:
    """The checks that this variant alone offers nothing for, and why."""
    return {**ABSENT, **({} if VARIANTS[variant].edits else UNEDITABLE)}


def run_check(name: str, subject: Subject) -> CheckResult:
    """Run one check. A fault of the kit itself counts as a failure, with its text."""
    absent = list_absent(subject.variant)
    if not subject.gated and name in absent:
        return CheckResult(name, "absent", absent[name])
    try:
        CHECKS[name](subject)
    except CheckFailed as failure:
        return CheckResult(name, "failed", str(failure))
    except CheckNotRun as lack:
        return CheckResult(name, "not run", str(lack))
    except Exception as error:
        return CheckResult(name, "failed", f"{type(error).__name__}: {error}")
    return CheckResult(name, "held")


def run_variant(
    target: Target,
    variant: str,
    *,
    gated: bool,
    names: Iterable[str],
    folder: Path,
    server: str = "",
) -> Score:
    """Run the named checks, each with a run of its own, and print a line for each."""
    score = Score(variant, VARIANTS[variant].read_release(), gated)
    for name in names:
        begun = time.monotonic()
        subject = Subject(target, variant, gated=gated, folder=folder, server=server)
        result = run_check(name, subject)
        subject.close()
        score.results.append(result)
        seconds = time.monotonic() - begun
        detail = f": {result.detail}" if result.detail else ""
        print_line(f"  {name:32} {result.outcome:8} {seconds:5.1f} s{detail[:300]}")
    return score


def run_framework(
    target: Target,
    framework: str,
    *,
    modes: Sequence[bool] = (False, True),
    names: Sequence[str] = (),
) -> list[Score]:
    """Run every variant of a framework, bare and with Counterseal."""
    scores = []
    with (
        tempfile.TemporaryDirectory(prefix="counterseal-conformance-") as folder,
        start_server(framework, Path(folder)) as server,
    ):
        for variant in list_variants(framework):
            for gated in modes:
                title = "with Counterseal" if gated else "bare"
                print_line(f"{variant}, {title}")
                score = run_variant(
                    target,
                    variant,
                    gated=gated,
                    names=names or list(SENTENCES),
                    folder=Path(folder),
                    server=server,
                )
                scores.append(score)
    return scores


def format_table(scores: Sequence[Score]) -> str:
    """The scores as a table of Markdown: one row for each variant and mode."""
    heads = ["framework", "", *AXES.values(), "all"]
    lines = [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads)]
    for score in scores:
        axes = [str(score.count_held(axis)) for axis in AXES]
        name = f"{score.variant} ({score.release})"
        total = f"{score.count_held()} of {len(score.results)}"
        lines.append(f"| {' | '.join([name, score.title, *axes, total])} |")
    return "\n".join(lines)


def build_record(scores: Sequence[Score]) -> list[dict[str, Any]]:
    """The results as data, for `--json`."""
    return [
        {
            "variant": score.variant,
            "release": score.release,
            "counterseal": score.gated,
            "results": {
                result.check: {"outcome": result.outcome, "detail": result.detail}
                for result in score.results
            },
        }
        for score in scores
    ]


def save_record(path: Path, scores: Sequence[Score]) -> None:
    """Write the results as JSON."""
    path.write_text(json.dumps(build_record(scores), indent=2) + "\n")


def print_line(text: str) -> None:
    """One line of the run, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
