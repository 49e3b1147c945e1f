"""The text of a stored document says what the document says."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from bench.seed import POLICY as BENCH
from demo.seed import POLICY as DEMO
from policies.active import to_plain_data
from policies.documents import parse_document
from policies.documents.source import write_source
from tests import factories


def store(source: Any) -> dict[str, Any]:
    return to_plain_data(
        parse_document(source, variables={"STORE_URL": "http://127.0.0.1:8001"})
    )


DOCUMENTS = {
    "demo": lambda: DEMO.read_text(),
    "bench": lambda: BENCH.read_text(),
    "tests": factories.document_of_tests,
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_text_is_parsed_to_the_same_document(name: str) -> None:
    data = store(DOCUMENTS[name]())
    text = write_source(data)
    assert store(text) == data
    assert len(text) < len(yaml.safe_dump(data))


def test_defaults_are_left_out_and_texts_are_readable() -> None:
    document = factories.document_of_tests()
    document["rules"][0]["text"] = "Große Beträge: zwei Leute."
    text = write_source(store(document))
    assert "Große Beträge: zwei Leute." in text
    assert "evidence_items" not in text
    assert text.startswith("name: ")
