"""A finished thread stays finished; a checkpoint changes only by losing its blob."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations

from journal.triggers import immutable, legal_steps

THREAD = [("", "running"), ("running", "finished")]


class Migration(migrations.Migration):
    dependencies: ClassVar = [("agents", "0001_initial")]

    operations: ClassVar = [
        legal_steps("agents_thread", THREAD),
        immutable("agents_checkpoint", but_for=["blob"]),
    ]
