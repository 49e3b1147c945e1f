"""No query has conditions of the form LIKE 'x%'."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations

from journal.indexes import drop_pattern_indexes


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("policies", "0007_mail_address_message"),
    ]

    operations: ClassVar = [
        drop_pattern_indexes("policies"),
    ]
