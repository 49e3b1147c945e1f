"""The database refuses times that people give outside the years that the product
handles."""

from __future__ import annotations

import datetime
from typing import ClassVar

from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies: ClassVar = [
        ('policies', '0010_standing_grant_pattern_index'),
        ('reviews', '0049_clamped_times'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations: ClassVar = [
        migrations.AddConstraint(
            model_name='dataset',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('since__isnull', True), models.Q(('since__gte', datetime.datetime(2000, 1, 1, 0, 0, tzinfo=datetime.timezone.utc)), ('since__lt', datetime.datetime(2101, 1, 1, 0, 0, tzinfo=datetime.timezone.utc))), _connector='OR'), models.Q(('until__isnull', True), models.Q(('until__gte', datetime.datetime(2000, 1, 1, 0, 0, tzinfo=datetime.timezone.utc)), ('until__lt', datetime.datetime(2101, 1, 1, 0, 0, tzinfo=datetime.timezone.utc))), _connector='OR')), name='dataset_years'),
        ),
        migrations.AddConstraint(
            model_name='grant',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('not_before__isnull', True), models.Q(('not_before__gte', datetime.datetime(2000, 1, 1, 0, 0, tzinfo=datetime.timezone.utc)), ('not_before__lt', datetime.datetime(2101, 1, 1, 0, 0, tzinfo=datetime.timezone.utc))), _connector='OR'), models.Q(('expires_at__isnull', True), models.Q(('expires_at__gte', datetime.datetime(2000, 1, 1, 0, 0, tzinfo=datetime.timezone.utc)), ('expires_at__lt', datetime.datetime(2101, 1, 1, 0, 0, tzinfo=datetime.timezone.utc))), _connector='OR')), name='grant_years'),
        ),
        migrations.AddConstraint(
            model_name='oncallshift',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('begins_at__isnull', True), models.Q(('begins_at__gte', datetime.datetime(2000, 1, 1, 0, 0, tzinfo=datetime.timezone.utc)), ('begins_at__lt', datetime.datetime(2101, 1, 1, 0, 0, tzinfo=datetime.timezone.utc))), _connector='OR'), models.Q(('ends_at__isnull', True), models.Q(('ends_at__gte', datetime.datetime(2000, 1, 1, 0, 0, tzinfo=datetime.timezone.utc)), ('ends_at__lt', datetime.datetime(2101, 1, 1, 0, 0, tzinfo=datetime.timezone.utc))), _connector='OR')), name='shift_years'),
        ),
    ]
