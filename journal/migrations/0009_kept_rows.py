"""The functions by which tables refuse DELETE, and UPDATE of what never changes. An
epoch that began is kept; one that only waits may be recorded again."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations

from journal.triggers import fixed, kept, once

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


class Migration(migrations.Migration):
    dependencies: ClassVar = [("journal", "0008_log_by_day")]

    operations: ClassVar = [
        migrations.RunSQL(REFUSE_LOSS, "DROP FUNCTION journal_refuse_loss()"),
        migrations.RunSQL(REFUSE_REWRITE, "DROP FUNCTION journal_refuse_rewrite()"),
        kept("journal_epoch", but_for="OLD.began_at IS NULL"),
        fixed(
            "journal_epoch",
            ["number", "noticed_at", "why"],
            rules=once("began_at", "asked_by", "reason", "by", "from_record"),
        ),
    ]
