"""A dataset that its administrator withdrew, or that nobody answered."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models

from journal.triggers import legal_steps

BEFORE = [
    ('', 'asked'),
    ('asked', 'running'),
    ('asked', 'refused'),
    ('running', 'done'),
    ('running', 'failed'),
]
DATASET = [*BEFORE, ('asked', 'withdrawn'), ('asked', 'lapsed')]
# PostgreSQL changes no column that a trigger names, so the old trigger goes first.
_OLD = legal_steps('reviews_dataset', BEFORE)


class Migration(migrations.Migration):

    dependencies: ClassVar = [
        ('reviews', '0039_on_call'),
    ]

    operations: ClassVar = [
        migrations.RunSQL(_OLD.reverse_sql, _OLD.sql),
        migrations.RemoveConstraint(
            model_name='dataset',
            name='dataset_status',
        ),
        migrations.RemoveConstraint(
            model_name='dataset',
            name='dataset_settled_paired',
        ),
        migrations.AlterField(
            model_name='dataset',
            name='status',
            field=models.CharField(choices=[('asked', 'asked'), ('running', 'running'), ('done', 'done'), ('failed', 'failed'), ('refused', 'refused'), ('withdrawn', 'withdrawn'), ('lapsed', 'lapsed')], max_length=9),
        ),
        migrations.AddConstraint(
            model_name='dataset',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['asked', 'running', 'done', 'failed', 'refused', 'withdrawn', 'lapsed'])), name='dataset_status'),
        ),
        migrations.AddConstraint(
            model_name='dataset',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('settled_at__isnull', True), ('settled_by__isnull', True), ('status', 'asked')), models.Q(('settled_at__isnull', False), ('settled_by__isnull', True), ('status__in', ['withdrawn', 'lapsed'])), models.Q(models.Q(('status__in', ['asked', 'withdrawn', 'lapsed']), _negated=True), ('settled_at__isnull', False), ('settled_by__isnull', False)), _connector='OR'), name='dataset_settled_paired'),
        ),
        legal_steps('reviews_dataset', DATASET),
    ]
