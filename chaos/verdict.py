"""Run, check and report; the exit code is the verdict."""

from __future__ import annotations

from hitl.environment import ROOT
from tests import prove

from . import delivery_checker, effect_checker, report
from .cluster import Cluster
from .figures import Claim, Figures, compile_figures
from .generator import generate_operations
from .options import Options
from .run import Progress, run_workload

BY = "make chaos"  # who measured it, in docs/proof.md
# The claims that stand in docs/proof.md, by their first word.
SOAKED = ("requests", "proposals", "effects", "steps")
FOLDER = ROOT / "var" / "chaos"


def run_test(cluster: Cluster, options: Options) -> int:
    """0 when everything held. Leaves report.html, report.json and, when something did
    not hold, what the processes said."""
    live, of = Progress(), prove.version()
    live.say(f"chaos: {options.requests:,} requests, seed {options.seed}")
    result = run_workload(cluster, options, live)
    live.say("checking")
    post = delivery_checker.check_post(result, cluster.ledger, cluster.traces)
    findings = effect_checker.check_effects(
        result, generate_operations(options), cluster.ledger, post
    )
    made = compile_figures(cluster, options, result, findings)
    _keep(cluster, made)
    live.say(report.format_table(made))
    live.say(f"    {FOLDER / 'report.html'}")
    if made.held and not options.short:
        return _prove(made, of)
    return 0 if made.held else 1


def _keep(cluster: Cluster, made: Figures) -> None:
    report.write_page(made, FOLDER / "report.html")
    (FOLDER / "report.json").write_text(made.as_json())
    cluster.keep_logs(FOLDER / "logs", broken=not made.held)


def _prove(made: Figures, of: str) -> int:
    """The lines of this run in docs/proof.md, under names of their own: a test that is
    proved again replaces its own lines only, and so does this."""
    lines = {
        "T4 (chaos)": _post(made),
        "T6 (chaos)": _soak(made),
        "T7 (chaos)": (
            f"{made.stale['pauses']} processes frozen past their lease under load:"
            f" {_late(made)}"
        ),
    }
    return prove.keep(BY, lines.items(), of)


def _late(made: Figures) -> str:
    late = made.stale["refused"] + made.stale["accepted"]
    bound = Claim("", late, made.stale["accepted"]).bound
    return f"{late} late writes, all refused (accepted: {bound})"


def _post(made: Figures) -> str:
    webhooks, mails = made.post["webhooks"], made.post["mails"]
    return (
        f"{sum(webhooks.values()):,} webhooks to agents under the same faults: every"
        " outcome heard under one name and acted on exactly once, no webhook begun"
        f" after its acknowledgement, 0 left; {mails['arrived']:,} mails, 0 missing,"
        f" {mails['came twice']} came twice; {made.command}"
    )


def _soak(made: Figures) -> str:
    kinds = ", ".join(f"{n} x {kind}" for kind, n in made.kinds.items())
    done = made.recoveries["execution"]
    return (
        f"{made.requests:,} requests to {made.cluster}, in {made.loaded:.0f} s under"
        f" {sum(made.kinds.values())} faults ({kinds}): {_held(made)};"
        f" {made.records:,} log records dense; {done['n']} executions recovered, from"
        f" the last fault that hit them or their worker p50 {done['p50']:.1f} s, p99"
        f" {done['p99']:.1f} s, bound {made.bound_s} s; {made.impatient} times an"
        f" agent's patience ended first; {made.command}"
    )


def _held(made: Figures) -> str:
    """What is looked for of the gate itself, each with what it bounds."""
    told = [one for one in made.claims if one.text.startswith(SOAKED)]
    return ", ".join(f"0 of {one.n:,} {one.text} ({one.bound})" for one in told)
