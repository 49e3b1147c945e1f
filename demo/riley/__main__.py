"""`python -m demo.riley`: work through the store's inbox until stopped."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import threading
from functools import partial
from pathlib import Path

import httpx2

from counterseal_client import ApiError, Gate

from . import credits
from .agent import Riley


def main() -> None:
    """`$STATE/demo.json` has the addresses and the key, and `RILEY_PACE` the seconds
    between two new messages."""
    logging.basicConfig(level=logging.INFO, format="riley: %(message)s")
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    file = Path(os.environ.get("STATE", "var")) / "demo.json"
    try:
        demo = json.loads(file.read_text())
    except FileNotFoundError:
        sys.exit(f"riley: {file} is missing: run `manage.py seed_demo` first")
    # Both services are local, so the proxies of the environment do not apply.
    with (
        httpx2.Client(trust_env=False) as http,
        httpx2.Client(trust_env=False, base_url=demo["store_url"]) as store,
        contextlib.suppress(KeyboardInterrupt),
    ):
        gate = Gate(demo["base_url"], demo["agent_key"], http=http)
        work = partial(credits.offer_credit, gate, file.with_name("credits.jsonl"))
        threading.Thread(target=work, name="credit", daemon=True).start()
        pace_s = float(os.environ.get("RILEY_PACE", "30"))
        try:
            Riley(gate, store, pace_s=pace_s).run()
        except ApiError as error:
            if error.status != httpx2.codes.UNAUTHORIZED:
                raise
            sys.exit(f"riley: the gate refuses this key: {error.detail}")


if __name__ == "__main__":
    main()
