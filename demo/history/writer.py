"""Writes the history into an empty database, and leaves nothing open that would begin
once workers run."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.hashers import make_password
from django.db import connection

from demo import seed
from demo.store import database
from journal import clock
from journal.tasks import sequence
from policies.models import Person, PolicyVersion
from stats import rollups

from .clock import begin_at, set_back
from .life import DAYS, Life
from .tools import find_store
from .unfinished import discard_unfinished

# What was mailed then was read then: nothing is sent to anybody now.
NO_MAIL = "django.core.mail.backends.dummy.EmailBackend"


def write_history(*, store_url: str) -> bool:
    """Write the history, unless the database has people or a policy. What a process
    that was killed has written of it is discarded first. Returns whether it was
    written."""
    discard_unfinished()
    if Person.objects.exists() or PolicyVersion.objects.exists():
        return False
    database.prepare(find_store())
    now = clock.now()
    with _change_settings(), set_back():
        begin_at(now - timedelta(days=DAYS))
        people = seed.ensure_people()
        # `seed` gives each a new one, and writes it down.
        password = make_password(secrets.token_urlsafe(18))
        Person.objects.update(date_joined=clock.now(), password=password)
        by_name = {person.username: person for person in Person.objects.all()}
        Life(by_name, store_url, lambda: seed.admit_deciders(people)).write(now)
    _begin_to_write_to_disk()
    sequence()
    rollups.update_rollups()
    return True


def _begin_to_write_to_disk() -> None:
    """Leave little that a server which is stopped soon would first have to write. The
    server goes on with it when its client has left."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_has_role(current_user, 'pg_checkpoint', 'MEMBER')")
        ((allowed,),) = cursor.fetchall()
    if allowed:
        with closing(connection.copy()) as other:
            other.ensure_connection()
            other.connection.pgconn.send_query(b"CHECKPOINT")


@contextmanager
def _change_settings() -> Iterator[None]:
    """Let the former policies call the store in this process, and let no mail leave."""
    usual = settings.COUNTERSEAL
    listed = [*usual.callables, "demo.history.tools"]
    changes: Mapping[str, Any] = {
        "COUNTERSEAL": usual.model_copy(update={"callables": listed}),
        "EMAIL_BACKEND": NO_MAIL,
    }
    before = {name: getattr(settings, name) for name in changes}
    for name, value in changes.items():
        setattr(settings, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(settings, name, value)
