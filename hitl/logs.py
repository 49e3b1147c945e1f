"""Configures logging: all lines, ours and libraries', carry the ids bound at that
moment.

Those are the ids of request, agent, proposal and task. Bodies, query strings and
headers are never logged. Untrusted text, such as a path or a tool's name, is escaped so
that it cannot forge a line or control a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

import kombu.exceptions
import psycopg
import redis
import structlog
from structlog.types import EventDict, Processor

from reviews.presenters.unicode import is_hidden

SHARED_PROCESSORS: tuple[Processor, ...] = (
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
)

LIBRARY_LOGGERS = ("django", "django.server", "uvicorn", "celery")
# The most characters of one value, and of the end of a traceback.
LONGEST, LONGEST_TRACE = 2_000, 20_000
TRACE_KEYS = ("exception", "stack")
MAX_DEPTH = 4  # levels of nested lists and objects
# SQLSTATE classes for a lost connection and a server shutdown (PostgreSQL, appendix A).
OUTAGE_SQLSTATES = ("08", "57P0")
OUTAGE_ERRORS = (
    redis.ConnectionError,
    redis.TimeoutError,
    kombu.exceptions.OperationalError,
)
CHATTY_LOGGERS = ("celery.beat", "celery.worker.strategy", "celery.app.trace")


def configure_logging(log_format: str, level: str) -> dict[str, Any]:
    """Set structlog up, and return the matching LOGGING for the standard library."""
    structlog.configure(
        processors=[
            *SHARED_PROCESSORS,
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
        "formatters": {"lines": _build_formatter(log_format)},
        "handlers": {"out": {"class": "logging.StreamHandler", "formatter": "lines"}},
        "root": {"handlers": ["out"], "level": level},
        "loggers": {
            # Their own handlers would print every line again, without the ids.
            **{name: {"handlers": [], "propagate": True} for name in LIBRARY_LOGGERS},
            # Our middleware logs each request, with ids and without the query.
            "uvicorn.access": {"handlers": [], "propagate": False},
            "django.request": {"level": "ERROR"},
            # Who asks by an address of ours is often a load balancer: no error.
            "django.security.DisallowedHost": {"level": "CRITICAL"},
            # Each sweep would log four lines, several times a second.
            **{name: {"level": "WARNING"} for name in CHATTY_LOGGERS},
        },
    }


def _build_formatter(log_format: str) -> dict[str, Any]:
    last: Processor = (
        structlog.processors.JSONRenderer()
        if log_format == "json"
        else structlog.dev.ConsoleRenderer(colors=False)
    )
    return {
        "()": structlog.stdlib.ProcessorFormatter,
        "foreign_pre_chain": list(SHARED_PROCESSORS),
        "processors": [
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            shorten_outage_errors,
            # Plain tracebacks: a renderer's own would print local variables.
            structlog.processors.format_exc_info,
            escape_untrusted_text,
            last,
        ],
    }


def shorten_outage_errors(logger: Any, name: str, event: EventDict) -> EventDict:
    """structlog processor: replace the traceback of an outage with its error message.

    A traceback for each call that fails while a server is unreachable would fill the
    disk and add no information.
    """
    error = _find_exception(event.get("exc_info"))
    if error is None or not _is_away(error):
        return event
    shortened = {key: value for key, value in event.items() if key != "exc_info"}
    return {**shortened, "error": f"{type(error).__name__}: {error}".strip()}


def _find_exception(exc_info: Any) -> BaseException | None:
    """The exception of `exc_info`, in each form that the standard library accepts."""
    exception = exc_info[1] if isinstance(exc_info, tuple) else exc_info
    if exception is True:
        return sys.exception()
    return exception if isinstance(exception, BaseException) else None


def _is_away(error: BaseException | None) -> bool:
    """Whether this error, or one that caused it, reports an unreachable server. Django
    wraps the driver's errors."""
    if error is None:
        return False
    if isinstance(error, psycopg.OperationalError):
        return error.sqlstate is None or error.sqlstate.startswith(OUTAGE_SQLSTATES)
    return isinstance(error, OUTAGE_ERRORS) or _is_away(error.__cause__)


def escape_untrusted_text(logger: Any, name: str, event: EventDict) -> EventDict:
    """structlog processor: escape line ends, control characters, bidirectional
    overrides and invisible characters, and bound the length of all values."""
    return {
        _escape_line(str(key)): _escape_trace(value)
        if key in TRACE_KEYS
        else _escape_value(value)
        for key, value in event.items()
    }


def _escape_value(value: Any, depth: int = 0) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping) and depth < MAX_DEPTH:
        return {
            _escape_line(str(k)): _escape_value(v, depth + 1) for k, v in value.items()
        }
    if isinstance(value, list | tuple) and depth < MAX_DEPTH:
        return [_escape_value(item, depth + 1) for item in value[:LONGEST]]
    return _escape_line(value if isinstance(value, str) else repr(value))


def _escape_trace(value: Any) -> str:
    """Escape a traceback. Indents its lines, so that none looks like a log line."""
    text = str(value)[-LONGEST_TRACE:]
    return "\n  | ".join(_escape_line(line) for line in text.splitlines())


def _escape_line(text: str) -> str:
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}… ({len(text)} characters)"
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_escape_char, text))


def _escape_char(char: str) -> str:
    r"""Spell an unprintable or invisible character as Python would: `\n`, `\u202e`."""
    seen = char.isprintable() and not is_hidden(char)
    return char if seen else char.encode("unicode_escape").decode()
