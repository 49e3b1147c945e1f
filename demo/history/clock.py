"""The database's clock, set back for one session.

Every time of the product is the database's. A schema that precedes PostgreSQL's own in
the session's search path has functions of the same names which add a shift. The
defaults of columns know PostgreSQL's functions by number, so a trigger of the same
schema gives these columns the shifted time before they are stored. No function, trigger
or guard of the product is changed, and dropping the schema removes all of this.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from django.db import connection

from journal import clock

_DROP = "DROP SCHEMA IF EXISTS history CASCADE"
_CREATE = """
CREATE SCHEMA history;
CREATE TABLE history.writing AS SELECT pg_catalog.clock_timestamp() AS began;
CREATE FUNCTION history.shift() RETURNS interval LANGUAGE sql STABLE AS $$
    SELECT coalesce(nullif(current_setting('counterseal.shift', true), ''), '0')
        ::interval $$;
CREATE FUNCTION history.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
    AS $$ SELECT pg_catalog.clock_timestamp() + history.shift() $$;
CREATE FUNCTION history.statement_timestamp() RETURNS timestamptz LANGUAGE sql STABLE
    AS $$ SELECT pg_catalog.statement_timestamp() + history.shift() $$;
CREATE FUNCTION history.now() RETURNS timestamptz LANGUAGE sql STABLE
    AS $$ SELECT pg_catalog.now() + history.shift() $$;
CREATE FUNCTION history.shift_default() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    given timestamptz := (to_jsonb(NEW) ->> TG_ARGV[0])::timestamptz;
BEGIN
    IF given = pg_catalog.statement_timestamp() THEN
        RETURN jsonb_populate_record(
            NEW, jsonb_build_object(TG_ARGV[0], given + history.shift()));
    END IF;
    RETURN NEW;
END $$;
DO $$
DECLARE
    own record;
BEGIN
    FOR own IN SELECT table_name, column_name FROM information_schema.columns
               WHERE table_schema = current_schema()
                 AND column_default LIKE '%statement_timestamp()%'
    LOOP
        EXECUTE format(
            'CREATE TRIGGER %I BEFORE INSERT ON %I FOR EACH ROW'
            ' EXECUTE FUNCTION history.shift_default(%L)',
            'history_' || own.column_name, own.table_name, own.column_name);
    END LOOP;
END $$;
"""
_SHIFT = """
SELECT set_config('counterseal.shift',
                  (%s::timestamptz - pg_catalog.clock_timestamp())::text, false)
"""


@contextmanager
def set_back() -> Iterator[None]:
    """Prepare this session for `move_to`; afterwards its clock is the real one again,
    and nothing is left of the shift: the schema is there while the history is being
    written, and tells when that began."""
    with connection.cursor() as cursor:
        cursor.execute(_DROP)
        cursor.execute(_CREATE)
        cursor.execute("SELECT current_setting('search_path')")
        ((usual,),) = cursor.fetchall()
        cursor.execute(
            "SELECT set_config('search_path', %s, false),"
            # A thousand commits need not wait for the disk: the next one does.
            " set_config('synchronous_commit', 'off', false)",
            [f"history, pg_catalog, {usual}"],
        )
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('search_path', %s, false)", [usual])
            cursor.execute("SELECT set_config('counterseal.shift', '', false)")
            cursor.execute("RESET synchronous_commit")
            cursor.execute(_DROP)


def move_to(moment: datetime) -> None:
    """Let the clock of this session show a moment, and go on from there. It never goes
    back: a moment that is over changes nothing."""
    if moment > clock.now():
        begin_at(moment)


def begin_at(moment: datetime) -> None:
    """Set the clock of this session back to the first moment of the history."""
    with connection.cursor() as cursor:
        cursor.execute(_SHIFT, [moment])
