from __future__ import annotations

import gc

import pytest

from hitl.garbage_collection import suspend_collection


def test_nothing_is_collected_inside_nor_what_is_left_examined_later() -> None:
    before = gc.get_freeze_count()
    with suspend_collection():
        assert not gc.isenabled()
        imported: list[list[int]] = [[] for _ in range(1000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() >= before + len(imported)


def test_an_import_that_fails_leaves_the_collector_at_work() -> None:
    with pytest.raises(ImportError), suspend_collection():
        raise ImportError
    assert gc.isenabled()
