"""Groups as resources: their members cost one query, where they are wanted."""

from __future__ import annotations

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.conftest import Gate
from tests.desk.scim.conftest import Call
from tests.desk.scim.test_views import add_group

pytestmark = pytest.mark.django_db


def test_members_of_a_page_are_read_at_once_and_only_where_wanted(
    gate: Gate, call: Call
) -> None:
    def count(query: str) -> tuple[int, int]:
        with CaptureQueriesContext(
            connection,
        ) as captured:
            assert call("GET", f"/Groups?{query}").status_code == 200
        texts = [one["sql"] for one in captured]
        return len(texts), sum("policies_provisionedmember" in sql for sql in texts)

    add_group(call, "first", gate.rita, gate.sue)
    call("GET", "/Groups")
    before = count("count=100")
    for name in ("second", "third"):
        add_group(call, name, gate.rita, gate.sue)
    assert count("count=100") == before
    assert before[1] == 1
    for query in ("excludedAttributes=members", "attributes=displayName"):
        assert count(query) == (before[0] - 1, 0)
    listed = json.loads(call("GET", "/Groups").content)["Resources"]
    assert [len(group["members"]) for group in listed] == [2, 2, 2]
