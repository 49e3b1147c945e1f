"""Datasets of decided requests for evaluation, and the steps of their status."""

from __future__ import annotations

from typing import ClassVar

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.expressions
import reviews.models.base
from django.conf import settings
from django.db import migrations, models

from journal.triggers import legal_steps

DATASET = [
    ('', 'asked'),
    ('asked', 'running'),
    ('asked', 'refused'),
    ('running', 'done'),
    ('running', 'failed'),
]


class Migration(migrations.Migration):

    dependencies: ClassVar = [
        ('reviews', '0035_traceparent'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name='Dataset',
            fields=[
                ('id', models.CharField(default=reviews.models.base.new_dataset_id, max_length=40, primary_key=True, serialize=False)),
                ('status', models.CharField(choices=[('asked', 'asked'), ('running', 'running'), ('done', 'done'), ('failed', 'failed'), ('refused', 'refused')], max_length=7)),
                ('purpose', models.TextField()),
                ('tools', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), size=None)),
                ('since', models.DateTimeField()),
                ('until', models.DateTimeField()),
                ('with_canaries', models.BooleanField(default=False)),
                ('train', models.PositiveSmallIntegerField()),
                ('validation', models.PositiveSmallIntegerField()),
                ('test', models.PositiveSmallIntegerField()),
                ('asked_at', models.DateTimeField()),
                ('settled_at', models.DateTimeField(null=True)),
                ('refusal', models.TextField(blank=True)),
                ('key', models.BinaryField(null=True)),
                ('until_decision', models.BigIntegerField(default=0)),
                ('rows', models.PositiveIntegerField(default=0)),
                ('rows_in_all', models.PositiveIntegerField(default=0)),
                ('size', models.PositiveBigIntegerField(default=0)),
                ('counts', models.JSONField(default=dict)),
                ('problem', models.CharField(blank=True, max_length=200)),
                ('finished_at', models.DateTimeField(null=True)),
                ('asked_by', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='datasets', to=settings.AUTH_USER_MODEL)),
                ('settled_by', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='DatasetPart',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveIntegerField()),
                ('body', models.BinaryField()),
                ('dataset', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='parts', to='reviews.dataset')),
            ],
        ),
        migrations.AddIndex(
            model_name='dataset',
            index=models.Index(fields=['-asked_at'], name='dataset_newest'),
        ),
        migrations.AddIndex(
            model_name='dataset',
            index=models.Index(condition=models.Q(('status', 'done')), fields=['finished_at'], name='dataset_kept'),
        ),
        migrations.AddConstraint(
            model_name='dataset',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['asked', 'running', 'done', 'failed', 'refused'])), name='dataset_status'),
        ),
        migrations.AddConstraint(
            model_name='dataset',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('settled_at__isnull', True), ('settled_by__isnull', True), ('status', 'asked')), models.Q(models.Q(('status', 'asked'), _negated=True), ('settled_at__isnull', False), ('settled_by__isnull', False)), _connector='OR'), name='dataset_settled_paired'),
        ),
        migrations.AddConstraint(
            model_name='dataset',
            constraint=models.CheckConstraint(condition=models.Q(('settled_by__isnull', True), models.Q(models.Q(('settled_by', models.F('asked_by')), _negated=True), models.Q(('settled_by', models.F('owner')), _negated=True)), _connector='OR'), name='dataset_second_person'),
        ),
        migrations.AddConstraint(
            model_name='dataset',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('key__isnull', False), ('status', 'running')), models.Q(models.Q(('status', 'running'), _negated=True), ('key__isnull', True)), _connector='OR'), name='dataset_key_while_running'),
        ),
        migrations.AddConstraint(
            model_name='dataset',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('finished_at__isnull', False), ('status__in', ['done', 'failed'])), models.Q(models.Q(('status__in', ['done', 'failed']), _negated=True), ('finished_at__isnull', True)), _connector='OR'), name='dataset_finish_paired'),
        ),
        migrations.AddConstraint(
            model_name='dataset',
            constraint=models.CheckConstraint(condition=models.Q(('test', django.db.models.expressions.CombinedExpression(django.db.models.expressions.CombinedExpression(models.Value(100), '-', models.F('train')), '-', models.F('validation')))), name='dataset_shares_whole'),
        ),
        migrations.AddConstraint(
            model_name='datasetpart',
            constraint=models.UniqueConstraint(fields=('dataset', 'number'), name='dataset_part_number'),
        ),
        legal_steps('reviews_dataset', DATASET),
    ]
