"""One person is one account: no two have the same mail address in another case."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, ClassVar

from django.db import migrations, models
from django.db.models.functions import Lower


def refuse_shared_addresses(apps: Any, schema_editor: Any) -> None:
    """Raises RuntimeError: which of two accounts stays is for an administrator to
    say."""
    sharing = defaultdict(list)
    people = apps.get_model("policies", "Person").objects.exclude(email="")
    for folded, username in people.annotate(folded=Lower("email")).values_list(
        "folded", "username"
    ):
        sharing[folded].append(username)
    twice = [", ".join(sorted(names)) for names in sharing.values() if len(names) > 1]
    if twice:
        raise RuntimeError(
            "These accounts share a mail address, but one person has one account: "
            f"{'; '.join(sorted(twice))}. Nothing was changed. With the version that "
            "ran before, give each account an address of its own and deactivate those "
            "that are not needed; then migrate again."
        )


class Migration(migrations.Migration):
    dependencies: ClassVar = [("policies", "0002_triggers")]

    operations: ClassVar = [
        migrations.RunPython(refuse_shared_addresses, migrations.RunPython.noop),
        migrations.AddConstraint(
            model_name="person",
            constraint=models.UniqueConstraint(
                Lower("email"),
                condition=~models.Q(email=""),
                name="person_one_account",
                violation_error_message="Somebody has this mail address already.",
            ),
        ),
    ]
