"""The database keeps the log append-only, and refuses to delete or rewrite the rows of
other tables that name these functions in their own triggers."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations

from journal.indexes import drop_pattern_indexes
from journal.triggers import fixed, kept, once

APPEND_ONLY = ("journal_logrecord", "journal_logposition")

REFUSE_CHANGE = """
    CREATE FUNCTION journal_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        RAISE EXCEPTION '%: % is refused, the log is append-only',
            TG_TABLE_NAME, TG_OP USING ERRCODE = 'restrict_violation';
    END
    $$
"""
# Per statement: a row trigger does not see TRUNCATE. ALWAYS: otherwise whoever sets
# session_replication_role = replica gets past it.
CREATE_TRIGGER = """
    CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}
        FOR EACH STATEMENT EXECUTE FUNCTION journal_refuse_change();
    ALTER TABLE {table} ENABLE ALWAYS TRIGGER append_only
"""
DROP_TRIGGER = "DROP TRIGGER append_only ON {table}"

REFUSE_LOSS = """
CREATE FUNCTION journal_refuse_loss() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%: % is refused, its rows are kept', TG_TABLE_NAME, TG_OP
        USING ERRCODE = '23001';
END $$;
"""
REFUSE_REWRITE = """
CREATE FUNCTION journal_refuse_rewrite() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION '%: this change is refused, it would rewrite what was recorded',
        TG_TABLE_NAME USING ERRCODE = '23001';
END $$;
"""

# The outbox is a queue: nearly every row is updated two or three times and deleted. Room
# on each page for those updates, and a vacuum by number instead of by share of the table,
# so that what a sweep costs does not grow with the day.
OUTBOX = "journal_outboxmessage"
STORAGE = {
    "fillfactor": 70,
    "autovacuum_vacuum_scale_factor": 0,
    "autovacuum_vacuum_threshold": 2000,
    "autovacuum_vacuum_insert_scale_factor": 0,
    "autovacuum_vacuum_insert_threshold": 20000,
    "autovacuum_analyze_scale_factor": 0,
    "autovacuum_analyze_threshold": 20000,
    "autovacuum_vacuum_cost_delay": 1,
}
SET_STORAGE = ", ".join(f"{name} = {value}" for name, value in STORAGE.items())


class Migration(migrations.Migration):
    dependencies: ClassVar = [("journal", "0001_tables")]

    operations: ClassVar = [
        migrations.RunSQL(REFUSE_CHANGE, "DROP FUNCTION journal_refuse_change()"),
        *(
            migrations.RunSQL(
                CREATE_TRIGGER.format(table=table), DROP_TRIGGER.format(table=table)
            )
            for table in APPEND_ONLY
        ),
        migrations.RunSQL(REFUSE_LOSS, "DROP FUNCTION journal_refuse_loss()"),
        migrations.RunSQL(REFUSE_REWRITE, "DROP FUNCTION journal_refuse_rewrite()"),
        # An epoch that only waits may be recorded again.
        kept("journal_epoch", but_for="OLD.began_at IS NULL"),
        fixed(
            "journal_epoch",
            ["number", "noticed_at", "why"],
            rules=once("began_at", "asked_by", "reason", "by", "from_record"),
        ),
        migrations.RunSQL(
            f"ALTER TABLE {OUTBOX} SET ({SET_STORAGE})",
            f"ALTER TABLE {OUTBOX} RESET ({', '.join(STORAGE)})",
        ),
        drop_pattern_indexes("journal"),
    ]
