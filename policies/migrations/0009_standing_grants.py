"""Permissions that people give in advance; only their uses and their revocation change."""

from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
import policies.models
from django.conf import settings
from django.db import migrations, models

from journal.triggers import immutable


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ('policies', '0008_indexes_that_nothing_reads'),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name='StandingGrant',
            fields=[
                ('id', models.CharField(default=policies.models.new_standing_grant_id, max_length=40, primary_key=True, serialize=False)),
                ('agent', models.CharField(max_length=64)),
                ('thread', models.CharField(max_length=128)),
                ('tool', models.CharField(max_length=64)),
                ('request', models.CharField(max_length=40)),
                ('role', models.CharField(max_length=20)),
                ('reason', models.TextField()),
                ('issued_at', models.DateTimeField()),
                ('expires_at', models.DateTimeField()),
                ('budget', models.PositiveIntegerField()),
                ('uses', models.PositiveIntegerField(default=0)),
                ('revoked_at', models.DateTimeField(null=True)),
                ('issued_by', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('queue', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='policies.queue')),
                ('revoked_by', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('revoked_at__isnull', True)), fields=['agent', 'thread', 'tool'], name='standing_grant_run'), models.Index(fields=['-issued_at'], name='standing_grant_newest')],
                'constraints': [models.CheckConstraint(condition=models.Q(('uses__lte', models.F('budget'))), name='standing_grant_budget'), models.CheckConstraint(condition=models.Q(('expires_at__gt', models.F('issued_at'))), name='standing_grant_ends'), models.CheckConstraint(condition=models.Q(models.Q(('revoked_at__isnull', True), ('revoked_by__isnull', True)), models.Q(('revoked_at__isnull', False), ('revoked_by__isnull', False)), _connector='OR'), name='standing_grant_revoked')],
            },
        ),
        immutable(
            "policies_standinggrant",
            but_for=["uses"],
            once=["revoked_at", "revoked_by_id"],
        ),
    ]
