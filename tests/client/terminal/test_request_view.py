"""A request as lines: each part of the page is there, and nobody's words can pass for
Counterseal's."""

from __future__ import annotations

from typing import Any

from counterseal_client.people import RequestDetail
from counterseal_client.terminal.request_view import (
    MOST_COMPARED,
    MOST_LINES,
    describe_line,
    describe_request,
)
from counterseal_client.terminal.text import render_line

URL = "https://gate.example.com/requests/r-1/"


LISTED = {
    "name": "a.csv",
    "media_type": "text/csv",
    "size": 1200,
    "notes": ["Rows 1 to 1 of 9 are shown."],
    "table": {"columns": ["who", "price"], "rows": [["ada", "12"]]},
}


def build_detail(**facts: Any) -> RequestDetail:
    return RequestDetail.model_validate(
        {
            "id": "r-1",
            "title": "Move the file",
            "version": 2,
            "action_hash": "sha256:00",
            "risk": "high",
            "agent": "ada",
            "thread": "t-1",
            "args": {"path": "a\nb"},
            "before": {"known": True},
            **facts,
        }
    )


def show(**facts: Any) -> list[str]:
    lines = describe_request(build_detail(**facts), URL)
    return [text for line in lines for text in render_line(line, 80)]


def build_row(label: str, text: str, **more: Any) -> dict[str, Any]:
    return {"label": label, "cell": {"text": text, "kind": "text"}, **more}


def test_arguments_are_exact() -> None:
    assert '  path: "a\\nb"' in show()


def test_a_field_is_shown_as_it_is_and_as_it_will_be() -> None:
    change = {"label": "Text", "before": {"text": "a\nb"}, "after": {"text": "a\nc"}}
    lines = show(diff=[change])
    place = lines.index("  Text")
    assert lines[place + 1 : place + 5] == [
        "    @@ -1,2 +1,2 @@",
        "      a",
        "    - b",
        "    + c",
    ]


def test_a_large_difference_takes_no_long_comparison() -> None:
    before = "\n".join(f"a{n}" for n in range(600))
    after = "\n".join(f"b{n}" for n in range(600))
    assert MOST_COMPARED < 600 * 600
    change = {"label": "Text", "before": {"text": before}, "after": {"text": after}}
    lines = show(diff=[change])
    assert sum(line.startswith("    - a") for line in lines) == 600
    assert sum(line.startswith("    + b") for line in lines) == 600


def test_an_unknown_state_is_a_warning() -> None:
    lines = show(before={"known": False, "problem": "The reader did not answer."})
    assert "  The reader did not answer." in lines


def test_views_facts_and_rows_are_all_there() -> None:
    view = {
        "title": "The command",
        "rows": [build_row("Folder", "/srv", warns=["It is shared."])],
        "steps": [{"joined": "", "tokens": [{"text": "rm", "warns": ["It deletes."]}]}],
        "inside": [{"title": "Heredoc", "text": "one\ntwo"}],
        "files": [
            {
                "path": "a.py",
                "hunks": [{"title": "@@", "lines": [{"kind": "added", "text": "x"}]}],
            }
        ],
    }
    text = "\n".join(
        show(
            tags=[{"text": "External effect", "loud": True}],
            size=[{"label": "Amount", "value": "9.00", "note": "nine"}],
            flags=["Looks odd.", "External effect"],
            views=[view],
            other=[build_row("Mode", "fast"), build_row("Note", "one\ntwo")],
            uninspectable=[{"label": "Blob", "reason": "it is binary"}],
            dry_run={"rows": [build_row("Would move", "1")], "source": "mover"},
            reversal={"word": "Irreversible", "undo": "Nothing."},
            since={"version": 1, "cause": "edit", "diff": [], "words": True},
            rules=[{"id": "x", "text": "Moves are checked."}],
            evidence=[
                {"kind": "file", "text": "", "withheld": "It was not scanned."},
                {"kind": "list", "file": LISTED},
                {"kind": "scan", "file": {"name": "b.pdf", "why_not": "Sensitive."}},
            ],
        )
    )
    for part in (
        "Warning: External effect",
        "a.csv (text/csv, 1,200 bytes, )",
        "Rows 1 to 1 of 9 are shown.",
        "| ada | 12",
        "Sensitive.",
        "Amount: 9.00 (nine)",
        "Warning: Looks odd.",
        "Folder: /srv",
        "Warning: It is shared.",
        "Warning: rm: It deletes.",
        "  | one",
        "+ x",
        "Mode: fast",
        "Warning: Blob is not shown in full: it is binary",
        "Would move: 1",
        "Irreversible\n  To undo it: Nothing.",
        "  Note:\n    | one\n    | two",
        "Changed since version 1 (edit)",
        "Moves are checked.",
        "Withheld: It was not scanned.",
        URL,
    ):
        assert part in text, part
    assert text.count("External effect") == 1


def test_words_of_others_stay_behind_the_bar() -> None:
    forged = "Fine.\n\nWhy people are asked\n  They need not be."
    lines = show(rationale=forged, claims=[{"heading": "Undo", "text": forged}])
    assert lines.count("  | Why people are asked") == 2
    assert "Why people are asked" not in lines


def test_a_long_text_does_not_push_the_rest_out_of_sight() -> None:
    lines = show(rationale="x\n" * 10_000)
    assert len(lines) < MOST_LINES + 30
    assert any("more characters: see the page." in line for line in lines)
    assert len(show(rationale="y" * 1_000_000)) < 100


def test_a_line_of_the_list_says_what_the_page_will_ask() -> None:
    lines = describe_line(build_detail(step_up=True, why_not="Not you."))
    text = " ".join(line.text for line in lines)
    assert "needs your password, on its page" in text
    assert "Not you." in text


def test_a_line_of_the_list_begins_with_what_the_gate_warns_of() -> None:
    lines = list(describe_line(build_detail(flags=["Possible manipulation"])))
    assert lines[0].text == "Warning: Possible manipulation"
    assert lines[1].text == "r-1  Move the file"
