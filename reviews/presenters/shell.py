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
from .common import Subject, count, present, sentence
from .shapes import Cell, Pair, Part, Presentation, Row, Tag, Value
from .views import Command, Group, Inside, Step, Token, View

DEEPEST = 3  # levels of commands inside commands
MOST_TAGS = 5
_JOINED = {
    "": "",
    ";": "whatever step {n} did",
    "\n": "whatever step {n} did",
    "&&": "only if step {n} succeeds",
    "||": "only if step {n} fails",
    "|": "reads the output of step {n}",
    "|&": "reads the output and errors of step {n}",
    "&": "while step {n} runs in the background",
}
_STREAMS = {"": "", "0": "input ", "1": "output ", "2": "errors "}
_OPERATORS = {
    "<": "read from a file",
    "<<": "read from the text below",
    "<<-": "read from the text below",
    "<<<": "read from this text",
    ">": "written to a file",
    ">|": "written to a file",
    ">>": "added to a file",
    "<>": "read from and written to a file",
    ">&": "joined to another stream",
    "<&": "joined to another stream",
}
_PARTS = ("host", "user", "cwd", "env", "stdin")


@dataclass(slots=True)
class Read:
    """A parsed command: its steps, the texts inside it, and what nobody can tell."""

    steps: list[Step] = field(default_factory=list)
    inside: list[Inside] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    warns: list[str] = field(default_factory=list)
    hosts: list[str] = field(default_factory=list)
    problem: str = ""
    words: list[str] = field(default_factory=list)  # as given, if no shell reads them


def show(subject: Subject) -> Presentation:
    """Present the steps first, then where and as whom they run, then the arguments."""
    role = "argv" if subject.path("argv") else "command"
    read = _read_argv(subject) if role == "argv" else _read_text(subject)
    title = (
        "What runs" if len(read.steps) < 2 else f"What runs, {len(read.steps)} steps"
    )
    covers = subject.path("argv") if read.words else ""
    inside = tuple(read.inside)
    command = Command(title, tuple(read.steps), inside, read.problem, covers)
    places = tuple(_places(subject))
    hosts = tuple(_destinations(read))
    views: list[View] = [
        command,
        Group("Where it connects to", hosts),
        Group("Where", places),
    ]
    hidden = [subject.undecoded(role, why) for why in dict.fromkeys(read.doubts)]
    return present(
        subject,
        *_tags(read),
        sentence=sentence(subject, _said(subject, read)),
        size=tuple(_size(subject)),
        views=[view for view in views if not isinstance(view, Group) or view.rows],
        hidden=hidden,
        used=("programs", "globs", "host", "user", "cwd"),
    )


def _read_text(subject: Subject) -> Read:
    text = subject.said("command")
    if not isinstance(text, str):
        return Read(doubts=["There is no command that can be read."])
    return read(text, subject.before or {})


def _read_argv(subject: Subject) -> Read:
    """Parse words that no shell reads: the program receives each exactly as given."""
    first, rest = subject.said("command"), subject.said("argv")
    words = [*([] if first is None else [first]), *(rest if _is_list(rest) else [])]
    if not words or not all(isinstance(word, str) for word in words):
        return Read(doubts=["The words of the command are not all text."])
    simple = shell_lexer.Simple("", words=[shell_lexer.Word(w, w, w) for w in words])
    found = Read(words=words)
    _step(simple, found, subject.before or {}, depth=0)
    if isinstance(first, str) and any(char in first for char in " \t\n;|&$`<>"):
        found.doubts.append("Whether a shell reads the command is not declared.")
    if not _is_list(rest):
        found.doubts.append("The words of the command are not a list.")
    return found


def read(text: str, declared: Mapping[str, Any], depth: int = 0) -> Read:
    """Parse a command line; `declared` is what the tool's reader said about it.

    Never raises: a line that cannot be parsed has its reason in `problem`.
    """
    found = Read()
    if any(unicode.is_hidden(char) and char not in "\n\t" for char in text):
        found.doubts.append("It has characters that nobody sees.")
        found.warns.append("Hidden characters")
    try:
        simples = shell_lexer.read(text)
    except shell_lexer.Unreadable as error:
        found.problem = f"Not decoded: {error}."
        found.doubts.append(found.problem)
        found.warns.append("Not decoded")
        return found
    if not simples:
        found.doubts.append("There is no command that can be read.")
    for simple in simples:
        _step(simple, found, declared, depth)
    return found


def _step(
    simple: shell_lexer.Simple, found: Read, declared: Mapping[str, Any], depth: int
) -> None:
    fed = simple.joined in ("|", "|&")
    watched = shell_warnings.watch(simple, fed=fed)
    tokens = tuple(_tokens(simple, watched, declared))
    joined = _JOINED[simple.joined].format(n=len(found.steps))
    found.steps.append(Step(joined, tokens))
    found.doubts += watched.doubts
    found.hosts += [host for host in watched.hosts if host not in found.hosts]
    found.warns += [warn for token in tokens for warn in token.warns]
    for title, text in _carried(simple, watched):
        _open(title, text, found, declared, depth)
    for redirect in simple.redirects:
        if redirect.body is not None:
            _heredoc(redirect, simple, found, declared, depth)


def _carried(
    simple: shell_lexer.Simple, watched: shell_warnings.Watched
) -> Iterator[tuple[str, str]]:
    for code in watched.codes:
        yield "Runs in a shell of its own", code
    for word in [*simple.words, *simple.assigns, *(r.target for r in simple.redirects)]:
        for text in word.inner:
            yield "Runs first, and its output is put in", text


def _open(
    title: str, text: str, found: Read, declared: Mapping[str, Any], depth: int
) -> None:
    """Parse a command inside the command into steps of its own."""
    if depth >= DEEPEST:
        found.inside.append(Inside(title, text, problem="Not opened: too deep."))
        found.doubts.append("Commands are nested too deep.")
        return
    inner = read(text, declared, depth + 1)
    found.inside.append(Inside(title, text, tuple(inner.steps), inner.problem))
    found.inside += inner.inside
    found.doubts += inner.doubts
    found.warns += inner.warns
    found.hosts += [host for host in inner.hosts if host not in found.hosts]


def _heredoc(
    redirect: shell_lexer.Redirect,
    simple: shell_lexer.Simple,
    found: Read,
    declared: Mapping[str, Any],
    depth: int,
) -> None:
    body = redirect.body or ""
    if shell_warnings.FOREIGN_TEXT in shell_warnings.watch(simple, fed=True).doubts:
        _open("Runs this text in a shell", body, found, declared, depth)
        found.doubts.append("Its text is read as commands.")
        return
    found.inside.append(Inside("Text that it reads", body))
    if not redirect.target.quoted and any(char in body for char in "$`"):
        found.doubts.append(shell_warnings.MARKS["variable"])


def _tokens(
    simple: shell_lexer.Simple,
    watched: shell_warnings.Watched,
    declared: Mapping[str, Any],
) -> Iterator[Token]:
    for comment in simple.comments:
        yield Token(comment, "comment, not run")
    for place, word in enumerate(simple.assigns):
        yield Token(word.text, "sets a variable", _warns(watched.assigns[place]))
    for place, word in enumerate(simple.words):
        yield _token(place, word, _warns(watched.words[place]), declared)
    for place, redirect in enumerate(simple.redirects):
        stream = _STREAMS.get(redirect.number, f"stream {redirect.number} ")
        means = f"{stream}{_OPERATORS[redirect.operator]}".capitalize()
        text = f"{redirect.number}{redirect.operator} {redirect.target.text}"
        yield Token(text, means, _warns(watched.redirects[place]))
    if simple.background:
        yield Token("&", "nobody waits for it", ("Goes on in the background",))


def _token(
    place: int,
    word: shell_lexer.Word,
    warns: tuple[str, ...],
    declared: Mapping[str, Any],
) -> Token:
    text = word.text
    if "glob" in word.marks:
        matches = _declared(declared, "globs", text)
        known = isinstance(matches, int) and not isinstance(matches, bool)
        number = (
            f"{matches} found, as the tool declared" if known else "matches unknown"
        )
        return Token(text, "pattern", (*warns, f"Glob: {number}"))
    if place == 0:
        path = _declared(declared, "programs", text)
        return Token(text, "program", warns, path if isinstance(path, str) else "")
    if text == "":
        return Token("(empty)", "empty argument", warns)
    return Token(text, "option" if text.startswith("-") else "argument", warns)


def _places(subject: Subject) -> Iterator[Row]:
    """Where, as whom and with what it runs: as proposed, then as the reader says."""
    yield from subject.listed(*_PARTS)
    for name in ("host", "user", "cwd"):
        value = subject.read(name)
        if isinstance(value, str) and not subject.path(name):
            yield Row(subject.label(name), f"read.{name}", Cell(value), "as read")


def _destinations(read: Read) -> Iterator[Row]:
    for number, host in enumerate(read.hosts):
        yield Row("Address", f"host.{number}", Cell(host))


def _said(subject: Subject, read: Read) -> dict[str, Part]:
    """Values for the effect sentence: an argv is quoted, several steps are counted."""
    if read.words:
        return {subject.path("argv"): Value(shlex.join(read.words))}
    path = subject.path("command")
    if len(read.steps) < 2 or not path:
        return {}
    return {path: Value(f"{len(read.steps)} commands", untrusted=False)}


def _size(subject: Subject) -> Iterator[Pair]:
    for role, label in (("host", "On"), ("user", "As"), ("cwd", "In")):
        value = subject.said(role) or subject.read(role)
        if isinstance(value, str) and value:
            yield Pair(label, value, "", untrusted=True)


def _tags(read: Read) -> Iterator[Tag]:
    """Tags for the gravest warnings, once each; the words themselves show all of
    them."""
    found = sorted(dict.fromkeys(read.warns), key=_gravity)
    for said in found[:MOST_TAGS]:
        yield Tag(said, loud=True)
    if len(found) > MOST_TAGS:
        yield Tag(f"{count(len(found) - MOST_TAGS, 'more warning')} below", loud=True)
    if read.hosts:
        yield Tag(f"Connects to {count(len(read.hosts), 'place')}")


def _gravity(said: str) -> int:
    order = ("Destr", "Delet", "Format", "May delete", "A whole", "A disk", "Drop")
    starts = [n for n, word in enumerate(order) if said.startswith(word)]
    quiet = said.startswith(("Glob", "A script", "Hides", "In somebody", "Asks"))
    return starts[0] if starts else 20 + quiet


def _declared(declared: Mapping[str, Any], name: str, key: str) -> Any:
    found = declared.get(name)
    return found.get(key) if isinstance(found, Mapping) else None


def _warns(found: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(found))


def _is_list(value: Any) -> bool:
    return isinstance(value, list)
