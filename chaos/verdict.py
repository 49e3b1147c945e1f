"""Run, check and report; the exit code is the verdict."""

from __future__ import annotations

from hitl.environment import ROOT
from tests import prove

from . import delivery_checker, effect_checker, log_checker, report
from .claims import Claim
from .cluster import Cluster
from .figures import Figures, RunFindings, compile_figures
from .generator import generate_operations
from .history import RunResult
from .options import Options
from .run import Progress, run_workload

BY = "make chaos"  # who measured it, in docs/proof.md
# The claims that stand in docs/proof.md, by their first word.
SOAKED = ("requests", "proposals", "effects", "steps")
FOLDER = ROOT / "var" / "chaos"


def run_test(cluster: Cluster, options: Options) -> int:
    """0 when everything held. Leaves report.html, report.json and, when something did
    not hold, what the processes said."""
    live, version = Progress(), prove.version()
    live.say(f"chaos: {options.requests:,} requests, seed {options.seed}")
    result = run_workload(cluster, options, live)
    live.say("checking")
    figures = compile_figures(
        cluster, options, result, _check(cluster, options, result)
    )
    report.write_page(figures, FOLDER / "report.html")
    (FOLDER / "report.json").write_text(figures.as_json())
    cluster.keep_logs(FOLDER / "logs", broken=not figures.held)
    live.say(report.format_table(figures))
    live.say(f"    {FOLDER / 'report.html'}")
    if figures.held and not options.short:
        return _prove(figures, version)
    return 0 if figures.held else 1


def _check(cluster: Cluster, options: Options, result: RunResult) -> RunFindings:
    ledger, history = cluster.ledger, result.history
    return RunFindings(
        effect_checker.check_effects(result, generate_operations(options), ledger),
        effect_checker.check_ends(history.ended, history.impatient),
        log_checker.check_log(),
        delivery_checker.check_deliveries(result, ledger, cluster.traces),
        delivery_checker.check_mails(ledger),
    )


def _prove(figures: Figures, version: str) -> int:
    """The lines of this run in docs/proof.md, under names of their own: a test that is
    proved again replaces its own lines only, and so does this."""
    lines = {
        "T4 (chaos)": _describe_post(figures),
        "T6 (chaos)": _describe_soak(figures),
        "T7 (chaos)": _describe_late_writes(figures),
    }
    return prove.keep(BY, lines.items(), version)


def _describe_post(figures: Figures) -> str:
    webhooks, mails = figures.post["webhooks"], figures.post["mails"]
    return (
        f"{sum(webhooks.values()):,} webhooks to agents under the same faults: every"
        " outcome heard under one name and acted on exactly once, no webhook begun"
        f" after its acknowledgement, 0 left; {mails['arrived']:,} mails, 0 missing,"
        f" {mails['came twice']} came twice; {figures.command}"
    )


def _describe_soak(figures: Figures) -> str:
    kinds = ", ".join(f"{n} x {kind}" for kind, n in figures.kinds.items())
    # What is looked for of the gate itself, each with what it bounds.
    soaked = [c for c in figures.claims if c.text.startswith(SOAKED)]
    held = ", ".join(f"0 of {c.n:,} {c.text} ({c.bound})" for c in soaked)
    times = figures.recoveries["execution"]
    return (
        f"{figures.requests:,} requests to {figures.cluster}, in"
        f" {figures.loaded:.0f} s under {sum(figures.kinds.values())} faults"
        f" ({kinds}): {held}; {figures.records:,} log records dense; {times['n']}"
        " executions recovered, from the last fault that hit them or their worker p50"
        f" {times['p50']:.1f} s, p99 {times['p99']:.1f} s, bound {figures.bound_s} s;"
        f" {figures.impatient} times an agent's patience ended first;"
        f" {figures.command}"
    )


def _describe_late_writes(figures: Figures) -> str:
    late = figures.stale["refused"] + figures.stale["accepted"]
    return (
        f"{figures.stale['pauses']} processes frozen past their lease under load:"
        f" {late} late writes, all refused (accepted: {Claim('', late).bound})"
    )
