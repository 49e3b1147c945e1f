"""The amounts of open requests, and the index of the queue by amount.

The index is built while requests are opened and decided. Requests of tools that conceal
any argument get no amount: only the code knows whether it is the amount.
"""

from __future__ import annotations

from typing import ClassVar

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import Q


_COPY_AMOUNTS = """
UPDATE reviews_approvalrequest AS r
SET currency = revision.currency, amount_minor = revision.amount_minor
FROM reviews_requestversion AS version
JOIN reviews_revision AS revision ON revision.id = version.revision_id
JOIN policies_tool AS tool ON tool.id = revision.tool_id
WHERE r.status IN ('pending', 'recallable')
  AND version.request_id = r.id AND version.number = r.version
  AND revision.amount_minor IS NOT NULL AND revision.currency <> ''
  AND coalesce(tool.definition->'sensitive', '[]') = '[]'
"""


class Migration(migrations.Migration):
    atomic = False

    dependencies: ClassVar = [("reviews", "0045_signs_and_amounts_of_lists")]

    operations: ClassVar = [
        migrations.RunSQL(_COPY_AMOUNTS, migrations.RunSQL.noop),
        AddIndexConcurrently(
            model_name="approvalrequest",
            index=models.Index(
                fields=["queue", "supervisors_only", "currency", "amount_minor", "id"],
                name="request_amount",
                condition=Q(status="pending"),
            ),
        ),
    ]
