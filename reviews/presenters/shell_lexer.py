"""Split a POSIX command line into simple commands, words and redirections. Pure.

The standard library's `shlex` forgets what was quoted, so that `';'` and `;` become
equal; this lexer keeps it. It accepts only what every POSIX shell parses alike: for
anything else it raises `UnreadableCommand` or sets a mark on the word. It never
guesses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

MOST_WORDS = 1000  # a person cannot check a longer command
_BLANK, _META = " \t", " \t\n;&|<>()"
_OPERATORS = ("&&", "||", ";", "|&", "|", "&", "\n")
OVERWRITES, ADDS = "Overwrites a file", "Adds to a file"
# Every redirection operator of bash's grammar, the longer ones first: what it does, and
# the warning about a file that it names.
REDIRECTIONS = {
    "&>>": ("output and errors added to a file", ADDS),
    "&>": ("output and errors written to a file", OVERWRITES),
    "<<<": ("read from this text", ""),
    "<<-": ("read from the text below", ""),
    "<<": ("read from the text below", ""),
    "<>": ("read from and written to a file", OVERWRITES),
    "<&": ("joined to another stream", ""),
    "<": ("read from a file", ""),
    ">>": ("added to a file", ADDS),
    ">|": ("written to a file", OVERWRITES),
    ">&": ("joined to another stream", ""),  # and as &> if it names a file
    ">": ("written to a file", OVERWRITES),
}
_BASH_ONLY = ("&>>", "&>")  # other shells end the command at the &
_REDIRECT = re.compile("|".join(map(re.escape, REDIRECTIONS)))
_STREAM = re.compile(r"\d+-?|-")  # a stream to join, to move or to close
_STREAM_NAME = re.compile(r"\{[A-Za-z_]\w*\}")  # bash stores the stream's number there
_GAP = re.compile(r"[ \t]|\\\n")
_SPLIT = re.compile(r"(?:\\\n)+[<>&|;(-]")  # a line break inside an operator
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_KEYWORDS = (
    "if then else elif fi for while until do done case esac select function coproc"
    " { } ! [[ ]]"
)
_ESCAPED = '$`"\\\n'
# Replaces a quoted character where only unquoted ones count.
_QUOTED_MARK = "\x00"


class UnreadableCommand(Exception):
    """The command cannot be parsed with certainty; the message tells reviewers why.
    `as_bash` is the command as bash reads it, where only the shells differ."""

    def __init__(self, why: str, as_bash: Sequence[SimpleCommand] = ()) -> None:
        super().__init__(why)
        self.as_bash = as_bash


@dataclass(slots=True)
class ShellWord:
    """One word of a command. `text` is what the program receives, except where a mark
    says that the shell puts something else there. `inner` has the commands inside
    substitutions."""

    text: str = ""
    bare: str = ""  # the text with quoted characters blanked
    raw: str = ""
    marks: set[str] = field(default_factory=set)
    inner: list[str] = field(default_factory=list)

    @property
    def quoted(self) -> bool:
        return _QUOTED_MARK in self.bare


@dataclass(slots=True)
class _WordBuilder(ShellWord):
    """A word under construction, in pieces: appending to one string letter by letter
    would take quadratic time."""

    texts: list[str] = field(default_factory=list)
    bares: list[str] = field(default_factory=list)

    def add(self, text: str, *, bare: bool = False) -> None:
        self.texts.append(text)
        self.bares.append(text if bare else _QUOTED_MARK * max(len(text), 1))

    def made(self, raw: str) -> ShellWord:
        text, bare = "".join(self.texts), "".join(self.bares)
        return ShellWord(text, bare, raw, self.marks, self.inner)


@dataclass(slots=True)
class Redirection:
    """A redirection such as `2>file`. `number` is empty for the default stream; only a
    heredoc has a `body`."""

    operator: str
    target: ShellWord
    number: str = ""
    body: str | None = None

    @property
    def form(self) -> str:
        """The operator that does the same: `>&file` does what `&>file` does."""
        if self.operator != ">&" or _STREAM.fullmatch(self.target.text):
            return self.operator
        return ">" if self.number else "&>"

    @property
    def is_other_command(self) -> bool:
        """Whether it leads to a command instead of a file: `> >(tee log)`."""
        return "process" in self.target.marks


@dataclass(slots=True)
class SimpleCommand:
    """One program with its words; `joined` is the operator before it."""

    joined: str
    assigns: list[ShellWord] = field(default_factory=list)
    words: list[ShellWord] = field(default_factory=list)
    redirects: list[Redirection] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    background: bool = False

    @property
    def is_empty(self) -> bool:
        return not (self.assigns or self.words or self.redirects or self.comments)

    @property
    def all_words(self) -> list[ShellWord]:
        targets = (redirect.target for redirect in self.redirects)
        return [*self.words, *self.assigns, *targets]

    @property
    def runs(self) -> bool:
        return bool(self.assigns or self.words or self.redirects)


def parse_simple_commands(text: str) -> list[SimpleCommand]:
    """Parse a text into simple commands, in order. Raises `UnreadableCommand`."""
    return _Lexer(text).commands()


class _Lexer:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.waiting: list[Redirection] = []  # heredocs whose bodies follow this line
        self.simples = [SimpleCommand("")]
        self.words = 0
        self.difference = ""  # how the shells differ, where bash's reading is known

    def commands(self) -> list[SimpleCommand]:
        while self.at < len(self.text):
            self._next()
        if self.waiting:
            raise UnreadableCommand("the end of a here-document is missing")
        if (
            self.simples[-1].joined in ("&&", "||", "|", "|&")
            and not self.simples[-1].runs
        ):
            raise UnreadableCommand(f"nothing follows {self.simples[-1].joined}")
        commands = [simple for simple in self.simples if not simple.is_empty]
        if self.difference:
            raise UnreadableCommand(self.difference, commands)
        return commands

    def _next(self) -> None:
        char = self.text[self.at]
        if char in _BLANK:
            self.at += 1
        elif self.text.startswith("\\\n", self.at):
            self.at += 2
        elif char == "#":
            self.simples[-1].comments.append(self._until("\n"))
        elif not (self._redirect("") or self._operator()):
            self._take(self._word())

    def _operator(self) -> bool:
        for sign in ("()", ";;"):
            if self.text.startswith(sign, self.at):
                raise UnreadableCommand(f"shells interpret {sign} differently")
        for operator in _OPERATORS:
            if self.text.startswith(operator, self.at):
                self.at += len(operator)
                self._check_whole(operator)
                self._join(operator)
                return True
        return False

    def _join(self, operator: str) -> None:
        last = self.simples[-1]
        last.background = operator == "&"
        if operator == "\n":
            self._heredocs()
            if not last.runs:
                return
        elif not last.runs:
            raise UnreadableCommand(f"nothing precedes {operator}")
        self.simples.append(SimpleCommand(operator))

    def _redirect(self, number: str) -> bool:
        if self.text.startswith(("<(", ">("), self.at):
            return False
        match = _REDIRECT.match(self.text, self.at)
        if not match:
            return False
        self.at = match.end()
        self._check_whole(match[0])
        if match[0] in _BASH_ONLY or number.startswith("{"):
            sign = f"{number}{match[0]}"
            self.difference = f"shells interpret {sign} differently"
        while gap := _GAP.match(self.text, self.at):
            self.at = gap.end()
        redirection = Redirection(match[0], self._word(), number)
        if not redirection.target.raw:
            raise UnreadableCommand("a redirection has no target")
        if match[0] in ("<<", "<<-"):
            self.waiting.append(redirection)
        self.simples[-1].redirects.append(redirection)
        return True

    def _check_whole(self, operator: str) -> None:
        if operator != "\n" and _SPLIT.match(self.text, self.at):
            raise UnreadableCommand(f"a line break splits what begins with {operator}")

    def _heredocs(self) -> None:
        for redirect in self.waiting:
            lines = []
            while True:
                if self.at >= len(self.text):
                    raise UnreadableCommand("the end of a here-document is missing")
                line = self._until("\n")
                self.at += 1
                if redirect.operator == "<<-":
                    line = line.lstrip("\t")
                if line == redirect.target.text:
                    break
                lines.append(line)
            redirect.body = "\n".join(lines)
        self.waiting = []

    def _take(self, word: ShellWord) -> None:
        simple = self.simples[-1]
        self.words += 1
        if self.words > MOST_WORDS:
            raise UnreadableCommand(f"it has more than {MOST_WORDS} words")
        number = word.raw.replace("\\\n", "")
        is_stream = number.isascii() and number.isdigit()
        if (is_stream or _STREAM_NAME.fullmatch(number)) and self._redirect(number):
            return
        if not simple.words and _ASSIGNMENT.match(word.bare):
            simple.assigns.append(word)
            return
        if not simple.words and word.bare in _KEYWORDS.split():
            raise UnreadableCommand(f"it is a shell program, with {word.bare}")
        simple.words.append(word)

    def _word(self) -> ShellWord:
        making, start = _WordBuilder(), self.at
        while self.at < len(self.text):
            char = self.text[self.at]
            process = self.text.startswith(("<(", ">("), self.at)
            if char in _META and not process:
                break
            if process:
                self._inside(making, 2, "process")
            else:
                _WORD_HANDLERS.get(char, _Lexer._plain)(self, making)
        if self.at < len(self.text) and self.text[self.at] in "()":
            raise UnreadableCommand("it has brackets and is a shell program")
        word = making.made(self.text[start : self.at])
        if _has_brace_expansion(word.bare):
            word.marks.add("brace")
        if any(char in word.bare for char in "*?["):
            word.marks.add("glob")
        if word.bare.startswith("~"):
            word.marks.add("home")
        return word

    def _plain(self, word: _WordBuilder) -> None:
        word.add(self.text[self.at], bare=True)
        self.at += 1

    def _escape(self, word: _WordBuilder) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        if not following:
            raise UnreadableCommand("it ends in the middle of an escape")
        if following != "\n":
            word.add(following)
        self.at += 2

    def _single(self, word: _WordBuilder) -> None:
        self.at += 1
        word.add(self._until("'", needed=True))
        self.at += 1

    def _double(self, word: _WordBuilder) -> None:
        self.at += 1
        word.add("")
        while (char := self.text[self.at : self.at + 1]) != '"':
            if not char:
                raise UnreadableCommand("a quote is never closed")
            if char in "$`":
                _WORD_HANDLERS[char](self, word)
            elif char == "\\" and self.text[self.at + 1 : self.at + 2] in _ESCAPED:
                self._escape(word)
            else:
                word.add(char)
                self.at += 1
        self.at += 1

    def _dollar(self, word: _WordBuilder) -> None:
        rest = self.text[self.at + 1 : self.at + 3]
        if rest.startswith("(("):
            raise UnreadableCommand("it uses arithmetic $(( ))")
        if rest.startswith("("):
            self._inside(word, 2, "substitution")
        elif rest[:1] in ("'", '"'):
            raise UnreadableCommand("shells read $' and $\" differently")
        elif rest.startswith("{"):
            self._variable(word, self._closing(self.at + 2, "{", "}") + 1)
        elif match := _NAME.match(self.text, self.at + 1):
            self._variable(word, match.end())
        else:
            self._plain(word)

    def _variable(self, word: _WordBuilder, end: int) -> None:
        text = self.text[self.at : end]
        word.add(text)
        word.marks.add("variable")
        if "$(" in text or "`" in text:
            word.marks.add("substitution")
        self.at = end

    def _backtick(self, word: _WordBuilder) -> None:
        start = self.at
        self.at += 1
        word.inner.append(self._until("`", needed=True))
        self.at += 1
        if "\\" in word.inner[-1]:
            raise UnreadableCommand("a substitution has escapes inside")
        word.add(self.text[start : self.at])
        word.marks.add("substitution")

    def _inside(self, word: _WordBuilder, opening: int, mark: str) -> None:
        end = self._closing(self.at + opening, "(", ")")
        word.inner.append(self.text[self.at + opening : end])
        word.add(self.text[self.at : end + 1])
        word.marks.add(mark)
        self.at = end + 1

    def _closing(self, start: int, opens: str, closes: str) -> int:
        """The index of the bracket that closes the one opened before `start`."""
        depth, at = 1, start
        while at < len(self.text):
            char = self.text[at]
            if char == "#" and self.text[at - 1] in " \t\n;(":
                raise UnreadableCommand("a substitution has a comment inside")
            if char in "'\"`":
                at = self._quote_end(at)
            depth += (char == opens) - (char == closes)
            if depth == 0:
                return at
            at += 2 if char == "\\" else 1
        raise UnreadableCommand("a bracket is never closed")

    def _quote_end(self, at: int) -> int:
        quote, at = self.text[at], at + 1
        while at < len(self.text) and self.text[at] != quote:
            at += 2 if self.text[at] == "\\" and quote != "'" else 1
        if at >= len(self.text):
            raise UnreadableCommand("a quote is never closed")
        return at

    def _until(self, sign: str, *, needed: bool = False) -> str:
        end = self.text.find(sign, self.at)
        if end < 0 and needed:
            raise UnreadableCommand("a quote is never closed")
        text = self.text[self.at : end if end >= 0 else len(self.text)]
        self.at += len(text)
        return text


def _has_brace_expansion(bare: str) -> bool:
    """Whether some shells expand this word into several: `{a,b}`, `{1..3}`."""
    opened = bare.find("{")
    return opened >= 0 and "}" in bare[opened:] and ("," in bare or ".." in bare)


_WORD_HANDLERS: dict[str, Callable[[_Lexer, _WordBuilder], None]] = {
    "\\": _Lexer._escape,
    "'": _Lexer._single,
    '"': _Lexer._double,
    "$": _Lexer._dollar,
    "`": _Lexer._backtick,
}
