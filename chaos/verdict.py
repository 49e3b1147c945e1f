"""Runs, audits and reports; the exit code is the verdict."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from hitl.environment import ROOT
from tests import prove

from . import audit, page, post, table, tally
from .figures import Figures
from .house import AGENTS
from .ledger import Ledger
from .live import Live
from .options import Options
from .plan import wishes
from .postbook import Postbook
from .run import run as play
from .stage import Stage

FOLDER = ROOT / "var" / "chaos"


def run(stage: Stage, options: Options) -> int:
    """0 when everything held. Leaves report.html, report.json and, when something did
    not hold, what the processes said."""
    live = Live()
    live.say(f"chaos: {options.requests:,} requests, seed {options.seed}")
    ran = play(stage, options, live)
    live.say("auditing")
    ledger, book = Ledger(stage.ledger), Postbook(stage.ledger)
    came = post.look(ran, book, stage.traces)
    book.close()
    found = audit.audit(ran, wishes(options, AGENTS), ledger, came)
    made = tally.figures(stage, options, ran, found, ledger)
    ledger.close()
    _keep(stage, made)
    live.say(table.table(made))
    live.say(f"    {FOLDER / 'report.html'}")
    if made.held and not options.short:
        _prove(made)
    return 0 if made.held else 1


def _keep(stage: Stage, made: Figures) -> None:
    page.write(made, FOLDER / "report.html")
    (FOLDER / "report.json").write_text(made.as_json())
    stage.keep_logs(FOLDER / "logs", broken=not made.held)


def _prove(made: Figures) -> None:
    """The lines of this run in docs/proof.md, under names of their own: a test that is
    proved again replaces its own lines only, and so does this."""
    lines = {
        "T4 (chaos)": _post(made),
        "T6 (chaos)": _soak(made),
        "T7 (chaos)": (
            f"{made.stale['pauses']} processes frozen past their lease under load:"
            f" {made.stale['refused']} late writes, all refused"
        ),
    }
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lines"
        said = [json.dumps({"id": name, "line": text}) for name, text in lines.items()]
        file.write_text("\n".join(said))
        prove.add(file)


def _post(made: Figures) -> str:
    letters, mails = made.post["letters"], made.post["mails"]
    return (
        f"{sum(letters.values()):,} letters to agents under the same faults: every"
        " outcome heard under one name and acted on exactly once, no letter begun after"
        f" its acknowledgement, 0 left; {mails['arrived']:,} mails, 0 missing,"
        f" {mails['came twice']} came twice; {made.command}"
    )


def _soak(made: Figures) -> str:
    kinds = ", ".join(f"{n} x {kind}" for kind, n in made.kinds.items())
    done = made.recoveries["execution"]
    return (
        f"{made.requests:,} requests to {made.stage}, in {made.loaded:.0f} s under"
        f" {sum(made.kinds.values())} faults ({kinds}): 0 lost, 0 doubled (at most"
        f" {300 / made.requests:.3f} %), 0 of {made.steps:,} steps illegal,"
        f" {made.records:,} log records dense; {done['n']} executions recovered, p50"
        f" {done['p50']:.1f} s, p99 {done['p99']:.1f} s, bound {made.bound_s} s;"
        f" {made.command}"
    )
