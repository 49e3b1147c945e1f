"""The processes of a private installation, as the supervisor starts them."""

from __future__ import annotations

import signal
import sys
from collections.abc import Mapping
from dataclasses import replace

from hitl.environment import LOOPBACK, ROOT

from . import keys
from .layout import Layout
from .process import Program

WEB_LAST_CALLS_S = 1
WORKER_PROCESSES = 2
# The shop and its agent know the gate's addresses, and nothing of its database.
NOT_FOR_THE_DEMO = {"DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE"}


def web(here: Layout, environ: Mapping[str, str]) -> Program:
    """uvicorn on one port. No proxy stands before it, so forwarding headers are not
    believed."""
    host = environ.get("HOST", LOOPBACK)
    return _python(
        here,
        environ,
        "web",
        "-m uvicorn hitl.asgi:application --lifespan on "
        f"--http hitl.protocol:Protocol --host {host} "
        f"--port {environ['PORT']} --no-access-log --no-server-header "
        f"--no-proxy-headers --timeout-graceful-shutdown {WEB_LAST_CALLS_S}",
    )


def worker(here: Layout, environ: Mapping[str, str]) -> Program:
    """Celery with its beat inside: there is one worker, so there is one beat.

    It is stopped by SIGQUIT: running tasks get `worker_soft_shutdown_timeout`, then
    their messages go back to the broker. SIGTERM would wait for them without end.
    When the supervisor is killed so is the broker: then there is nobody to give a
    message back to, and a worker that tries never ends.
    """
    program = _python(
        here,
        environ,
        "worker",
        f"-m celery --app hitl.celery worker --beat --concurrency {WORKER_PROCESSES} "
        "--without-gossip --without-mingle --without-heartbeat",
        stop_signal=signal.SIGQUIT,
    )
    return replace(program, orphan_signal=signal.SIGKILL)


def store(here: Layout, environ: Mapping[str, str]) -> Program:
    """The demo's shop: a service of somebody else, as far as the gate is concerned."""
    secret = environ.get("WEBHOOK_SECRET") or keys.read(here.keys, "webhook_secret")
    env = _for_demo(environ) | {"HOLDPOINT_WEBHOOK_SECRET": secret}
    return _python(here, env, "store", "-m demo.store")


def riley(here: Layout, environ: Mapping[str, str]) -> Program:
    """The demo's agent."""
    return _python(here, _for_demo(environ), "riley", "-m demo.riley")


def _for_demo(environ: Mapping[str, str]) -> dict[str, str]:
    return {k: v for k, v in environ.items() if k not in NOT_FOR_THE_DEMO}


def _python(
    here: Layout,
    environ: Mapping[str, str],
    name: str,
    args: str,
    *,
    stop_signal: signal.Signals = signal.SIGTERM,
) -> Program:
    return Program(
        name=name,
        argv=[sys.executable, *args.split()],
        env={**environ, "PYTHONUNBUFFERED": "1"},
        log=here.logs / f"{name}.log",
        stop_signal=stop_signal,
        cwd=ROOT,
    )
