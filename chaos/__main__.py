"""Start a run: `make chaos`, `make chaos SHORT=1`, `make chaos RETAIL=1`,
`make chaos ARGS="--seed 7 --requests 500"`.
"""

from __future__ import annotations

import argparse
import importlib
import random
import signal
import sys
from typing import Any

import django

from hitl.local.layout import InstallationError

from .options import BETWEEN, RETAIL_BETWEEN, USUAL, Options


def main() -> None:
    options = _options()
    # Whoever ends us must not leave servers and hosts behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        # Only once its servers are named: what follows reads settings and models.
        start_servers = importlib.import_module("chaos.cluster").start_servers
        with start_servers(options) as cluster:
            django.setup()
            name = "chaos.retail" if options.retail else "chaos.verdict"
            code = importlib.import_module(name).run_test(cluster, options)
    except InstallationError as error:
        sys.exit(f"chaos: {error}")
    except KeyboardInterrupt:
        sys.exit("chaos: stopped; nothing was kept")
    sys.exit(code)


def _options() -> Options:
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--short", action="store_true", help="a few minutes")
    parser.add_argument("--retail", action="store_true", help="the retail tasks")
    parser.add_argument("--seed", type=int, help="what comes when; another each time")
    for name in ("requests", "webs", "workers", "hosts"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--seconds", type=float, help="over which requests come")
    given: dict[str, Any] = vars(parser.parse_args())
    short, retail, seed = (given.pop(name) for name in ("short", "retail", "seed"))
    chosen = {name: value for name, value in given.items() if value is not None}
    return Options(
        **{**USUAL[retail, short], **chosen},
        between=(RETAIL_BETWEEN if retail else BETWEEN)[short],
        seed=random.SystemRandom().randrange(100_000) if seed is None else seed,
        short=short,
        retail=retail,
    )


if __name__ == "__main__":
    main()
