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
# session_replication_role = replica gets past it. A partition has its own, for a
# statement that names it.
CREATE_TRIGGER = """
    CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table}
        FOR EACH STATEMENT EXECUTE FUNCTION journal_refuse_change();
    ALTER TABLE {table} ENABLE ALWAYS TRIGGER append_only
"""
DROP_TRIGGER = "DROP TRIGGER append_only ON {table}"

# Rows of the log are only added, and most are read within the hour: a vacuum by number
# freezes each page once, soon after it is full, and no vacuum reads it again.
LOG_STORAGE = {
    "autovacuum_vacuum_insert_scale_factor": 0,
    "autovacuum_vacuum_insert_threshold": 100000,
    "autovacuum_freeze_min_age": 0,
    "autovacuum_analyze_scale_factor": 0.02,
}
SET_LOG_STORAGE = ", ".join(f"{name} = {value}" for name, value in LOG_STORAGE.items())
# The tables of a period, empty. ATTACH makes their indexes and lets readers and writers
# of the log go on, which CREATE TABLE … PARTITION OF would not.
CREATE_PERIOD = f"""
CREATE FUNCTION journal_create_period(number bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    block CONSTANT bigint := 10000000000;
    base text;
    part text;
BEGIN
    FOREACH base IN ARRAY ARRAY[
        'journal_logrecord', 'journal_logpayload', 'journal_logposition'
    ] LOOP
        part := base || '_' || number;
        EXECUTE format(
            'CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING STORAGE)'
            ' WITH ({SET_LOG_STORAGE})', part, base);
        EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)',
            base, part, number * block, (number + 1) * block);
        IF base <> 'journal_logrecord' THEN
            EXECUTE format(
                'ALTER TABLE %I ADD FOREIGN KEY (record_id) REFERENCES %I (id)'
                ' DEFERRABLE INITIALLY DEFERRED', part, 'journal_logrecord_' || number);
        END IF;
        IF base = 'journal_logposition' THEN
            EXECUTE format('CREATE UNIQUE INDEX %I ON %I (seq)', part || '_seq', part);
        END IF;
        IF base <> 'journal_logpayload' THEN
            EXECUTE format(
                'CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON %I'
                ' FOR EACH STATEMENT EXECUTE FUNCTION journal_refuse_change()', part);
            EXECUTE format('ALTER TABLE %I ENABLE ALWAYS TRIGGER append_only', part);
        END IF;
    END LOOP;
END $$;
"""
# A period has a record from its beginning, so the newest record is at or above this id.
# A condition with it leaves one partition in a plan.
PERIOD_START = """
CREATE FUNCTION journal_period_start() RETURNS bigint
LANGUAGE plpgsql STABLE PARALLEL SAFE AS $$
BEGIN
    RETURN (SELECT max(number) * 10000000000 FROM journal_logperiod);
END $$;
"""
FIRST_PERIOD = """
SELECT journal_create_period(0);
INSERT INTO journal_logperiod (number, why, first_seq) VALUES (0, 'new', 0);
"""

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
        migrations.RunSQL(
            CREATE_PERIOD, "DROP FUNCTION journal_create_period(bigint)"
        ),
        migrations.RunSQL(PERIOD_START, "DROP FUNCTION journal_period_start()"),
        migrations.RunSQL(FIRST_PERIOD, "DELETE FROM journal_logperiod"),
        migrations.RunSQL(REFUSE_LOSS, "DROP FUNCTION journal_refuse_loss()"),
        migrations.RunSQL(REFUSE_REWRITE, "DROP FUNCTION journal_refuse_rewrite()"),
        kept("journal_logperiod"),
        fixed(
            "journal_logperiod",
            ["number", "began_at", "why"],
            rules={
                **once("first_seq"),
                **once(
                    "archived_at",
                    *("archive_file", "archive_digest", "records", "tree"),
                    *("asked_by", "archived_by"),
                ),
            },
        ),
        # An epoch that only waits may be recorded again.
        kept("journal_epoch", but_for="OLD.began_at IS NULL"),
        fixed(
            "journal_epoch",
            ["number", "noticed_at", "why"],
            rules=once(
                "began_at", "asked_by", "reason", "by", "from_record", "solo"
            ),
        ),
        migrations.RunSQL(
            f"ALTER TABLE {OUTBOX} SET ({SET_STORAGE})",
            f"ALTER TABLE {OUTBOX} RESET ({', '.join(STORAGE)})",
        ),
        drop_pattern_indexes("journal"),
    ]
