"""Composite keys that compare the column `canary` of a request, a grant and an execution
with the one of their proposal.

With the checks of `0032_canaries`, a row of a grant or an execution can refer to no
canary, whoever writes it. The keys are checked at once, not at the end of the
transaction.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations

from journal.indexes import drop_pattern_indexes


def _add_key(table: str) -> migrations.RunSQL:
    return migrations.RunSQL(
        f"""
        ALTER TABLE {table} ADD CONSTRAINT {table}_canary_key
            FOREIGN KEY (proposal_id, canary) REFERENCES reviews_proposal (id, canary)
        """,
        f"ALTER TABLE {table} DROP CONSTRAINT {table}_canary_key",
    )


class Migration(migrations.Migration):
    dependencies: ClassVar = [("reviews", "0032_canaries")]

    operations: ClassVar = [
        _add_key("reviews_approvalrequest"),
        _add_key("reviews_grant"),
        _add_key("reviews_execution"),
        drop_pattern_indexes("reviews"),
    ]
