"""`python -m demo.riley`: work through the store's inbox until told to stop."""

from __future__ import annotations

import contextlib
import logging
import sys

import httpx2

from holdpoint_client import ApiError, Client

from . import config
from .desk import Desk
from .inbox import Inbox
from .notebook import Notebook
from .pace import Pace


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="riley: %(message)s")
    logging.getLogger("httpx2").setLevel(logging.WARNING)
    try:
        work(config.load())
    except config.NotConfigured as error:
        sys.exit(f"riley: {error}")
    except ApiError as error:
        if error.status != httpx2.codes.UNAUTHORIZED:
            raise
        sys.exit(f"riley: the gate does not take this key: {error.detail}")
    except KeyboardInterrupt:
        sys.exit(0)


def work(settings: config.Config) -> None:
    """Work without end. Proxies of the environment are for other people's services."""
    with contextlib.ExitStack() as stack:
        gate, store = (
            stack.enter_context(httpx2.Client(trust_env=False)) for _ in range(2)
        )
        desk = Desk(
            Client(settings.gate, settings.key, http=gate),
            Inbox(store, settings.store),
            Notebook.read(settings.notebook),
            Pace.of(settings.pace),
        )
        desk.run()


if __name__ == "__main__":
    main()
