"""Second reviews of decisions on a target that nobody decided on before."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies: ClassVar = [
        ('reviews', '0042_practice'),
    ]

    operations: ClassVar = [
        migrations.AlterField(
            model_name='secondreview',
            name='cause',
            field=models.CharField(choices=[('sample', 'sample'), ('fast', 'fast'), ('target', 'target')], max_length=6),
        ),
    ]
