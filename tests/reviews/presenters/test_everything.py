"""Every byte of the arguments is on the page or named as uninspectable, for every kind
of tool, whatever an agent puts in; and the page stays short."""

from __future__ import annotations

import copy
import html
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from django.template.loader import render_to_string
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from journal import canonical
from reviews.effects import describe
from reviews.presenters import Presentation, inert, present_effect
from reviews.presenters.arguments import collect_leaves
from reviews.presenters.shapes import ValuePart
from tests.reviews.presenters import kinds

TOOLS = sorted(kinds.EXAMPLES)
REGIONS = ("_effect_region", "_changes", "_reversal")
SENTENCE = 60  # characters of a chip
TRUSTED_WORDS = 180

pieces = st.sampled_from(
    [
        *("rm -rf /", "; ", "$(", "`", "'", '"', "\n", "\n\n\n", " | sh", "<<EOF\n"),
        *("--- a/x\n+++ b/x\n@@ -1 +1 @@\n", "-a\n+b\n", "diff --git a/x b/x\n"),
        *("DELETE FROM t", " WHERE 1=1", "--", "/*", "https://", "@", "x.example"),
        *("<b>", "<img src=//x>", "</td>", "&lt;", "\u202e", "\u200b", "\x00", "é"),
        *("../", "~/.ssh", "0755", "1e22", "-0", "A" * 300, " " * 80, "{cmd}", "%"),
    ]
)
# Without tabs: a line prints them as they are, a cell as a token; test_inert has both.
words = st.lists(pieces | st.text(max_size=6), max_size=5).map(
    lambda found: "".join(found).replace("\t", "")
)
numbers = st.sampled_from([0, 1, -1, 1e22, -0.0, 1e-7, 2**53, 0.1, 12345.678])
scalars = st.none() | st.booleans() | numbers | words
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3)
    ),
    max_leaves=5,
)
few = settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])


def any_arguments(tool: str) -> st.SearchStrategy[dict[str, Any]]:
    """The example with some of its arguments replaced, left out, or added."""
    usual = kinds.EXAMPLES[tool][0]
    known = list(kinds.definition(tool).arguments["properties"])
    changes = st.dictionaries(st.sampled_from(known) | words, values, max_size=4)
    return changes.map(lambda found: {**copy.deepcopy(usual), **found})


def page_of(shown: Presentation) -> str:
    """The regions as the page prints them."""
    page = SimpleNamespace(
        shown=shown,
        warnings=list(describe.list_effect_warnings(shown)),
        effect=shown.sentence,
        action_hash="sha256:0",
        armed=None,
        problem=None,
        read_from="read from the store at 14:20:41",
        no_before="This tool declares no look-up.",
        reversal=shown.reversal,
        declared="Declared in policy v1",
        radius="Impact: legal, financial or reputational",
        if_unclear="Never retried: a person records what happened",
    )
    return "".join(
        render_to_string(f"desk/components/{r}.html", {"page": page}) for r in REGIONS
    )


def read(markup: str) -> str:
    """What a page says, with the marks of our own inside a text taken out."""
    text = re.sub(r'<span class="(vh|n)">.*?</span>', "", markup).replace("\u2212", "-")
    text = re.sub(r'<span class="ctl">line continues</span> ', "", text)
    text = re.sub(r'<span class="ctl"> [^<]*</span>', "", text)
    return squeezed(html.unescape(re.sub(r"<[^>]+>", "", text)))


def squeezed(text: str) -> str:
    return re.sub(r"\s+", "", text).replace("\u2212", "-")


def printed(text: str) -> list[str]:
    """The lines of a text as the page prints them."""
    blocks = inert.build_display(text).blocks
    joined: list[str] = []
    for block in blocks:
        if isinstance(block, inert.BlankLines):
            continue
        if block.goes_on:
            joined[-1] += drawn(block.segments)
        else:
            joined.append(drawn(block.segments))
    return [squeezed(line) for line in joined]


def drawn(segments: Iterable[inert.TextSegment]) -> str:
    own = (one for one in segments if one.kind != "read")
    return "".join(f"⟦{s.text}⟧" if s.kind == "hidden" else s.text for s in own)


def show(tool: str, args: dict[str, Any], before: Any = None) -> Presentation:
    return present_effect(
        kinds.definition(tool), args, before=before, conceal=lambda text: f"[#{text}]"
    )


@pytest.mark.parametrize("tool", TOOLS)
class TestNothingIsLeftOut:
    @few
    @given(data=st.data())
    def test_every_leaf_is_on_the_page(self, tool, data):
        args = data.draw(any_arguments(tool))
        known = data.draw(st.sampled_from([None, kinds.EXAMPLES[tool][1]]))
        shown = show(tool, args, known)
        page = read(page_of(shown))
        hidden = {row.path for row in all_rows(shown) if row.cell.kind == "sensitive"}
        for leaf in collect_leaves(args):
            if leaf.path in hidden:
                continue
            said = leaf.value if isinstance(leaf.value, str) else as_said(leaf.value)
            in_a_row = squeezed(drawn(inert.build_line_segments(said)))
            for line in printed(said):
                assert line in page or in_a_row in page, (leaf.path, line)

    @few
    @given(data=st.data())
    def test_the_sentence_quotes_in_chips_and_nothing_else(self, tool, data):
        shown = show(tool, data.draw(any_arguments(tool)))
        for part in shown.sentence:
            if isinstance(part, ValuePart) and part.untrusted:
                chips = inert.build_part_chips(part.parts) or [
                    inert.build_chip(part.text)
                ]
                plain = [s for one in chips for s in one if s.kind == "plain"]
                most = inert.WHOLE_LENGTH if part.parts else SENTENCE
                assert sum(len(segment.text) for segment in plain) <= most
            else:
                assert part.text.isascii()

    @few
    @given(data=st.data())
    def test_our_own_words_never_repeat_the_agents(self, tool, data):
        """Tags, notes, warnings and reasons are printed as ours."""
        mark = "zqzq"
        args = data.draw(any_arguments(tool))
        marked = put_everywhere(args, mark)
        shown = show(tool, marked, kinds.EXAMPLES[tool][1])
        ours = [tag.text for tag in shown.tags]
        ours += [one.reason for one in shown.uninspectable]
        ours += [pair.note + pair.label for pair in shown.size]
        for row in all_rows(shown):
            ours += [row.note, *row.warns]
        for view in shown.views:
            ours += [getattr(view, "title", ""), getattr(view, "note", "")]
        assert not any(mark in text for text in ours)


@pytest.mark.proof
@pytest.mark.timeout(0)
def test_another_leaf_gives_another_page(proof_n, record_proof):
    """For every kind of tool: any leaf of the arguments for any other value."""
    mutated: Counter[str] = Counter()
    many = settings(few, max_examples=proof_n(small=20, full=400))
    for tool in TOOLS:
        many(mutation(tool, mutated))()
    total = mutated.total()
    record_proof(
        "T15",
        f"{total:,} mutated leaves, {len(TOOLS)} kinds of tools: each another text of "
        f"the page (0 alike: at most {3 / total:.2%})",
    )


def mutation(tool: str, mutated: Counter[str]) -> Callable[[], None]:
    @given(data=st.data())
    def another(data: st.DataObject) -> None:
        mutate(tool, data)
        mutated[tool] += 1

    return another


def mutate(tool: str, data: st.DataObject) -> None:
    args = data.draw(any_arguments(tool))
    places = list(spots(args))
    assume(places)
    changed = copy.deepcopy(args)
    put(changed, data.draw(st.sampled_from(places)), data.draw(scalars))
    assume(as_bytes(args) != as_bytes(changed))
    known = data.draw(st.sampled_from([None, kinds.EXAMPLES[tool][1]]))
    one, other = show(tool, args, known), show(tool, changed, known)
    assert said(page_of(one)) != said(page_of(other))


def said(markup: str) -> str:
    """A page's text to the letter."""
    return html.unescape(re.sub(r"<[^>]+>", "", markup))


def all_rows(shown: Presentation) -> list[Any]:
    grouped = [row for view in shown.views for row in getattr(view, "rows", ())]
    return [*grouped, *shown.other, *shown.unchanged]


def as_said(value: Any) -> str:
    words_of = {True: "yes", False: "no", None: "none"}
    if value is None or isinstance(value, bool):
        return words_of[value]
    if value == [] or value == {}:
        return "no entries" if value == [] else "no fields"
    return json.dumps(value)


def as_bytes(value: Any) -> bytes:
    try:
        return canonical.encode(value)
    except (ValueError, OverflowError):
        return repr(value).encode("utf-8", "surrogatepass")


def spots(value: Any, place: tuple[Any, ...] = ()):
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in inner:
        yield (*place, key)
        if isinstance(part, dict | list):
            yield from spots(part, (*place, key))


def put(root: Any, place: tuple[Any, ...], value: Any) -> None:
    *way, last = place
    for step in way:
        root = root[step]
    root[last] = value


def put_everywhere(value: Any, mark: str) -> Any:
    """The same with a mark in every text that is no name of ours."""
    if isinstance(value, dict):
        return {key: put_everywhere(part, mark) for key, part in value.items()}
    if isinstance(value, list):
        return [put_everywhere(part, mark) for part in value]
    return f"{value}{mark}" if isinstance(value, str) else value


LARGE = 60_000  # about what an agent may send: 64 KiB of arguments


class TestNothingTakesForEver:
    """A page is made while a proposal waits: no argument may make that slow. Each of
    these took a minute or more before its time grew with its length only."""

    @pytest.mark.timeout(60)
    @pytest.mark.parametrize(
        ("tool", "argument", "piece"),
        [
            ("run_command", "cmd", '"a"'),
            ("run_command", "cmd", "aA1"),
            ("run_command", "cmd", "a"),
            ("run_command", "cmd", "rm a; "),
            ("run_command", "cmd", "sudo "),
            ("run_command", "cmd", "$("),
            ("run_command", "cmd", "{,"),
            ("run_command", "cmd", "/a."),
            ("write_file", "path", "a/"),
            ("write_file", "content", "a\nb\n"),
            ("apply_patch", "diff", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"),
            ("send_mail", "body", "<div>"),
            ("send_mail", "body", "<a "),
            ("send_mail", "body", "<a x=y "),
            ("send_mail", "subject", "a@a."),
            ("run_sql", "sql", "DELETE FROM t;"),
            ("run_sql", "sql", "("),
            ("call_api", "url", "https://a?b=c&"),
            ("publish_page", "text", "<p>\n"),
        ],
    )
    def test_a_large_argument_is_shown_at_once(self, tool, argument, piece):
        args, before = kinds.EXAMPLES[tool]
        large = piece * (LARGE // len(piece))
        show(tool, {**args, argument: large}, before)


class TestReadingContract:
    @pytest.mark.parametrize("tool", TOOLS)
    def test_our_own_words_are_few(self, tool):
        page = page_of(show(tool, *kinds.EXAMPLES[tool]))
        ours = re.sub(r"<bdi.*?</bdi>|<details.*?</details>", "", page, flags=re.S)
        ours = re.sub(r'<span class="vh">.*?</span>|<svg.*?</svg>', "", ours)
        said = html.unescape(re.sub(r"<[^>]+>", " ", ours)).split()
        assert len([word for word in said if word.isalpha()]) <= TRUSTED_WORDS

    @pytest.mark.parametrize("tool", TOOLS)
    def test_an_example_is_no_long_review(self, tool):
        assert not show(tool, *kinds.EXAMPLES[tool]).is_long

    def test_more_than_forty_lines_or_twelve_arguments_are_announced(self):
        lines = "".join(f"line {n}\n" for n in range(41))
        shown = kinds.show("write_file", content=lines, before={"content": ""})
        assert shown.is_long
        assert "Long review: about 3 min" in page_of(shown)
        many = kinds.show("run_command", **{f"a{n}": n for n in range(13)})
        assert many.is_long

    def test_a_letter_of_many_words_is_announced(self):
        shown = kinds.show("send_mail", body="word " * 401)
        assert shown.is_long
        assert "Long review: about" in page_of(shown)

    def test_lines_without_a_word_take_a_glance_together(self):
        """9,900 full stops were fifty minutes."""
        end = "P.S. As agreed, 500.00 USD go to the account that you named."
        body = "Hello Mina,\n" + ".\n" * 9_900 + end
        shown = kinds.show("send_mail", body=body)
        page = page_of(shown)
        assert shown.is_long
        assert "Long review: about 2 min" in page
        assert "9900 lines are the same: " in page
        assert (
            end in page.rpartition("</details>")[0] + page.rpartition("</details>")[2]
        )
        mixed = kinds.show("send_mail", body=".\n-\n" * 4_950)
        assert mixed.minutes == 2

    def test_lines_with_words_take_as_long_as_they_are(self):
        many = "\n".join(f"{n} of the lines has seven words" for n in range(600))
        assert kinds.show("send_mail", body=many).minutes >= 20
        again = "\n".join(["all of the lines have seven words"] * 600)
        assert kinds.show("send_mail", body=again).minutes == 2
        blob = kinds.show("send_mail", body="x" * 12_000 + " y" * 400)
        assert blob.minutes > 5

    def test_a_page_of_a_large_text_stays_foldable(self):
        shown = kinds.show("write_file", content="x\n" * 30_000, before=None)
        assert page_of(shown).count("<details") >= 1
        assert "60000 bytes" in read(page_of(shown)).replace("bytes", " bytes")
