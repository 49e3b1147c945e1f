"""Writing a policy version on a page: its text, the file that it is read from, and the
check of it, which saves nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NotRequired

from django.core.files.uploadedfile import UploadedFile

from journal.errors import DomainError, FieldError, NotFound
from policies import active, callables, changes, comparison, versions
from policies.declarations import Declaration
from policies.documents import MAX_CHARACTERS, InvalidPolicy, parse_document
from policies.documents.source import write_source
from policies.models import Person, PolicyVersion
from policies.people import check_administrator

from . import undeclared

NOT_SAVED = "Nothing was saved. Correct the text:"
READ_FROM_FILE = (
    "Nothing was saved yet: the text of the file is below. Read it, then save it."
)
# Where a text stops being YAML.
_PLACE = re.compile(r"line (\d{1,6}), (column \d{1,6})")
MOST_BYTES = 4 * MAX_CHARACTERS  # UTF-8 has at most four for a character


class DraftError(FieldError):
    """One problem in a text, with the line of it where that is known."""

    source: NotRequired[str]


class UnreadableFile(Exception):
    """The file is no text; the message says what to do."""


@dataclass(frozen=True, slots=True)
class SourceLine:
    """One line of a difference between the texts of two versions, as the tag `lines`
    draws it."""

    kind: str
    text: str
    old: int | None = None
    new: int | None = None
    speaks: bool = False

    @property
    def parts(self) -> tuple[tuple[bool, str], ...]:
        return ((False, self.text),)


class TextCheck(NamedTuple):
    """What a check says of a text: its errors or, without any, what it would ask less
    for than the active version `base`, and how much else differs."""

    errors: Sequence[DraftError] = ()
    base: int | None = None
    laxer: Sequence[str] = ()
    others: int = 0

    @property
    def summary(self) -> str:
        """The result in a sentence, which is also read aloud."""
        if self.errors:
            count = len(self.errors)
            return f"{count} {'error' if count == 1 else 'errors'} in this text."
        if self.base is None:
            return "No errors. No version is active to compare it with."
        if not self.laxer and not self.others:
            return f"No errors. It asks for the same as the active version {self.base}."
        less = len(self.laxer)
        parts = f"{less} {'part asks' if less == 1 else 'parts ask'} for less"
        rest = f"{self.others} other {'change' if self.others == 1 else 'changes'}"
        return f"No errors. Compared with version {self.base}: {parts}, {rest}."


class NumberRun(NamedTuple):
    """Numbers of the editor's margin, one a line; `line` where it is a faulty one."""

    text: str
    line: int = 0


@dataclass(frozen=True, slots=True)
class VersionForm:
    """The form of a new version. `base` is the number of the version that its text
    comes from, None where there was none. `problem` and `errors` say why the text was
    not saved, and `file_problem` why a file was not read. `declared` is the new entry
    of a tool, where the text has one."""

    text: str
    base: int | None
    problem: str = ""
    errors: Sequence[DraftError] = ()
    declared: Declaration | None = None
    check: TextCheck | None = None
    file_problem: str = ""

    @property
    def new_lines(self) -> list[SourceLine]:
        """The lines of the new entry."""
        if self.declared is None:
            return []
        rows = enumerate(self.declared.entry.splitlines(), self.declared.line)
        return [SourceLine("added", text, new=number) for number, text in rows]

    @property
    def rows(self) -> int:
        """How many lines the field shows."""
        return self.text.count("\n") + 1

    @property
    def columns(self) -> int:
        """How many characters the longest line has."""
        return max(len(line) for line in self.text.split("\n")) + 1

    @property
    def numbers(self) -> list[NumberRun]:
        """The numbers of the lines, those of faulty ones apart."""
        shown = self.check.errors if self.check else self.errors
        wrong = {error["line"] for error in shown if "line" in error}
        return list(_list_number_runs(self.rows, wrong))


def _list_number_runs(count: int, wrong: set[int]) -> Iterator[NumberRun]:
    plain = ""
    for number in range(1, count + 1):
        if number in wrong:
            yield NumberRun(plain)
            yield NumberRun(str(number), number)
            plain = "\n"
        else:
            plain += f"{number}\n"
    yield NumberRun(plain)


def build_version_form(person: Person, base: int | None, tool: str = "") -> VersionForm:
    """The form with the text of version `base`, by default of the active one, else of
    the newest. `tool` names an undeclared one to add. Raises NotPermitted for anyone
    but an administrator, NotFound, and PolicyViolation for a declared tool."""
    check_administrator(person)
    version = _find_base(base)
    if version is None:
        return VersionForm("", None)
    if tool:
        declared = undeclared.declare(person, tool, version)
        return VersionForm(declared.text, version.number, declared=declared)
    return VersionForm(write_source(version.document), version.number)


def _find_base(number: int | None) -> PolicyVersion | None:
    rows = PolicyVersion.objects.order_by("-number")
    if number is None:
        return active.find_active_policy() or rows.first()
    version = rows.filter(number=number).first()
    if version is None:
        raise NotFound
    return version


def save_draft(
    person: Person, text: str, base: int | None, file: UploadedFile[bytes] | None = None
) -> PolicyVersion | VersionForm:
    """Save the text as the next version. Returns the form with the reasons when it is
    refused, and with the text of a file that nobody has read in it yet. Raises
    NotPermitted."""
    check_administrator(person)
    if file:  # guard: unread-file
        form = check_text(person, text, base, file)
        problem = "Nothing was saved." if form.file_problem else READ_FROM_FILE
        return VersionForm(
            form.text,
            base,
            problem,
            check=form.check,
            file_problem=form.file_problem,
        )
    try:
        return versions.save_draft(text_or_mapping=text, author=person)
    except DomainError as error:
        problem = describe_refusal(error, NOT_SAVED)
        return VersionForm(text, base, problem, _quote_lines(error.errors, text))


def check_text(
    person: Person, text: str, base: int | None, file: UploadedFile[bytes] | None = None
) -> VersionForm:
    """Check a text, or that of a file in its place, and save nothing. Raises
    NotPermitted."""
    check_administrator(person)
    try:
        text = read_file(file) if file else _normalise_text(text)
    except UnreadableFile as error:
        return VersionForm(_normalise_text(text), base, file_problem=str(error))
    return VersionForm(text, base, check=_check_text(text))


def _check_text(text: str) -> TextCheck:
    try:
        document = parse_document(text, further=callables.list_problems)
    except InvalidPolicy as error:
        return TextCheck(_quote_lines(error.errors, text))
    current = active.find_active_policy()
    if current is None:
        return TextCheck()
    listed = comparison.compare_policies(active.load_document(current), document)
    laxer = changes.list_laxer(listed)
    return TextCheck((), current.number, laxer, len(listed) - len(laxer))


def read_file(file: UploadedFile[bytes]) -> str:
    """The text of an uploaded file. Raises UnreadableFile."""
    if (file.size or 0) > MOST_BYTES:
        raise UnreadableFile(
            f"This file is too large: a policy may have at most {MAX_CHARACTERS:,}"
            " characters. Choose another file."
        )
    try:
        text = file.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnreadableFile(
            "This file is not text in UTF-8. Save it in UTF-8, or paste its text below."
        ) from None
    if "\0" in text:
        raise UnreadableFile("This file is not text. Choose a YAML file.")
    return _normalise_text(text)


def _normalise_text(text: str) -> str:
    """A form sends two characters for the end of a line."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _quote_lines(errors: Sequence[FieldError], text: str) -> list[DraftError]:
    lines = text.splitlines()
    quotes = []
    for error in errors:
        quoted = DraftError(path=error["path"], message=error["message"])
        line = error.get("line", 0)
        if place := _PLACE.fullmatch(error["path"]):
            line = min(int(place[1]), len(lines))  # a text may end too early
            quoted["path"] = place[2]
        if 0 < line <= len(lines):
            quoted["line"] = line
            quoted["source"] = lines[line - 1].strip()
        quotes.append(quoted)
    return quotes


def describe_refusal(error: DomainError, title: str) -> str:
    """What happened, for a page that lists the errors below it: `title` in place of the
    sentence that programs get about a faulty document."""
    if error.errors and error.detail == InvalidPolicy().detail:
        return title
    return error.detail
