"""Comparison of HTML."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.markup import find_element, flatten, read_text

HTML = """
<div  data-testid="outer"
      class="a" >
  <div data-testid="inner">
    2 requests.
    <a href="/x/">Open &amp; read</a>
  </div>
  <p>Else</p>
</div>
"""


def test_line_breaks_make_no_difference() -> None:
    assert flatten(HTML) == (
        '<div data-testid="outer" class="a"><div data-testid="inner">2 requests. '
        '<a href="/x/">Open &amp; read</a></div><p>Else</p></div>'
    )
    assert flatten(flatten(HTML).replace("><", ">\n  <")) == flatten(HTML)


def test_an_element_is_found_by_its_testid_with_all_inside() -> None:
    html = flatten(HTML)
    assert find_element(html, "inner").endswith("read</a></div>")
    assert find_element(html, "outer") == html
    with pytest.raises(AssertionError, match="no-such"):
        find_element(html, "no-such")


def test_text_is_what_a_person_reads() -> None:
    response = SimpleNamespace(content=HTML.encode())
    assert read_text(response, "inner") == "2 requests. Open & read"
    assert read_text(response).endswith("read Else")
