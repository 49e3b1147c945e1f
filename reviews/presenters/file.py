"""A file that is written, patched or removed: the changed lines and the result. Pure.

The tool's reader may declare `content`, `mode`, `owner`, `kind` (`file`, `symlink`,
`binary`) and `workspace` of the file, and for a patch `files` (path -> content). The
context lines of a patch are the agent's claim until they are compared with these.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from . import compare, paths
from .arguments import format_count, is_encoded_text
from .common import Subject, build_loud_tags, build_presentation
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
    path = subject.text("path")
    size = Cell(f"{len(content.encode('utf-8', 'surrogatepass'))} bytes")
    is_new = subject.before is not None and before is None
    file = FileChange(
        path or "(no path)",
        compare.compare_texts(before or "", content),
        marks=(*_list_marks(subject, path), *["New file"] * is_new),
        facts=(ValueRow("Size afterwards", "file.size", size),),
    )
    return build_presentation(
        subject,
        *build_loud_tags((before and not content.strip(), "Empties the file")),
        *_build_path_tags(subject),
        *_build_mode_tags(subject),
        *_build_length_tags([file]),
        used=_SHOWN_FIELDS,
        views=[_build_difference(subject, [file], subject.path("content"))],
    )


def _present_patch(subject: Subject) -> Presentation:
    patch = subject.text("patch")
    try:
        read = compare.parse_patch(patch)
    except compare.UnreadablePatch as error:
        return build_presentation(
            subject,
            Tag("The patch was not decoded", loud=True),
            *_build_path_tags(subject),
            hidden=[subject.undecoded("patch", f"The patch was not decoded: {error}.")],
        )
    files = [_build_file_change(subject, file) for file in read]
    files.sort(key=lambda file: -len(file.marks))
    covers = subject.path("patch") if compare.rebuild_patch(read) == patch else ""
    return build_presentation(
        subject,
        *_build_fit_tags(subject, read),
        *_build_file_tags(files),
        *_build_mode_tags(subject),
        *_build_length_tags(files),
        used=_SHOWN_FIELDS,
        views=[_build_difference(subject, files, covers)],
    )


def _build_file_change(subject: Subject, file: PatchedFile) -> FileChange:
    names = [name for name in (file.new, file.old) if name != "/dev/null"]
    marks = [*_list_marks(subject, *names), *_list_header_marks(file)]
    return FileChange(
        file.path,
        tuple(file.hunks),
        was=file.old if file.old not in (file.new, "/dev/null", file.path) else "",
        marks=tuple(dict.fromkeys(marks)),
        headers=tuple(file.headers),
    )


def _list_marks(subject: Subject, *names: str) -> list[str]:
    """The marks of paths, in the workspace only as the tool's reader declared it."""
    workspace = subject.read("workspace")
    root = workspace if isinstance(workspace, str) else ""
    return [mark for name in names for mark in paths.list_path_marks(name, root)]


def _list_header_marks(file: PatchedFile) -> Iterator[str]:
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
    contents = {file.path: _find_read_content(subject, file) for file in read}
    known = {path: text.split("\n") for path, text in contents.items() if text}
    if any(
        not compare.can_apply_hunk(hunk, known[file.path])
        for file in read
        for hunk in file.hunks
        if file.path in known
    ):
        yield Tag(PATCH_DOES_NOT_FIT, loud=True)
    if any(file.path not in known and file.old != "/dev/null" for file in read):
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
    for mark, tag in _TAG_OF_MARK.items():
        if any(mark in file.marks for file in files):
            yield Tag(tag, loud=True)


_TAG_OF_MARK = {
    "Longer than a path": "Longer than a path",
    "Outside the workspace": "Outside the workspace",
    "Secret": "Touches a secret",
    "CI file": "Changes CI",
    "Configuration": "Changes configuration",
    "Executable": "New executable",
    "Symbolic link": "A symbolic link",
}


def _build_path_tags(subject: Subject) -> Iterator[Tag]:
    path = subject.text("path")
    for mark in _list_marks(subject, path) if path else ():
        yield Tag(_TAG_OF_MARK[mark], loud=True)
    if subject.value("target") is not None or subject.read("kind") == "symlink":
        yield Tag("A symbolic link", loud=True)


def _build_mode_tags(subject: Subject) -> Iterator[Tag]:
    mode = _parse_mode(subject.value("mode"))
    was = _parse_mode(_find_known_value(subject, "mode"))
    owner, before = subject.value("owner"), _find_known_value(subject, "owner")
    yield from build_loud_tags(
        (mode & 0o111 and not was & 0o111, "New executable"),
        (mode & 0o6000, "Runs with its owner's permissions"),
        (mode & 0o002, "Everyone can write to it"),
        (owner is not None and owner != before, "Changes the owner"),
    )


def _build_length_tags(files: list[FileChange]) -> Iterator[Tag]:
    lines = sum(file.added + file.removed for file in files)
    if lines > FOLD_LINES:
        yield Tag(f"{lines} changed lines, folded", loud=True)


def _build_difference(
    subject: Subject, files: list[FileChange], covers: str
) -> DedicatedView:
    """Build the difference; files are folded once more than FOLD_LINES lines are
    open."""
    shown, lines = [], 0
    for file in files:
        lines += sum(len(hunk.lines) for hunk in file.hunks if not hunk.folded)
        shown.append(replace(file, folded=lines > FOLD_LINES))
    title = "The file" if len(files) == 1 else f"{len(files)} files"
    unread = _find_content_before(subject) is None and subject.read("files") is None
    note = "not compared: nothing was read" if unread else "compared with what was read"
    return DifferenceView(title, tuple(shown), covers, note)


def _find_content_before(subject: Subject) -> str | None:
    content = subject.known.get(subject.path("content") or "content")
    return content if isinstance(content, str) else None


def _find_known_value(subject: Subject, role: str) -> Any:
    return subject.known.get(subject.path(role) or role)


def _parse_mode(value: Any) -> int:
    """Parse mode bits in any usual notation: `0755`, `755`, 100755, "0o755"; none are
    set in anything else."""
    try:
        return int(str(value).removeprefix("0o")[-4:], 8)
    except ValueError:
        return 0


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
