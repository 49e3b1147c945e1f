"""A command as it will run: one word a line, and the code inside it as further steps.
Pure.

Paths of programs, matches of globs and the like are shown only as the tool's reader
declared them: `programs` (name -> path), `globs` (pattern -> number of matches),
`user`, `host`, `cwd` and `env`. Text that cannot be parsed with certainty is shown
whole and marked as not decoded.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import shell_lexer, shell_warnings, unicode
from .arguments import format_count
from .common import Subject, build_presentation
from .sentence import build_sentence
from .shapes import (
    Cell,
    Presentation,
    SentencePart,
    SizeFigure,
    Tag,
    ValuePart,
    ValueRow,
)
from .shell_lexer import Redirection, ShellWord, SimpleCommand
from .views import (
    CommandStep,
    CommandToken,
    CommandView,
    EmbeddedText,
    GroupView,
)

MAX_DEPTH = 3  # levels of commands inside commands
MOST_TAGS = 5
_JOIN_PHRASES = {
    "": "",
    ";": "regardless of step {n}",
    "\n": "regardless of step {n}",
    "&&": "only if step {n} succeeds",
    "||": "only if step {n} fails",
    "|": "reads the output of step {n}",
    "|&": "reads the output and errors of step {n}",
    "&": "while step {n} runs in the background",
}
_STREAMS = {"": "", "0": "input ", "1": "output ", "2": "errors "}
_PLACE_ROLES = ("host", "user", "cwd", "env", "stdin")


@dataclass(slots=True)
class ParsedCommand:
    """A parsed command: its steps, the texts inside it, and what nobody can tell."""

    declared: Mapping[str, Any] = field(default_factory=dict)  # by the tool's reader
    depth: int = 0  # commands around it
    steps: list[CommandStep] = field(default_factory=list)
    inside: list[EmbeddedText] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    warns: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    problem: str = ""
    words: list[str] = field(default_factory=list)  # as given, if no shell reads them


def show(subject: Subject) -> Presentation:
    """Present the steps first, then where and as whom they run, then the arguments."""
    role = "argv" if subject.path("argv") else "command"
    read = _parse_argv(subject) if role == "argv" else _parse_command_text(subject)
    title = (
        "What runs" if len(read.steps) < 2 else f"What runs, {len(read.steps)} steps"
    )
    covers = subject.path("argv") if read.words else ""
    inside = tuple(read.inside)
    command = CommandView(title, tuple(read.steps), inside, read.problem, covers)
    hidden = [subject.undecoded(role, why) for why in dict.fromkeys(read.doubts)]
    return build_presentation(
        subject,
        *_build_warning_tags(read),
        sentence=build_sentence(subject, _build_sentence_values(subject, read)),
        size=tuple(_build_size_figures(subject)),
        views=[
            command,
            GroupView("Connections", tuple(_build_address_rows(read))),
            GroupView("Where", tuple(_build_place_rows(subject))),
        ],
        hidden=hidden,
        used=("programs", "globs", "host", "user", "cwd"),
    )


def _parse_command_text(subject: Subject) -> ParsedCommand:
    text = subject.value("command")
    if not isinstance(text, str):
        return ParsedCommand(doubts=["There is no readable command."])
    return parse_command(text, subject.before or {})


def _parse_argv(subject: Subject) -> ParsedCommand:
    """Parse words that no shell reads: the program receives each exactly as given."""
    first, rest = subject.value("command"), subject.value("argv")
    is_list = isinstance(rest, list)
    words = [*([] if first is None else [first]), *(rest if is_list else [])]
    if not words or not all(isinstance(word, str) for word in words):
        return ParsedCommand(doubts=["The command contains parts that are not text."])
    parsed = ParsedCommand(subject.before or {}, words=words)
    _add_step(parsed, SimpleCommand("", words=[ShellWord(w, w, w) for w in words]))
    if isinstance(first, str) and any(char in first for char in " \t\n;|&$`<>"):
        parsed.doubts.append(
            "The tool does not declare whether a shell runs the command."
        )
    if not is_list:
        parsed.doubts.append("The command is not a list.")
    return parsed


def parse_command(
    text: str, declared: Mapping[str, Any], depth: int = 0
) -> ParsedCommand:
    """Parse a command line; `declared` is what the tool's reader said about it. Never
    raises: a line that cannot be parsed has its reason in `problem`."""
    parsed = ParsedCommand(declared, depth)
    if any(unicode.is_hidden(char) and char not in "\n\t" for char in text):
        parsed.doubts.append("It contains hidden characters.")
        parsed.warns.append("Hidden characters")
    try:
        simples = shell_lexer.parse_simple_commands(text)
    except shell_lexer.UnreadableCommand as error:
        parsed.problem = f"Not decoded: {error}."
        parsed.doubts.append(parsed.problem)
        parsed.warns.append("Not decoded")
        as_bash = ParsedCommand(declared, depth)
        for simple in error.as_bash:
            _add_step(as_bash, simple)
        parsed.warns += as_bash.warns
        parsed.hosts += as_bash.hosts
        return parsed
    if not simples:
        parsed.doubts.append("There is no readable command.")
    for simple in simples:
        _add_step(parsed, simple)
    return parsed


def _add_step(parsed: ParsedCommand, simple: SimpleCommand) -> None:
    findings = shell_warnings.inspect_command(simple, fed=simple.joined in ("|", "|&"))
    tokens = tuple(_build_step_tokens(simple, findings, parsed.declared))
    joined = _JOIN_PHRASES[simple.joined].format(n=len(parsed.steps))
    parsed.steps.append(CommandStep(joined, tokens))
    parsed.doubts += findings.doubts
    parsed.hosts += [host for host in findings.hosts if host not in parsed.hosts]
    parsed.warns += [warn for token in tokens for warn in token.warns]
    for code in findings.codes:
        _parse_embedded_code(parsed, "Runs in a subshell", code)
    for word in simple.all_words:
        for text in word.inner:
            title = "Runs first, and its output is inserted"
            _parse_embedded_code(parsed, title, text)
    for redirect in simple.redirects:
        if redirect.body is not None:
            _add_heredoc(parsed, redirect, simple)


def _parse_embedded_code(parsed: ParsedCommand, title: str, text: str) -> None:
    if parsed.depth >= MAX_DEPTH:
        parsed.inside.append(EmbeddedText(title, text, problem="Not opened: too deep."))
        parsed.doubts.append("Commands are nested too deep.")
        return
    inner = parse_command(text, parsed.declared, parsed.depth + 1)
    parsed.inside.append(EmbeddedText(title, text, tuple(inner.steps), inner.problem))
    parsed.inside += inner.inside
    parsed.doubts += inner.doubts
    parsed.warns += inner.warns
    parsed.hosts += [host for host in inner.hosts if host not in parsed.hosts]


def _add_heredoc(
    parsed: ParsedCommand, redirect: Redirection, simple: SimpleCommand
) -> None:
    body = redirect.body or ""
    findings = shell_warnings.inspect_command(simple, fed=True)
    if shell_warnings.FOREIGN_TEXT in findings.doubts:
        _parse_embedded_code(parsed, "Runs this text in a shell", body)
        parsed.doubts.append("Its text is run as commands.")
        return
    parsed.inside.append(EmbeddedText("Input text", body))
    if not redirect.target.quoted and any(char in body for char in "$`"):
        parsed.doubts.append(shell_warnings.MARK_DOUBTS["variable"])


def _build_step_tokens(
    simple: SimpleCommand,
    findings: shell_warnings.CommandFindings,
    declared: Mapping[str, Any],
) -> Iterator[CommandToken]:
    for comment in simple.comments:
        yield CommandToken(comment, "comment, not run")
    for word, warns in zip(simple.assigns, findings.assigns, strict=True):
        yield CommandToken(word.text, "sets a variable", tuple(warns))
    for place, word in enumerate(simple.words):
        warnings = tuple(dict.fromkeys(findings.words[place]))
        yield _describe_word(place, word, warnings, declared)
    for redirect, warns in zip(simple.redirects, findings.redirects, strict=True):
        stream = _STREAMS.get(redirect.number, f"stream {redirect.number} ")
        means, _ = shell_lexer.REDIRECTIONS[redirect.form]
        if redirect.is_other_command:
            means = "joined to another command"
        elif redirect.target.text == "-" and redirect.form in (">&", "<&"):
            means = "closed"
        means = f"{stream}{means}".capitalize()
        text = f"{redirect.number}{redirect.operator} {redirect.target.text}"
        yield CommandToken(text, means, tuple(dict.fromkeys(warns)))
    if simple.background:
        yield CommandToken("&", "not waited for", ("Continues in the background",))


def _describe_word(
    place: int,
    word: ShellWord,
    warns: tuple[str, ...],
    declared: Mapping[str, Any],
) -> CommandToken:
    text = word.text
    if "glob" in word.marks:
        matches = _find_declared(declared, "globs", text)
        known = isinstance(matches, int) and not isinstance(matches, bool)
        number = (
            f"{matches} found, as declared by the tool" if known else "matches unknown"
        )
        return CommandToken(text, "pattern", (*warns, f"Glob: {number}"))
    if place == 0:
        path = _find_declared(declared, "programs", text)
        return CommandToken(
            text, "program", warns, path if isinstance(path, str) else ""
        )
    if text == "":
        return CommandToken("(empty)", "empty argument", warns)
    return CommandToken(text, "option" if text.startswith("-") else "argument", warns)


def _build_place_rows(subject: Subject) -> Iterator[ValueRow]:
    """Where, as whom and with what it runs: as proposed, then as the reader says."""
    yield from subject.listed(*_PLACE_ROLES)
    for name in ("host", "user", "cwd"):
        value = subject.read(name)
        if isinstance(value, str) and not subject.path(name):
            yield ValueRow(subject.label(name), f"read.{name}", Cell(value), "as read")


def _build_address_rows(read: ParsedCommand) -> Iterator[ValueRow]:
    for number, host in enumerate(read.hosts):
        yield ValueRow("Address", f"host.{number}", Cell(host))


def _build_sentence_values(
    subject: Subject, read: ParsedCommand
) -> dict[str, SentencePart]:
    """Values for the effect sentence: an argv is quoted, several steps are counted."""
    if read.words:
        return {subject.path("argv"): ValuePart(shlex.join(read.words))}
    path = subject.path("command")
    if len(read.steps) < 2 or not path:
        return {}
    return {path: ValuePart(f"{len(read.steps)} commands", untrusted=False)}


def _build_size_figures(subject: Subject) -> Iterator[SizeFigure]:
    for role, label in (("host", "On"), ("user", "As"), ("cwd", "In")):
        value = subject.value(role) or subject.read(role)
        if isinstance(value, str) and value:
            yield SizeFigure(label, value, "", untrusted=True)


def _build_warning_tags(read: ParsedCommand) -> Iterator[Tag]:
    """Tags for the gravest warnings, once each; the words themselves show all of
    them."""
    warnings = sorted(dict.fromkeys(read.warns), key=_rank_warning)
    for warning in warnings[:MOST_TAGS]:
        yield Tag(warning, loud=True)
    if len(warnings) > MOST_TAGS:
        yield Tag(
            f"{format_count(len(warnings) - MOST_TAGS, 'more warning')} below",
            loud=True,
        )
    if read.hosts:
        yield Tag(f"Connects to {format_count(len(read.hosts), 'place')}")


def _rank_warning(warning: str) -> int:
    order = (
        *("Destr", "Delet", "Format", "May delete", "A whole", "A disk", "Drop"),
        *("Discard", "Rewrites", "Overwrites"),
    )
    starts = [n for n, word in enumerate(order) if warning.startswith(word)]
    quiet = warning.startswith(("Glob", "A script", "Hides", "In somebody", "Asks"))
    return starts[0] if starts else 20 + quiet


def _find_declared(declared: Mapping[str, Any], name: str, key: str) -> Any:
    values = declared.get(name)
    return values.get(key) if isinstance(values, Mapping) else None
