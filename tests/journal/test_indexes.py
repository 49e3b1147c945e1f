"""No row is entered in an index that nothing reads."""

from __future__ import annotations

import pytest
from django.db import connection


@pytest.mark.django_db
def test_no_index_is_made_for_like() -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()"
            " AND tablename ~ '^(agents|journal|policies|reviews)_'"
            " AND indexdef LIKE '%\\_pattern\\_ops%'"
        )
        assert cursor.fetchall() == []
