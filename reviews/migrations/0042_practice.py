"""Practice of reviewers: what was shown, and what they answered."""

from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies: ClassVar = [
        ('reviews', '0041_defect_changes'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name='Practice',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('defect', models.CharField(blank=True, choices=[('recipient_domain', 'recipient_domain'), ('extra_bcc', 'extra_bcc'), ('amount_tenfold', 'amount_tenfold'), ('other_currency', 'other_currency'), ('other_account', 'other_account'), ('widened_path', 'widened_path'), ('forced_command', 'forced_command'), ('missing_where', 'missing_where'), ('widened_role', 'widened_role'), ('unlimited_access', 'unlimited_access'), ('wrong_environment', 'wrong_environment'), ('public_audience', 'public_audience'), ('other_host', 'other_host'), ('other_target', 'other_target'), ('lookalike_letter', 'lookalike_letter'), ('reversed_text', 'reversed_text'), ('hidden_tail', 'hidden_tail'), ('leaked_login', 'leaked_login'), ('rationale_mismatch', 'rationale_mismatch'), ('claimed_approval', 'claimed_approval')], max_length=24)),
                ('started_at', models.DateTimeField()),
                ('ending', models.CharField(blank=True, choices=[('finished', 'finished'), ('skipped', 'skipped')], max_length=8)),
                ('ended_at', models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name='PracticeItem',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveSmallIntegerField()),
                ('defect', models.CharField(blank=True, choices=[('recipient_domain', 'recipient_domain'), ('extra_bcc', 'extra_bcc'), ('amount_tenfold', 'amount_tenfold'), ('other_currency', 'other_currency'), ('other_account', 'other_account'), ('widened_path', 'widened_path'), ('forced_command', 'forced_command'), ('missing_where', 'missing_where'), ('widened_role', 'widened_role'), ('unlimited_access', 'unlimited_access'), ('wrong_environment', 'wrong_environment'), ('public_audience', 'public_audience'), ('other_host', 'other_host'), ('other_target', 'other_target'), ('lookalike_letter', 'lookalike_letter'), ('reversed_text', 'reversed_text'), ('hidden_tail', 'hidden_tail'), ('leaked_login', 'leaked_login'), ('rationale_mismatch', 'rationale_mismatch'), ('claimed_approval', 'claimed_approval')], max_length=24)),
                ('verdict', models.CharField(blank=True, max_length=8)),
                ('answered_at', models.DateTimeField(null=True)),
            ],
        ),
        migrations.AddField(
            model_name='practice',
            name='reviewer',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='practices', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='practiceitem',
            name='practice',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='items', to='reviews.practice'),
        ),
        migrations.AddField(
            model_name='practiceitem',
            name='version',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='reviews.requestversion'),
        ),
        migrations.AddIndex(
            model_name='practice',
            index=models.Index(fields=['reviewer', '-started_at'], name='practice_newest'),
        ),
        migrations.AddConstraint(
            model_name='practice',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', True), ('ending', '')), models.Q(models.Q(('ending', ''), _negated=True), ('ended_at__isnull', False)), _connector='OR'), name='practice_end_paired'),
        ),
        migrations.AddConstraint(
            model_name='practice',
            constraint=models.UniqueConstraint(condition=models.Q(('ending', '')), fields=('reviewer',), name='practice_one_open'),
        ),
        migrations.AddConstraint(
            model_name='practiceitem',
            constraint=models.UniqueConstraint(fields=('practice', 'number'), name='practice_item_number'),
        ),
        migrations.AddConstraint(
            model_name='practiceitem',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('answered_at__isnull', True), ('verdict', '')), models.Q(('answered_at__isnull', False), ('verdict__in', ['approve', 'reject'])), _connector='OR'), name='practice_item_answer_paired'),
        ),
    ]
