"""`python -m demo.store`: prepare the database and serve until stopped."""

from __future__ import annotations

import os
import sys

import uvicorn
from django.core.asgi import get_asgi_application

from . import database, settings

SHUTDOWN_S = 2


def main() -> None:
    if not settings.WEBHOOK_SECRET.startswith("whsec_"):
        sys.exit(
            "store: COUNTERSEAL_WEBHOOK_SECRET is not set: give the store the gate's"
            " webhook secret, which begins with whsec_."
        )
    database.prepare(settings.DATABASE)
    # The environment may name the settings of another Django project.
    os.environ["DJANGO_SETTINGS_MODULE"] = settings.__name__
    uvicorn.run(
        get_asgi_application(),
        host="127.0.0.1",
        port=settings.PORT,
        lifespan="off",
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=SHUTDOWN_S,
    )


if __name__ == "__main__":
    main()
