"""Canaries, and the columns and checks by which none of them can be approved or executed.

`0033_canary_keys` adds the composite keys.
"""

from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies: ClassVar = [
        ('policies', '0010_standing_grant_pattern_index'),
        ('reviews', '0031_half_time_reminder'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name='Canary',
            fields=[
                ('proposal', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, primary_key=True, related_name='planted', serialize=False, to='reviews.proposal')),
                ('tool_name', models.CharField(max_length=64)),
                ('risk', models.CharField(choices=[('low', 'low'), ('medium', 'medium'), ('high', 'high'), ('critical', 'critical')], max_length=8)),
                ('defect', models.CharField(choices=[('recipient_domain', 'recipient_domain'), ('extra_bcc', 'extra_bcc'), ('amount_tenfold', 'amount_tenfold'), ('other_currency', 'other_currency'), ('other_account', 'other_account'), ('widened_path', 'widened_path'), ('forced_command', 'forced_command'), ('missing_where', 'missing_where'), ('widened_role', 'widened_role'), ('unlimited_access', 'unlimited_access'), ('wrong_environment', 'wrong_environment'), ('public_audience', 'public_audience'), ('other_host', 'other_host'), ('other_target', 'other_target'), ('lookalike_letter', 'lookalike_letter'), ('reversed_text', 'reversed_text'), ('hidden_tail', 'hidden_tail'), ('leaked_login', 'leaked_login'), ('rationale_mismatch', 'rationale_mismatch'), ('claimed_approval', 'claimed_approval')], max_length=24)),
                ('field', models.CharField(blank=True, max_length=200)),
                ('inserted_at', models.DateTimeField()),
                ('next_after', models.PositiveSmallIntegerField()),
                ('ending', models.CharField(blank=True, choices=[('decided', 'decided'), ('asked', 'asked'), ('expired', 'expired'), ('stopped', 'stopped')], max_length=9)),
                ('ended_at', models.DateTimeField(null=True)),
                ('verdict', models.CharField(blank=True, max_length=8)),
                ('caught', models.BooleanField(null=True)),
                ('took_ms', models.PositiveIntegerField(null=True)),
                ('realism', models.CharField(blank=True, choices=[('obvious', 'obvious'), ('unclear', 'unclear')], max_length=8)),
            ],
        ),
        migrations.AddField(
            model_name='approvalrequest',
            name='canary',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name='approvalrequest',
            name='canary_for',
            field=models.CharField(blank=True, db_default='', max_length=40),
        ),
        migrations.AddField(
            model_name='execution',
            name='canary',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name='grant',
            name='canary',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name='proposal',
            name='canary',
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddIndex(
            model_name='approvalrequest',
            index=models.Index(condition=models.Q(('canary', True), ('status', 'pending')), fields=['proposal'], name='request_open_canary'),
        ),
        migrations.AddConstraint(
            model_name='approvalrequest',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('canary', False), ('canary_for', '')), models.Q(('canary', True), models.Q(('canary_for', ''), _negated=True)), _connector='OR'), name='request_canary_paired'),
        ),
        migrations.AddConstraint(
            model_name='approvalrequest',
            constraint=models.CheckConstraint(condition=models.Q(('canary', False), ('status__in', ['pending', 'withdrawn']), _connector='OR'), name='request_canary_ends_withdrawn'),
        ),
        migrations.AddConstraint(
            model_name='execution',
            constraint=models.CheckConstraint(condition=models.Q(('canary', False)), name='execution_no_canary'),
        ),
        migrations.AddConstraint(
            model_name='grant',
            constraint=models.CheckConstraint(condition=models.Q(('canary', False)), name='grant_no_canary'),
        ),
        migrations.AddConstraint(
            model_name='proposal',
            constraint=models.UniqueConstraint(fields=('id', 'canary'), name='proposal_canary'),
        ),
        migrations.AddConstraint(
            model_name='proposal',
            constraint=models.CheckConstraint(condition=models.Q(('canary', False), ('heard', False), _connector='OR'), name='proposal_canary_unheard'),
        ),
        migrations.AddField(
            model_name='canary',
            name='reviewer',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='canaries', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='canary',
            name='source',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='reviews.proposal'),
        ),
        migrations.AddIndex(
            model_name='canary',
            index=models.Index(fields=['reviewer', '-inserted_at'], name='canary_newest'),
        ),
        migrations.AddIndex(
            model_name='canary',
            index=models.Index(fields=['ended_at'], name='canary_ended'),
        ),
        migrations.AddConstraint(
            model_name='canary',
            constraint=models.CheckConstraint(condition=models.Q(('defect__in', ['recipient_domain', 'extra_bcc', 'amount_tenfold', 'other_currency', 'other_account', 'widened_path', 'forced_command', 'missing_where', 'widened_role', 'unlimited_access', 'wrong_environment', 'public_audience', 'other_host', 'other_target', 'lookalike_letter', 'reversed_text', 'hidden_tail', 'leaked_login', 'rationale_mismatch', 'claimed_approval'])), name='canary_defect'),
        ),
        migrations.AddConstraint(
            model_name='canary',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', True), ('ending', '')), models.Q(models.Q(('ending', ''), _negated=True), ('ended_at__isnull', False)), _connector='OR'), name='canary_end_paired'),
        ),
        migrations.AddConstraint(
            model_name='canary',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('caught__isnull', False), ('ending', 'decided'), models.Q(('verdict', ''), _negated=True)), models.Q(models.Q(('ending', 'decided'), _negated=True), ('caught__isnull', True), ('verdict', '')), _connector='OR'), name='canary_verdict_paired'),
        ),
        migrations.AddConstraint(
            model_name='canary',
            constraint=models.UniqueConstraint(condition=models.Q(('ending', '')), fields=('reviewer',), name='canary_one_open'),
        ),
    ]
