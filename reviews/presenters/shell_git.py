"""Warnings about a call of git: what loses work, moves references or runs a program.
Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

RUNS_OTHER = "It may run another program."
UNKNOWN_PROGRAM = "Unknown program"
# git's commands that lose work, move references or run programs: after the warning
# and the commands come the letters, long options and other words that make it so.
# `*` means each form, `first` and `second` any word in that place. git accepts the
# first letters of a long option in place of all.
_RULE_LINES = """
Discards changes: reset: --hard --merge --keep
Discards changes: checkout: -f -p --force --patch --ours --theirs --
Discards changes: checkout: --pathspec-from-file
Discards changes: switch: -f --force --discard-changes
Discards changes: restore checkout-index: *
Discards changes: read-tree: -u -m --reset
Discards changes: merge am cherry-pick revert rebase: --abort --skip
Discards changes: submodule: deinit
Discards changes: update-index: --force-remove --remove
May discard changes: checkout: first
Deletes untracked files: clean: *
Deletes stashed changes: stash: drop clear
Deletes files: rm: *
Deletes files: worktree: remove prune -f --force
Deletes files: sparse-checkout: set add reapply init disable
Overwrites a file: mv: -f --force
Overwrites a file: archive bundle format-patch diff log show: -o --output
Overwrites history: push: -f --force --force-with-lease --mirror +
Overwrites history: fetch pull: -f --force +
Overwrites history: checkout switch: -B -C --force-create
Overwrites history: branch: -f -M -C -D --force
Overwrites history: tag: -f --force
Overwrites history: fast-import send-pack http-push: *
Deletes a branch or tag: branch tag: -d -D --delete
Deletes a branch or tag: push: -d --delete --mirror --prune :
Deletes a branch or tag: fetch pull: -p -P --prune --prune-tags
Deletes or rewrites: rebase filter-branch filter-repo replace history: *
Deletes or rewrites: gc prune prune-packed maintenance update-ref: *
Deletes or rewrites: commit: --amend
Deletes or rewrites: pull: -r --rebase
Deletes or rewrites: repack: -d -a -A
Deletes or rewrites: reflog: expire delete drop
Deletes or rewrites: notes: remove prune add append edit copy merge
Deletes or rewrites: rerere: clear forget gc
Deletes or rewrites: multi-pack-index: expire repack
Deletes or rewrites: lfs: prune migrate uninstall
Deletes or rewrites: symbolic-ref: -d --delete second
Deletes or rewrites: remote: remove rm prune rename set-url set-head set-branches
Skips the checks: commit: -n --no-verify
Changes settings: config: first
Connects to the network: push fetch pull clone remote submodule ls-remote lfs: *
Connects to the network: send-email send-pack fetch-pack svn p4 daemon instaweb: *
Connects to the network: archive: --remote
Runs another: filter-branch mergetool difftool hook for-each-repo: *
Runs another: submodule: foreach
Runs another: bisect: run
Runs another: rebase: -x --exec
Runs another: grep: -O --open-files-in-pager
Runs another: diff log show: --ext-diff
Runs another: clone: -u --upload-pack
Runs another: fetch pull ls-remote: --upload-pack
Runs another: push archive ls-remote: --receive-pack --exec
"""
_QUIET = """
add am annotate apply bisect blame branch bugreport bundle cat-file check-attr
check-ignore check-mailmap check-ref-format checkout cherry cherry-pick column commit
commit-graph config count-objects describe diagnose diff diff-files diff-index diff-tree
fast-export fmt-merge-msg for-each-ref format-patch fsck get-tar-commit-id grep
hash-object help index-pack init interpret-trailers log ls-files ls-tree mailinfo
mailsplit merge merge-base merge-file merge-tree mktag mktree mv name-rev notes
pack-objects pack-redundant pack-refs patch-id range-diff read-tree reflog repack rerere
reset rev-list rev-parse revert shortlog show show-branch show-index show-ref
sparse-checkout stage stash status stripspace switch symbolic-ref tag unpack-file
unpack-objects update-index var verify-commit verify-pack verify-tag version
whatchanged worktree write-tree commit-tree multi-pack-index
"""
_VALUE_OPTIONS = (
    "-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source"
)
# Letters after which the rest of the word is a value: `git commit -mfix`.
_VALUE_LETTERS = {
    "checkout": "bB", "switch": "cC", "commit": "mFCctSu", "rebase": "sXxCS",
    "branch": "u", "tag": "mFu", "push": "o", "clean": "e", "worktree": "bB",
    "merge": "mFsXS", "log": "nSGLOl", "diff": "SGOl", "show": "SGOl", "clone": "boucj",
    "grep": "efABCm", "notes": "mFCc", "archive": "o", "format-patch": "ov",
}  # fmt: skip
# Settings with which git runs nothing else.
_PLAIN_SETTINGS = re.compile(
    r"(safe\.directory|user\.(name|email)|color\.\S*|advice\.\S*|core\.(quotepath|autocrlf|abbrev)"
    r"|init\.defaultbranch|log\.\w+|commit\.gpgsign"
    r"|tag\.gpgsign)(=.*)?",
    re.IGNORECASE | re.DOTALL,
)


def _parse_rules() -> dict[str, list[tuple[str, frozenset[str]]]]:
    rules: dict[str, list[tuple[str, frozenset[str]]]] = {}
    for line in _RULE_LINES.strip().splitlines():
        warning, commands, signs = line.split(": ", 2)
        for command in commands.split():
            rule = RUNS_OTHER if warning == "Runs another" else warning
            rules.setdefault(command, []).append((rule, frozenset(signs.split())))
    return rules


_RULES = _parse_rules()


def is_git(name: str) -> bool:
    """Whether the program is git or one of the programs that it consists of."""
    return name == "git" or name.startswith("git-")


def list_git_warnings(name: str, rest: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The warnings about a call of git, each with the index in `rest` of its word.
    `rest` are the words after the program, whose own index is -1; `name` may be of the
    form `git-reset`."""
    at = 0
    while name == "git" and at < len(rest) and rest[at].startswith("-"):
        step = 1 + (rest[at] in _VALUE_OPTIONS.split())
        value = rest[at + 1] if step == 2 and at + 1 < len(rest) else ""
        setting = rest[at] == "-c" and not _PLAIN_SETTINGS.fullmatch(value)
        if setting or rest[at].startswith(("--exec-path=", "--config-env")):
            yield at, RUNS_OTHER
        at += step
    words = [name.removeprefix("git-"), *rest] if name != "git" else rest[at:]
    if words:
        shift = at if name == "git" else -1
        for place, warning in _list_command_warnings(words[0], words[1:]):
            yield place + shift, warning


def _list_command_warnings(
    command: str, rest: Sequence[str]
) -> Iterator[tuple[int, str]]:
    rules = _RULES.get(command, [])
    if not rules and command not in _QUIET.split():
        yield 0, UNKNOWN_PROGRAM
    for warning, signs in rules:
        if "*" in signs:
            yield 0, warning
        for place in _find_signs(command, rest, signs):
            yield place, warning


def _find_signs(command: str, rest: Sequence[str], signs: frozenset[str]) -> list[int]:
    """The indexes of the words, counted from 1, that make a command what a rule
    says."""
    ended, operands = False, 0
    places: list[int] = []
    for place, text in enumerate(rest, 1):
        is_option = text.startswith("-") and text != "-" and not ended
        if not is_option:
            operands += 1
            named = ("", "first", "second")[operands] if operands < 3 else ""
            holds = named in signs or (operands == 1 and text in signs)
            holds = holds or text[:1] in signs
        elif text == "--":
            ended, holds = True, "--" in signs
        elif text.startswith("--"):
            given = text.partition("=")[0]
            holds = any(sign.startswith(given) for sign in signs)
        else:
            letters = _list_letters(command, text)
            if "first" in signs and set(letters) & set("bBdt"):
                return []  # a branch is made, or none is left
            holds = any(f"-{letter}" in signs for letter in letters)
        places += [place] * holds
    return places


def _list_letters(command: str, text: str) -> str:
    """The letters of `-fdx`, up to one that takes the rest of the word as its value."""
    valued = _VALUE_LETTERS.get(command, "")
    ends = [place for place, letter in enumerate(text) if letter in valued]
    return text[1 : ends[0] + 1] if ends else text[1:]
