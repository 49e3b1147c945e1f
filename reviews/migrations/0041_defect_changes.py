"""Changes of how often a kind of defect is planted, and the steps of their status."""

from __future__ import annotations

from typing import ClassVar

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

from journal.triggers import legal_steps

CHANGE = [
    ('', 'proposed'),
    ('proposed', 'confirmed'),
    ('proposed', 'refused'),
    ('proposed', 'withdrawn'),
    ('proposed', 'lapsed'),
]


class Migration(migrations.Migration):

    dependencies: ClassVar = [
        ('reviews', '0040_datasets_unanswered'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name='DefectChange',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('defect', models.CharField(choices=[('recipient_domain', 'recipient_domain'), ('extra_bcc', 'extra_bcc'), ('amount_tenfold', 'amount_tenfold'), ('other_currency', 'other_currency'), ('other_account', 'other_account'), ('widened_path', 'widened_path'), ('forced_command', 'forced_command'), ('missing_where', 'missing_where'), ('widened_role', 'widened_role'), ('unlimited_access', 'unlimited_access'), ('wrong_environment', 'wrong_environment'), ('public_audience', 'public_audience'), ('other_host', 'other_host'), ('other_target', 'other_target'), ('lookalike_letter', 'lookalike_letter'), ('reversed_text', 'reversed_text'), ('hidden_tail', 'hidden_tail'), ('leaked_login', 'leaked_login'), ('rationale_mismatch', 'rationale_mismatch'), ('claimed_approval', 'claimed_approval')], max_length=24)),
                ('weight', models.PositiveSmallIntegerField()),
                ('reason', models.TextField()),
                ('status', models.CharField(choices=[('proposed', 'proposed'), ('confirmed', 'confirmed'), ('refused', 'refused'), ('withdrawn', 'withdrawn'), ('lapsed', 'lapsed')], max_length=9)),
                ('asked_at', models.DateTimeField()),
                ('settled_at', models.DateTimeField(null=True)),
                ('refusal', models.TextField(blank=True)),
            ],
        ),
        migrations.AddField(
            model_name='defectchange',
            name='asked_by',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='defectchange',
            name='settled_by',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddIndex(
            model_name='defectchange',
            index=models.Index(condition=models.Q(('status', 'confirmed')), fields=['defect', '-settled_at'], name='defect_change_newest'),
        ),
        migrations.AddConstraint(
            model_name='defectchange',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['proposed', 'confirmed', 'refused', 'withdrawn', 'lapsed'])), name='defect_change_status'),
        ),
        migrations.AddConstraint(
            model_name='defectchange',
            constraint=models.CheckConstraint(condition=models.Q(('defect__in', ['recipient_domain', 'extra_bcc', 'amount_tenfold', 'other_currency', 'other_account', 'widened_path', 'forced_command', 'missing_where', 'widened_role', 'unlimited_access', 'wrong_environment', 'public_audience', 'other_host', 'other_target', 'lookalike_letter', 'reversed_text', 'hidden_tail', 'leaked_login', 'rationale_mismatch', 'claimed_approval'])), name='defect_change_kind'),
        ),
        migrations.AddConstraint(
            model_name='defectchange',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('settled_at__isnull', True), ('settled_by__isnull', True), ('status', 'proposed')), models.Q(('settled_at__isnull', False), ('settled_by__isnull', False), ('status__in', ['confirmed', 'refused'])), models.Q(('settled_at__isnull', False), ('settled_by__isnull', True), ('status__in', ['withdrawn', 'lapsed'])), _connector='OR'), name='defect_change_settled_paired'),
        ),
        migrations.AddConstraint(
            model_name='defectchange',
            constraint=models.CheckConstraint(condition=models.Q(('settled_by__isnull', True), models.Q(('settled_by', models.F('asked_by')), _negated=True), _connector='OR'), name='defect_change_second_person'),
        ),
        migrations.AddConstraint(
            model_name='defectchange',
            constraint=models.UniqueConstraint(condition=models.Q(('status', 'proposed')), fields=('defect',), name='defect_change_one_open'),
        ),
        legal_steps('reviews_defectchange', CHANGE),
    ]
