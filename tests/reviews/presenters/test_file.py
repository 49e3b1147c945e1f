"""A file line by line: what differs, what it becomes, and what is no line of text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reviews.presenters import compare, paths
from tests.reviews.presenters import kinds
from tests.reviews.presenters.kinds import loud, tags

lines = st.lists(st.sampled_from(["a", "b", "c", "", "a b c", "x"]), max_size=12)


def write(content, before=None, **args):
    return kinds.show("write_file", content=content, before=before, **args)


def patch(text, before=None):
    return kinds.show("apply_patch", diff=text, before=before)


def said(hunks):
    return [(line.kind, line.text) for hunk in hunks for line in hunk.lines]


class TestDifference:
    def test_lines_are_removed_and_added_and_words_are_marked(self):
        hunks = compare.compare_texts("a\nlimit = 500\nz\n", "a\nlimit = 5000\nz\n")
        assert said(hunks) == [
            ("same", "a"),
            ("removed", "limit = 500"),
            ("added", "limit = 5000"),
            ("same", "z"),
        ]
        removed, added = hunks[0].lines[1:3]
        assert removed.parts == ((False, "limit = "), (True, "500"))
        assert added.parts == ((False, "limit = "), (True, "5000"))

    def test_unchanged_lines_far_from_a_change_are_folded_and_still_there(self):
        before = "".join(f"{n}\n" for n in range(40))
        hunks = compare.compare_texts(before, before.replace("20\n", "twenty\n"))
        assert [(h.folded, len(h.lines)) for h in hunks] == [
            (True, 17),
            (False, 8),
            (True, 16),
        ]

    @given(one=lines, other=lines, ends=st.sampled_from(["", "\n"]))
    def test_every_line_of_the_new_text_is_there_in_order(self, one, other, ends):
        after = "\n".join(other) + ends
        found = said(compare.compare_texts("\n".join(one), after))
        new = [text for kind, text in found if kind in ("same", "added")]
        assert "\n".join(new) == after.removesuffix("\n")
        unended = bool(after) and not after.endswith("\n")
        assert (("about", compare.NO_NEWLINE) in found) == unended

    def test_large_texts_are_compared_from_their_ends(self):
        before = "x\n" * 4000
        hunks = compare.compare_texts(before + "end\n", before + "other\nend\n")
        assert ("added", "other") in said(hunks)
        assert len(said(hunks)) == 4002


class TestPatch:
    def test_files_are_named_with_what_they_are(self):
        shown = kinds.show("apply_patch")
        (view,) = shown.views
        assert {file.path: file.marks for file in view.files} == {
            "scripts/warm.sh": ("New file", "Executable"),
            ".github/workflows/deploy.yml": ("CI file",),
            "checkout/refunds.py": (),
        }
        assert {"Changes CI", "New executable"} <= set(loud(shown))
        assert view.covers == "diff"
        assert any(line.speaks for line in view.files[0].hunks[0].lines)

    def test_every_byte_is_read_or_the_patch_stays_whole_below(self):
        assert compare.rebuild_patch(compare.parse_patch(kinds.PATCH)) == kinds.PATCH
        loose = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-a\n+b\n\n"
        shown = patch(loose)
        assert shown.views[0].covers == ""
        assert loose in [row.cell.text for row in shown.other]

    @pytest.mark.parametrize(
        "text",
        [
            *("hello", "@@ -1 +1 @@\n-a\n+b\n", "--- a/x\n", "diff --git a/x b/x\n"),
            *("--- a/x\n+++ b/x\n", "--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n-a\n+b\n"),
            *(
                '--- "a/x"\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n',
                "Binary files a and b differ\n",
            ),
            *(
                "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\nrm -rf /\n",
                "\n",
                "GIT binary patch",
            ),
            "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- hidden\n",
        ],
    )
    def test_what_is_no_patch_is_not_decoded(self, text):
        shown = patch(text)
        assert "The patch was not decoded" in loud(shown)
        assert [one.argument for one in shown.uninspectable] == ["diff"]
        assert text in [row.cell.text for row in shown.other]

    def test_context_is_the_agents_word_until_it_was_compared(self):
        text = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
        assert "The lines around the change come from the agent" in tags(patch(text))
        fits = patch(text, before={"files": {"x": "a\nb\n"}})
        assert not {"The patch does not match the file as read"} & set(tags(fits))
        lies = patch(text, before={"files": {"x": "a\nB\n"}})
        assert "The patch does not match the file as read" in loud(lies)
        assert not [row for row in lies.now if row.path.startswith("files")]

    def test_deletion_rename_mode_and_links_are_called_out(self):
        gone = "--- a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
        assert "Deletes 1 file" in loud(patch(gone))
        moved = "diff --git a/x b/y\nrename from x\nrename to y\n"
        (file,) = patch(moved).views[0].files
        assert (file.path, file.was) == ("y", "x")
        mode = "diff --git a/x b/x\nold mode 100644\nnew mode 100755\n"
        assert "New executable" in loud(patch(mode))
        link = (
            "diff --git a/x b/x\nnew file mode 120000\n--- /dev/null\n+++ b/x\n"
            "@@ -0,0 +1 @@\n+/etc/passwd\n\\ No newline at end of file\n"
        )
        assert "A symbolic link" in loud(patch(link))


class TestWrite:
    def test_the_new_content_stands_against_what_was_read(self):
        shown = kinds.show("write_file")
        (view,) = shown.views
        assert (view.files[0].added, view.files[0].removed) == (1, 1)
        assert view.note == "compared with what was read"
        assert [(c.before.text, c.after.text) for c in shown.changes] == [
            ("0644", "0755")
        ]
        assert {"Changes configuration", "New executable"} <= set(loud(shown))

    def test_without_a_reading_everything_is_new_and_says_so(self):
        shown = write("a\nb\n")
        assert shown.views[0].files[0].added == 2
        assert shown.views[0].note == "not compared: nothing was read"
        assert (
            "New file" in write("a\n", before={"content": None}).views[0].files[0].marks
        )

    def test_more_than_500_lines_are_folded_with_counts(self):
        shown = write("".join(f"{n}\n" for n in range(501)))
        (file,) = shown.views[0].files
        assert (file.folded, file.size) == (True, 501)
        assert "501 changed lines, folded" in loud(shown)

    @pytest.mark.parametrize("content", ["a\x00b", "QUJD" * 60, "GIF89a\x00"])
    def test_what_is_binary_has_size_and_hash_and_is_not_decoded(self, content):
        shown = write(content)
        assert "Binary content, not decoded" in loud(shown)
        reasons = [one.reason for one in shown.uninspectable if "sha256" in one.reason]
        assert f"{len(content)} bytes" in reasons[0]

    def test_owner_rights_and_links_are_called_out(self):
        shown = write("a\n", before={"owner": "app"}, owner="root", mode="4777")
        expected = {"Changes the owner", "Runs with its owner's permissions"}
        assert expected | {"Everyone can write to it"} <= set(loud(shown))
        assert "A symbolic link" in loud(write("a\n", before={"kind": "symlink"}))
        assert "Empties the file" in loud(write("", before={"content": "a\n"}))


@pytest.mark.parametrize(
    ("path", "marks"),
    [
        ("src/app.py", []),
        ("../x", ["Outside the workspace"]),
        ("a/../../x", ["Outside the workspace"]),
        ("/etc/hosts", ["Outside the workspace", "Configuration"]),
        ("~/.bashrc", ["Outside the workspace", "Configuration"]),
        ("..\\x", ["Outside the workspace"]),
        (".env.production", ["Secret"]),
        ("deploy/id_rsa", ["Secret"]),
        ("keys/server.pem", ["Secret"]),
        (".github/workflows/ci.yml", ["CI file"]),
        ("x/../.git/hooks/pre-commit", ["CI file"]),
        ("Jenkinsfile", ["CI file"]),
        ("pyproject.toml", ["Configuration"]),
        ("/srv/shop/app.py", []),
        ("/srv/shop2/app.py", ["Outside the workspace"]),
    ],
)
def test_a_path_is_judged_by_its_name(path, marks):
    assert paths.list_path_marks(path, "/srv/shop") == marks
