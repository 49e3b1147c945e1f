"""What is left of a history whose writer was killed: it is discarded, so that the next
start writes the whole one."""

from __future__ import annotations

import redis
from django.conf import settings
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connection, transaction

from journal import high_water_mark
from journal.models import LogRecord

from .tools import find_store

_DROP_ALL = """
DO $$ BEGIN
    EXECUTE format('DROP SCHEMA %1$I CASCADE; CREATE SCHEMA %1$I;'
                   ' GRANT USAGE ON SCHEMA %1$I TO PUBLIC', current_schema());
END $$;
DROP SCHEMA history CASCADE;
"""


def discard_unfinished() -> None:
    """Make the database an empty one again if a writer was killed in it. Whoever used
    the gate since then keeps everything: then the history stays as far as it was
    written, and only the shift of the clock goes away."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('history.writing') IS NOT NULL")
        if cursor.fetchone() != (True,):
            return
        cursor.execute("SELECT began FROM history.writing")
        ((began,),) = cursor.fetchall()
    # The records of the history are all of the past.
    if LogRecord.objects.filter(at__gte=began).exists():
        with connection.cursor() as cursor:
            cursor.execute("DROP SCHEMA history CASCADE")
        return
    _forget_effects()
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_DROP_ALL)
    connection.close()  # and with it the statements prepared for the tables that went
    ContentType.objects.clear_cache()
    call_command("migrate", interactive=False, verbosity=0)


def _forget_effects() -> None:
    """Remove what the history left outside of the database: the effects in the store,
    and the mark by which this host would take the new database for an older one."""
    store = find_store()
    for path in (
        high_water_mark.build_mark_path(),
        *store.parent.glob(f"{store.name}*"),
    ):
        path.unlink(missing_ok=True)
    with redis.Redis.from_url(settings.COUNTERSEAL.redis_url) as broker:
        broker.delete(high_water_mark.BROKER_KEY)
