"""The outbox is a queue: nearly every row is updated two or three times and deleted. Room
on each page for those updates, and a vacuum by number instead of by share of the table,
so that what a sweep costs does not grow with the day."""

from __future__ import annotations

from django.db import migrations

TABLE = "journal_outboxmessage"
OPTIONS = {
    "fillfactor": 70,
    "autovacuum_vacuum_scale_factor": 0,
    "autovacuum_vacuum_threshold": 2000,
    "autovacuum_vacuum_insert_scale_factor": 0,
    "autovacuum_vacuum_insert_threshold": 20000,
    "autovacuum_analyze_scale_factor": 0,
    "autovacuum_analyze_threshold": 20000,
    "autovacuum_vacuum_cost_delay": 1,
}
SET = ", ".join(f"{name} = {value}" for name, value in OPTIONS.items())


class Migration(migrations.Migration):
    dependencies = [("journal", "0003_epoch_after_a_restore")]

    operations = [
        migrations.RunSQL(
            f"ALTER TABLE {TABLE} SET ({SET})",
            f"ALTER TABLE {TABLE} RESET ({', '.join(OPTIONS)})",
        )
    ]
