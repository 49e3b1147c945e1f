"""A file that is written, patched or removed: the changed lines and the result. Pure.

The tool's reader may declare `content`, `mode`, `owner`, `kind` (`file`, `symlink`,
`binary`) and `workspace` of the file, and for a patch `files` (path -> content). The
context lines of a patch are the agent's claim until they are compared with these.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from . import compare, paths
from .arguments import is_encoded_text
from .common import Subject, build_presentation, format_count
from .compare import PatchedFile
from .shapes import Cell, Presentation, Tag, ValueRow
from .views import DedicatedView, DifferenceView, FileChange

FOLD_LINES = 500  # lines that are shown open; files after them are folded
PATCH_DOES_NOT_FIT = "The patch does not match the file as read"
_SYMLINK_MODE = "120000"
# Fields of the reading that the view itself shows.
_SHOWN_FIELDS = ("content", "files", "workspace", "kind")


def show(subject: Subject) -> Presentation:
    """Present the difference first; tags name everything that is not a line of text."""
    if subject.text("patch"):
        return _present_patch(subject)
    if subject.value("content") is not None:
        return _present_content(subject)
    return build_presentation(
        subject, *_build_path_tags(subject), *_build_mode_tags(subject)
    )


def _present_content(subject: Subject) -> Presentation:
    content, before = subject.value("content"), _find_content_before(subject)
    if not isinstance(content, str) or _is_binary(subject, content):
        hidden = [subject.undecoded("content", _describe_binary(content))]
        return build_presentation(
            subject,
            Tag("Binary content, not decoded", loud=True),
            *_build_path_tags(subject),
            *_build_mode_tags(subject),
            hidden=hidden,
        )
    marks = (
        *paths.list_path_marks(_find_target_path(subject), _find_workspace(subject)),
        *_list_new_file_marks(subject),
    )
    file = FileChange(
        _find_target_path(subject) or "(no path)",
        compare.compare_texts(before or "", content),
        marks=marks,
        facts=tuple(_build_size_rows(subject, content)),
    )
    return build_presentation(
        subject,
        *_build_emptied_tags(before, content),
        *_build_path_tags(subject),
        *_build_mode_tags(subject),
        *_build_length_tags([file]),
        used=_SHOWN_FIELDS,
        views=[
            _build_difference(
                [file], subject.path("content"), _describe_source(subject)
            )
        ],
    )


def _present_patch(subject: Subject) -> Presentation:
    patch = subject.text("patch")
    try:
        read = compare.parse_patch(patch)
    except compare.UnreadablePatch as error:
        why = f"The patch was not decoded: {error}."
        hidden = [subject.undecoded("patch", why)]
        tag = Tag("The patch was not decoded", loud=True)
        return build_presentation(
            subject, tag, *_build_path_tags(subject), hidden=hidden
        )
    files = sorted(
        (_build_file_change(subject, file) for file in read),
        key=lambda f: -len(f.marks),
    )
    stated = compare.rebuild_patch(read) == patch
    view = _build_difference(
        files, subject.path("patch") if stated else "", _describe_source(subject)
    )
    return build_presentation(
        subject,
        *_build_fit_tags(subject, read),
        *_build_file_tags(files),
        *_build_mode_tags(subject),
        *_build_length_tags(files),
        used=_SHOWN_FIELDS,
        views=[view],
    )


def _build_file_change(subject: Subject, file: PatchedFile) -> FileChange:
    marks = [
        m
        for path in _list_patched_paths(file)
        for m in paths.list_path_marks(path, _find_workspace(subject))
    ]
    marks += list(_list_header_marks(file))
    return FileChange(
        file.path,
        tuple(file.hunks),
        was=file.old if file.old not in (file.new, "/dev/null", file.path) else "",
        marks=tuple(dict.fromkeys(marks)),
        headers=tuple(file.headers),
    )


def _list_patched_paths(file: PatchedFile) -> list[str]:
    return [path for path in dict.fromkeys((file.new, file.old)) if path != "/dev/null"]


def _list_header_marks(file: PatchedFile) -> Iterator[str]:
    """What the headers of a patch say about the file itself."""
    modes = {line.rpartition(" ")[0]: line.rpartition(" ")[2] for line in file.headers}
    new = modes.get("new file mode") or modes.get("new mode") or ""
    if "deleted file mode" in modes or file.new == "/dev/null":
        yield "Deleted"
    elif "new file mode" in modes or file.old == "/dev/null":
        yield "New file"
    if new.endswith(("755", "777", "775")) and modes.get("old mode") != new:
        yield "Executable"
    if _SYMLINK_MODE in modes.values():
        yield "Symbolic link"


def _build_fit_tags(subject: Subject, read: list[PatchedFile]) -> Iterator[Tag]:
    """Tags for old lines of the patch that differ from the file as read, or were not
    read."""
    contents = {file.path: _find_read_content(subject, file) for file in read}
    known = {path: text.split("\n") for path, text in contents.items() if text}
    if any(
        not compare.can_apply_hunk(hunk, known[file.path])
        for file in read
        for hunk in file.hunks
        if file.path in known
    ):
        yield Tag(PATCH_DOES_NOT_FIT, loud=True)
    unread = [
        file for file in read if file.path not in known and file.old != "/dev/null"
    ]
    if unread:
        yield Tag("The lines around the change come from the agent")


def _find_read_content(subject: Subject, file: PatchedFile) -> str:
    files = subject.read("files")
    if isinstance(files, Mapping):
        content = files.get(file.old) or files.get(file.path)
        return content if isinstance(content, str) else ""
    return _find_content_before(subject) or ""


def _build_file_tags(files: list[FileChange]) -> Iterator[Tag]:
    deleted = sum("Deleted" in file.marks for file in files)
    if deleted:
        yield Tag(f"Deletes {format_count(deleted, 'file')}", loud=True)
    for mark in (*_LOUD_PATH_MARKS, "Secret", "CI file", "Configuration"):
        if any(mark in file.marks for file in files):
            yield Tag(_TAG_OF_MARK.get(mark, mark), loud=True)
    if any("Executable" in file.marks for file in files):
        yield Tag("New executable", loud=True)
    if any("Symbolic link" in file.marks for file in files):
        yield Tag("A symbolic link", loud=True)


_LOUD_PATH_MARKS = ("Longer than a path", "Outside the workspace")
_TAG_OF_MARK = {
    "Secret": "Touches a secret",
    "CI file": "Changes CI",
    "Configuration": "Changes configuration",
}


def _build_path_tags(subject: Subject) -> Iterator[Tag]:
    path = _find_target_path(subject)
    if path:
        for mark in paths.list_path_marks(path, _find_workspace(subject)):
            yield Tag(_TAG_OF_MARK.get(mark, mark), loud=True)
    if subject.value("target") is not None or subject.read("kind") == "symlink":
        yield Tag("A symbolic link", loud=True)


def _build_mode_tags(subject: Subject) -> Iterator[Tag]:
    """Tags for a new executable bit, rights for everybody, or another owner."""
    mode, was = (
        _parse_mode(subject.value("mode")),
        _parse_mode(_find_known_value(subject, "mode")),
    )
    if mode is not None:
        if mode & 0o111 and not (was or 0) & 0o111:
            yield Tag("New executable", loud=True)
        if mode & 0o6000:
            yield Tag("Runs with its owner's permissions", loud=True)
        if mode & 0o002:
            yield Tag("Everyone can write to it", loud=True)
    owner, before = subject.value("owner"), _find_known_value(subject, "owner")
    if owner is not None and owner != before:
        yield Tag("Changes the owner", loud=True)


def _list_new_file_marks(subject: Subject) -> list[str]:
    return (
        []
        if subject.before is None or _find_content_before(subject) is not None
        else ["New file"]
    )


def _build_emptied_tags(before: str | None, content: str) -> Iterator[Tag]:
    if before and not content.strip():
        yield Tag("Empties the file", loud=True)


def _build_length_tags(files: list[FileChange]) -> Iterator[Tag]:
    lines = sum(file.added + file.removed for file in files)
    if lines > FOLD_LINES:
        yield Tag(f"{lines} changed lines, folded", loud=True)


def _build_size_rows(subject: Subject, content: str) -> Iterator[ValueRow]:
    """The size of the new file."""
    size = len(content.encode("utf-8", "surrogatepass"))
    yield ValueRow("Size afterwards", "file.size", Cell(f"{size} bytes"))


def _build_difference(files: list[FileChange], covers: str, note: str) -> DedicatedView:
    """Build the difference; files are folded once more than FOLD_LINES lines are
    open."""
    shown, before = [], 0
    for file in files:
        before += sum(len(hunk.lines) for hunk in file.hunks if not hunk.folded)
        folded = FileChange(
            file.path,
            file.hunks,
            file.was,
            file.marks,
            file.headers,
            file.facts,
            folded=before > FOLD_LINES,
        )
        shown.append(folded)
    title = "The file" if len(files) == 1 else f"{len(files)} files"
    return DifferenceView(title, tuple(shown), covers, note)


def _describe_source(subject: Subject) -> str:
    if _find_content_before(subject) is None and subject.read("files") is None:
        return "not compared: nothing was read"
    return "compared with what was read"


def _find_content_before(subject: Subject) -> str | None:
    content = subject.known.get(subject.path("content") or "content")
    return content if isinstance(content, str) else None


def _find_known_value(subject: Subject, role: str) -> Any:
    return subject.known.get(subject.path(role) or role)


def _find_target_path(subject: Subject) -> str:
    return subject.text("path")


def _find_workspace(subject: Subject) -> str:
    """The workspace, only as the tool's reader declared it."""
    workspace = subject.read("workspace")
    return workspace if isinstance(workspace, str) else ""


def _parse_mode(value: Any) -> int | None:
    """Parse mode bits in any usual notation: `0755`, `755`, 100755, "0o755"."""
    try:
        return int(str(value).removeprefix("0o")[-4:], 8)
    except ValueError:
        return None


def _is_binary(subject: Subject, content: str) -> bool:
    return (
        "\x00" in content
        or subject.read("kind") == "binary"
        or is_encoded_text(content)
    )


def _describe_binary(content: Any) -> str:
    if not isinstance(content, str):
        return "The content is not text."
    data = content.encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(data).hexdigest()
    return f"Binary or encoded: {len(data)} bytes, sha256 {digest[:16]}. Not decoded."
