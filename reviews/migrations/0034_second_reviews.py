"""Decisions that another person reviews a second time."""

from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
import reviews.choices
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies: ClassVar = [
        ('reviews', '0033_canary_keys'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name='SecondReview',
            fields=[
                ('decision', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='second', serialize=False, to='reviews.decision')),
                ('tool_name', models.CharField(max_length=64)),
                ('risk', models.CharField(choices=[('low', 'low'), ('medium', 'medium'), ('high', 'high'), ('critical', 'critical')], max_length=8)),
                ('cause', models.CharField(choices=[('sample', 'sample'), ('fast', 'fast')], max_length=6)),
                ('chosen_at', models.DateTimeField()),
                ('due_at', models.DateTimeField()),
                ('verdict', models.CharField(blank=True, max_length=8)),
                ('reason', models.TextField(blank=True)),
                ('answered_at', models.DateTimeField(null=True)),
                ('agrees', models.BooleanField(null=True)),
                ('upheld', models.CharField(blank=True, choices=[('first', 'first'), ('second', 'second')], max_length=6)),
                ('ruling', models.TextField(blank=True)),
                ('ruled_at', models.DateTimeField(null=True)),
                ('arbiter', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ('reviewer', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'indexes': [models.Index(condition=models.Q(('answered_at__isnull', True)), fields=['due_at'], name='second_review_waiting'), models.Index(condition=models.Q(('agrees', False), ('ruled_at__isnull', True)), fields=['answered_at'], name='second_review_split'), models.Index(fields=['answered_at'], name='second_review_answered')],
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('agrees__isnull', True), ('answered_at__isnull', True), ('reviewer__isnull', True), ('verdict', '')), models.Q(('agrees__isnull', False), ('answered_at__isnull', False), ('reviewer__isnull', False), ('verdict__in', [reviews.choices.Verdict['APPROVE'], reviews.choices.Verdict['REJECT']])), _connector='OR'), name='second_review_answer_paired'), models.CheckConstraint(condition=models.Q(models.Q(('arbiter__isnull', True), ('ruled_at__isnull', True), ('upheld', '')), models.Q(('agrees', False), ('arbiter__isnull', False), ('ruled_at__isnull', False), models.Q(('upheld', ''), _negated=True)), _connector='OR'), name='second_review_ruling_paired')],
            },
        ),
    ]
