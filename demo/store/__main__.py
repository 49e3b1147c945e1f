"""`python -m demo.store`: prepare the database and serve until told to stop."""

from __future__ import annotations

import logging
import os
import sys

import uvicorn
from django.core.asgi import get_asgi_application

from . import config, database

HOST = "127.0.0.1"
LAST_CALLS = 2
"""Seconds that calls under way may take after we were told to stop."""


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="store: %(message)s")
    try:
        settings = config.load()
    except config.NotConfigured as error:
        sys.exit(f"store: {error}")
    database.prepare(settings.database)
    # Set, not defaulted: whoever started us may run under settings of its own.
    os.environ["DJANGO_SETTINGS_MODULE"] = "demo.store.settings"
    uvicorn.run(
        get_asgi_application(),
        host=HOST,
        port=settings.port,
        lifespan="off",
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=LAST_CALLS,
    )


if __name__ == "__main__":
    main()
