"""The table of confusables keeps its head and each pair."""

from __future__ import annotations

from tests.house.confusables import LICENCE, TABLE, shorten

SOURCE = """\ufeff# confusables.txt
# Version: 1
#
05AD ;\t0596 ;\tMA\t# ( x ) A -> B\t#

00A2 ;\t0063 0338 ;\tMA\t# ( y ) # z
2028 ;\t0596 ;\tMA\t#
"""


def test_the_table_has_each_prototype_once() -> None:
    head, rows = shorten(SOURCE).split(LICENCE)
    assert head == "# confusables.txt\n# Version: 1\n"
    assert rows.splitlines()[2:] == ["0063 0338: 00A2", "0596: 05AD 2028"]


def test_the_table_in_use_says_whose_it_is() -> None:
    head = TABLE.read_text("utf-8").splitlines()[:12]
    assert LICENCE in head
    assert any("Unicode Security Mechanisms for UTS #39" in line for line in head)
