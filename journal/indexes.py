"""Indexes that Django makes and nothing reads. Migrations use this function."""

from __future__ import annotations

from django.db.migrations import RunSQL


def drop_pattern_indexes(app: str) -> RunSQL:
    """A migration that drops the `_like` indexes of an app's tables.

    Django adds one to every unique or indexed text column for `LIKE 'x%'`. No query of
    the product has such a condition on these columns, and each row written would be
    entered in two indexes.
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
