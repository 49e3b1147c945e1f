"""A draft belongs to one panel, of a verdict or of a message, so that a text typed for
one purpose is never offered for another. A draft without a verdict keeps no panel: it
is shown where nothing can be sent any more."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies: ClassVar = [("reviews", "0051_kept_rows")]

    operations: ClassVar = [
        migrations.RenameField("draft", "verdict", "panel"),
        migrations.AlterField(
            "draft", "panel", models.CharField(blank=True, max_length=20)
        ),
        migrations.RemoveConstraint("draft", "draft_once"),
        migrations.AddConstraint(
            "draft",
            models.UniqueConstraint(
                fields=["person", "request", "panel"], name="draft_once"
            ),
        ),
        migrations.RunSQL(migrations.RunSQL.noop, "DELETE FROM reviews_draft"),
    ]
