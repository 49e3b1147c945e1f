from __future__ import annotations

from pathlib import Path

from counterseal_conformance.agents.tables import Table


def test_values_are_there_for_the_next_process(tmp_path: Path) -> None:
    file = tmp_path / "run.sqlite"
    Table(file).put("b", b"bytes")
    Table(file).put("a", "text")
    assert Table(file).list_all() == {"a": "text", "b": b"bytes"}
    assert Table(file).get("b") == b"bytes"
    assert Table(file).get("c") is None
    assert Table(file, "others").list_all() == {}


def test_a_name_has_one_value(tmp_path: Path) -> None:
    table = Table(tmp_path / "run.sqlite")
    table.add("a", "first")
    table.add("a", "second")
    assert table.get("a") == "first"
    table.put("a", "third")
    assert table.list_all() == {"a": "third"}
    table.drop("a")
    assert table.get("a") is None
