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
from .arguments import is_blob
from .common import Subject, count, present
from .compare import Patched
from .shapes import Cell, Presentation, Row, Tag
from .views import Difference, FileChange, View

FOLD = 500  # lines that are shown open; files after them are folded
UNFIT = "The patch does not fit the file as read"
_LINK = "120000"
# Fields of the reading that the view itself shows.
_READ = ("content", "files", "workspace", "kind")


def show(subject: Subject) -> Presentation:
    """Present the difference first; tags name everything that is not a line of text."""
    if subject.text("patch"):
        return _patch(subject)
    if subject.said("content") is not None:
        return _write(subject)
    return present(subject, *_path_tags(subject), *_moded(subject))


def _write(subject: Subject) -> Presentation:
    content, before = subject.said("content"), _before(subject)
    if not isinstance(content, str) or _is_binary(subject, content):
        hidden = [subject.undecoded("content", _binary_said(content))]
        return present(
            subject,
            Tag("Binary content, not decoded", loud=True),
            *_path_tags(subject),
            *_moded(subject),
            hidden=hidden,
        )
    marks = (*paths.marks(_path(subject), _workspace(subject)), *_new(subject))
    file = FileChange(
        _path(subject) or "(no path)",
        compare.compare(before or "", content),
        marks=marks,
        facts=tuple(_facts(subject, content)),
    )
    return present(
        subject,
        *_emptied(before, content),
        *_path_tags(subject),
        *_moded(subject),
        *_long([file]),
        used=_READ,
        views=[_view([file], subject.path("content"), _source(subject))],
    )


def _patch(subject: Subject) -> Presentation:
    patch = subject.text("patch")
    try:
        read = compare.parse(patch)
    except compare.Unreadable as error:
        why = f"The patch was not decoded: {error}."
        hidden = [subject.undecoded("patch", why)]
        tag = Tag("The patch was not decoded", loud=True)
        return present(subject, tag, *_path_tags(subject), hidden=hidden)
    files = sorted((_file(subject, one) for one in read), key=lambda f: -len(f.marks))
    stated = compare.rebuilt(read) == patch
    view = _view(files, subject.path("patch") if stated else "", _source(subject))
    return present(
        subject,
        *_unfit(subject, read),
        *_of_files(files),
        *_moded(subject),
        *_long(files),
        used=_READ,
        views=[view],
    )


def _file(subject: Subject, one: Patched) -> FileChange:
    marks = [m for path in _both(one) for m in paths.marks(path, _workspace(subject))]
    marks += list(_headed(one))
    return FileChange(
        one.path,
        tuple(one.hunks),
        was=one.old if one.old not in (one.new, "/dev/null", one.path) else "",
        marks=tuple(dict.fromkeys(marks)),
        headers=tuple(one.headers),
    )


def _both(one: Patched) -> list[str]:
    return [path for path in dict.fromkeys((one.new, one.old)) if path != "/dev/null"]


def _headed(one: Patched) -> Iterator[str]:
    """What the headers of a patch say about the file itself."""
    modes = {line.rpartition(" ")[0]: line.rpartition(" ")[2] for line in one.headers}
    new = modes.get("new file mode") or modes.get("new mode") or ""
    if "deleted file mode" in modes or one.new == "/dev/null":
        yield "Deleted"
    elif "new file mode" in modes or one.old == "/dev/null":
        yield "New file"
    if new.endswith(("755", "777", "775")) and modes.get("old mode") != new:
        yield "Executable"
    if _LINK in modes.values():
        yield "Symbolic link"


def _unfit(subject: Subject, read: list[Patched]) -> Iterator[Tag]:
    """Tags for old lines of the patch that differ from the file as read, or were not
    read."""
    contents = {one.path: _content_of(subject, one) for one in read}
    known = {path: text.split("\n") for path, text in contents.items() if text}
    if any(
        not compare.stands_in(hunk, known[one.path])
        for one in read
        for hunk in one.hunks
        if one.path in known
    ):
        yield Tag(UNFIT, loud=True)
    unread = [one for one in read if one.path not in known and one.old != "/dev/null"]
    if unread:
        yield Tag("The lines around the change are the agent's word")


def _content_of(subject: Subject, one: Patched) -> str:
    files = subject.read("files")
    if isinstance(files, Mapping):
        found = files.get(one.old) or files.get(one.path)
        return found if isinstance(found, str) else ""
    return _before(subject) or ""


def _of_files(files: list[FileChange]) -> Iterator[Tag]:
    deleted = sum("Deleted" in file.marks for file in files)
    if deleted:
        yield Tag(f"Deletes {count(deleted, 'file')}", loud=True)
    for mark in (*_OUTSIDE, "Secret", "CI file", "Configuration"):
        if any(mark in file.marks for file in files):
            yield Tag(_TAGS.get(mark, mark), loud=True)
    if any("Executable" in file.marks for file in files):
        yield Tag("New executable", loud=True)
    if any("Symbolic link" in file.marks for file in files):
        yield Tag("A symbolic link", loud=True)


_OUTSIDE = ("Longer than a path", "Outside the workspace")
_TAGS = {
    "Secret": "Touches a secret",
    "CI file": "Changes CI",
    "Configuration": "Changes configuration",
}


def _path_tags(subject: Subject) -> Iterator[Tag]:
    path = _path(subject)
    if path:
        for mark in paths.marks(path, _workspace(subject)):
            yield Tag(_TAGS.get(mark, mark), loud=True)
    if subject.said("target") is not None or subject.read("kind") == "symlink":
        yield Tag("A symbolic link", loud=True)


def _moded(subject: Subject) -> Iterator[Tag]:
    """Tags for a new executable bit, rights for everybody, or another owner."""
    mode, was = _octal(subject.said("mode")), _octal(_known(subject, "mode"))
    if mode is not None:
        if mode & 0o111 and not (was or 0) & 0o111:
            yield Tag("New executable", loud=True)
        if mode & 0o6000:
            yield Tag("Runs with its owner's rights", loud=True)
        if mode & 0o002:
            yield Tag("Everybody may write it", loud=True)
    owner, before = subject.said("owner"), _known(subject, "owner")
    if owner is not None and owner != before:
        yield Tag("Changes the owner", loud=True)


def _new(subject: Subject) -> list[str]:
    return (
        [] if subject.before is None or _before(subject) is not None else ["New file"]
    )


def _emptied(before: str | None, content: str) -> Iterator[Tag]:
    if before and not content.strip():
        yield Tag("Empties the file", loud=True)


def _long(files: list[FileChange]) -> Iterator[Tag]:
    lines = sum(file.added + file.removed for file in files)
    if lines > FOLD:
        yield Tag(f"{lines} changed lines, folded", loud=True)


def _facts(subject: Subject, content: str) -> Iterator[Row]:
    """The size of the new file."""
    size = len(content.encode("utf-8", "surrogatepass"))
    yield Row("Size afterwards", "file.size", Cell(f"{size} bytes"))


def _view(files: list[FileChange], covers: str, note: str) -> View:
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
            folded=before > FOLD,
        )
        shown.append(folded)
    title = "The file" if len(files) == 1 else f"{len(files)} files"
    return Difference(title, tuple(shown), covers, note)


def _source(subject: Subject) -> str:
    if _before(subject) is None and subject.read("files") is None:
        return "not compared: nothing was read"
    return "compared with what was read"


def _before(subject: Subject) -> str | None:
    found = subject.known.get(subject.path("content") or "content")
    return found if isinstance(found, str) else None


def _known(subject: Subject, role: str) -> Any:
    return subject.known.get(subject.path(role) or role)


def _path(subject: Subject) -> str:
    return subject.text("path")


def _workspace(subject: Subject) -> str:
    """The workspace, only as the tool's reader declared it."""
    found = subject.read("workspace")
    return found if isinstance(found, str) else ""


def _octal(value: Any) -> int | None:
    """Parse mode bits in any usual notation: `0755`, `755`, 100755, "0o755"."""
    try:
        return int(str(value).removeprefix("0o")[-4:], 8)
    except ValueError:
        return None


def _is_binary(subject: Subject, content: str) -> bool:
    return "\x00" in content or subject.read("kind") == "binary" or is_blob(content)


def _binary_said(content: Any) -> str:
    if not isinstance(content, str):
        return "The content is not text."
    data = content.encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(data).hexdigest()
    return f"Binary or encoded: {len(data)} bytes, sha256 {digest[:16]}. Not decoded."
