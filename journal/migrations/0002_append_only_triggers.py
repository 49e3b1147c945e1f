"""The log's rows are only ever added: the database refuses everything else."""

from __future__ import annotations

from django.db import migrations

TABLES = ("journal_logrecord", "journal_logposition")

CREATE_FUNCTION = """
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


class Migration(migrations.Migration):
    dependencies = [("journal", "0001_initial")]

    operations = [
        migrations.RunSQL(CREATE_FUNCTION, "DROP FUNCTION journal_refuse_change()"),
        *(
            migrations.RunSQL(
                CREATE_TRIGGER.format(table=table), DROP_TRIGGER.format(table=table)
            )
            for table in TABLES
        ),
    ]
