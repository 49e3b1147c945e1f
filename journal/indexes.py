"""A migration operation that drops indexes which no query uses."""

from __future__ import annotations

from django.db.migrations import RunSQL


def drop_pattern_indexes(app: str) -> RunSQL:
    """Return the operation that drops the `_like` indexes of an app's tables.

    Django adds one to every unique or indexed text column for `LIKE 'x%'`. No query of
    the product has such a condition on these columns, and each INSERT would write two
    index entries instead of one.
    """
    return RunSQL(
        f"""
        DO $$
        DECLARE name text;
        BEGIN
            FOR name IN
                SELECT quote_ident(own.relname) FROM pg_index AS one
                JOIN pg_class AS own ON own.oid = one.indexrelid
                JOIN pg_class AS of_table ON of_table.oid = one.indrelid
                WHERE own.relnamespace = current_schema()::regnamespace
                  AND starts_with(of_table.relname, '{app}_')
                  AND own.relname LIKE '%\\_like'
            LOOP
                EXECUTE 'DROP INDEX ' || name;
            END LOOP;
        END $$
        """,  # noqa: S608 the name of an app
        RunSQL.noop,
    )
