"""Logging: every line, ours or a library's, carries the request, agent, proposal and
task ids bound at that moment. Bodies, query strings and headers are never logged."""

from __future__ import annotations

from typing import Any

import structlog
from structlog.types import Processor

SHARED: tuple[Processor, ...] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
)

OTHERS = ("django", "django.server", "uvicorn", "celery")
CHATTY = ("celery.beat", "celery.worker.strategy", "celery.app.trace")


def configure(log_format: str, level: str) -> dict[str, Any]:
    """Set structlog up, and return the matching LOGGING for the standard library."""
    structlog.configure(
        processors=[
            *SHARED,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.processors.StackInfoRenderer(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": _formatter(log_format)},
        "handlers": {"out": {"class": "logging.StreamHandler", "formatter": "lines"}},
        "root": {"handlers": ["out"], "level": level},
        "loggers": {
            # Their own handlers would print every line a second time, unbound.
            **{name: {"handlers": [], "propagate": True} for name in OTHERS},
            # Our middleware writes one line a request, with ids and without the query.
            "uvicorn.access": {"handlers": [], "propagate": False},
            "django.request": {"level": "ERROR"},
            # Every sweep would be four lines, several times a second.
            **{name: {"level": "WARNING"} for name in CHATTY},
        },
    }


def _formatter(log_format: str) -> dict[str, Any]:
    last: list[Processor] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if log_format == "json"
        else [
            # The default prints the values of local variables: keys and raw text.
            structlog.dev.ConsoleRenderer(
                colors=False, exception_formatter=structlog.dev.plain_traceback
            )
        ]
    )
    return {
        "()": structlog.stdlib.ProcessorFormatter,
        "foreign_pre_chain": list(SHARED),
        "processors": [
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            *last,
        ],
    }
