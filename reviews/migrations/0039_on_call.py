"""Who is on call for a queue, and drills that measure how soon a message is seen."""

from __future__ import annotations

from typing import ClassVar

import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies: ClassVar = [
        ('policies', '0010_standing_grant_pattern_index'),
        ('reviews', '0038_rollups_of_bins'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar = [
        migrations.CreateModel(
            name='DrillSighting',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('channel', models.CharField(blank=True, max_length=32)),
                ('at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='NotificationDrill',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('risk', models.CharField(choices=[('low', 'low'), ('medium', 'medium'), ('high', 'high'), ('critical', 'critical')], max_length=8)),
                ('started_by', models.CharField(max_length=40)),
                ('started_at', models.DateTimeField()),
                ('ends_at', models.DateTimeField()),
                ('people', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=40), size=None)),
                ('on_call', models.BooleanField()),
            ],
        ),
        migrations.CreateModel(
            name='OnCallShift',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('begins_at', models.DateTimeField()),
                ('ends_at', models.DateTimeField()),
                ('planned_by', models.CharField(max_length=40)),
                ('planned_at', models.DateTimeField()),
            ],
        ),
        migrations.RemoveConstraint(
            model_name='notice',
            name='notice_about_one',
        ),
        migrations.AddField(
            model_name='drillsighting',
            name='person',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='notificationdrill',
            name='queue',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='drills', to='policies.queue'),
        ),
        migrations.AddField(
            model_name='drillsighting',
            name='drill',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='sightings', to='reviews.notificationdrill'),
        ),
        migrations.AddField(
            model_name='notice',
            name='drill',
            field=models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='notices', to='reviews.notificationdrill'),
        ),
        migrations.AddIndex(
            model_name='notice',
            index=models.Index(condition=models.Q(('drill__isnull', False)), fields=['drill'], name='notice_of_drill'),
        ),
        migrations.AddConstraint(
            model_name='notice',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('alarm__isnull', True), ('drill__isnull', True), ('execution__isnull', True), ('request__isnull', False)), models.Q(('alarm__isnull', True), ('drill__isnull', True), ('execution__isnull', False), ('request__isnull', True)), models.Q(('alarm__isnull', False), ('drill__isnull', True), ('execution__isnull', True), ('request__isnull', True)), models.Q(('alarm__isnull', True), ('drill__isnull', False), ('execution__isnull', True), ('request__isnull', True)), _connector='OR'), name='notice_about_one'),
        ),
        migrations.AddField(
            model_name='oncallshift',
            name='person',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='shifts', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='oncallshift',
            name='queue',
            field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='shifts', to='policies.queue'),
        ),
        migrations.AddIndex(
            model_name='notificationdrill',
            index=models.Index(fields=['queue', '-started_at'], name='drill_newest'),
        ),
        migrations.AddConstraint(
            model_name='notificationdrill',
            constraint=models.CheckConstraint(condition=models.Q(('risk__in', ['low', 'medium', 'high', 'critical'])), name='drill_risk'),
        ),
        migrations.AddConstraint(
            model_name='drillsighting',
            constraint=models.UniqueConstraint(fields=('drill', 'person'), name='drill_sighting_once'),
        ),
        migrations.AddIndex(
            model_name='oncallshift',
            index=models.Index(fields=['queue', 'ends_at'], name='shift_by_queue'),
        ),
        migrations.AddConstraint(
            model_name='oncallshift',
            constraint=models.CheckConstraint(condition=models.Q(('ends_at__gt', models.F('begins_at'))), name='shift_ends_after_it_begins'),
        ),
    ]
