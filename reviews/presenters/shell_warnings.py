"""Warnings about the words of a command, each one line in Counterseal's words. Pure.

The tables below name programs and options that are known to be grave, and a few
programs that only read. Any other program is called unknown, so that none passes
without a word. A doubt means that nobody can tell what would run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from . import paths, shell_git
from .shell_git import RUNS_OTHER, UNKNOWN_PROGRAM
from .shell_lexer import OVERWRITES, REDIRECTIONS, Redirection, ShellWord, SimpleCommand

OTHER_LANGUAGE = "Code in another language. It was not decoded."
FOREIGN_TEXT = "It runs text that is not on this page."
ENCODED = "A word looks encoded. It was not decoded."
MARK_DOUBTS = {
    "substitution": "The result of a substitution is known only when it runs.",
    "process": "The result of a substitution is known only when it runs.",
    "variable": "The value of a variable is not on this page.",
    "brace": "Shells interpret braces differently.",
}

_SHELLS = re.compile(r"(?:ba|da|z|k|a|mk|fi|tc|c)?sh|busybox")
_LANGUAGES = re.compile(
    r"python[\d.]*|perl[\d.]*|ruby[\d.]*|node(js)?|deno|bun|php[\d.]*|lua[\d.]*|pwsh"
    r"|powershell(\.exe)?|cmd\.exe|osascript|tclsh|expect|Rscript|groovy|jshell"
)
# Programs that run the program named in their arguments.
_WRAPPERS = (
    "sudo doas su pkexec runuser gosu setpriv env nohup nice ionice timeout time xargs"
    " stdbuf setsid chroot unshare nsenter watch parallel command exec builtin busybox"
    " flock script ssh docker podman kubectl find fd strace ltrace chrt taskset"
)
_PROGRAM_WARNINGS = """
Runs as another user: sudo doas su pkexec runuser gosu setpriv
Deletes files: rm rmdir unlink srm
Destroys what is stored: shred wipefs blkdiscard
Changes a disk's partitions: fdisk parted sfdisk
Writes raw data: dd
Truncates files: truncate
Drops a database or its user: dropdb dropuser
Changes permissions: chmod chown chgrp setfacl chattr
Changes users of the machine: useradd userdel usermod groupadd groupdel passwd visudo
Schedules something to run later: crontab at batch
Ends programs or the machine: kill killall pkill reboot shutdown halt poweroff init
Changes the network: iptables nft ufw firewall-cmd route
Changes the system: mount umount insmod modprobe sysctl
Runs text as commands: eval source . trap alias
Changes how programs run: export unset set shopt declare
Moves or replaces files: mv cp ln install tee
Changes security settings: setenforce auditctl aa-disable apparmor_parser
An editor, which can run anything: vi vim ed ex emacs
Connects to the network: curl wget nc ncat netcat socat telnet ssh scp sftp rsync ftp
Connects to the network: aria2c lftp http https xh dig nslookup host ping mail sendmail
"""
_PROGRAMS = {
    name: warning
    for warning, _, names in (
        line.partition(": ") for line in _PROGRAM_WARNINGS.splitlines()
    )
    for name in names.split()
}
# Of the words of a program: the warning, the programs, and the words that it is about.
# GNU's tools accept the first letters of a long option.
_RULE_LINES = r"""
Including everything inside: rm|rmdir|chmod|chown|chgrp|cp: -\w*[rR]\w*|--recursive
Asks for no confirmation: rm|mv|cp|ln: -\w*f\w*|--force
Formats a disk: mkfs(\..*)?: .*
Deletes what it finds: find|fd: -delete
Overwrites a file: find: -fls|-fprint(0|f)?
Overwrites a file: g?sed: -[nEsuz]*i.*|--i.*
Overwrites a file: [gmn]?awk: -i.*|--include.*|inplace|-[dop].*|--(dump|pretty
  |profile).*
Overwrites a file: sort|tree: -[bdfghiMnRrVcCmsuz]*o.*|--o.*
Changes the system: date: -\w*s.*|--s.*
Changes the system: hostname: [^-].*|-F.*|--file.*|-b
Overwrites a file: file: -\w*C|--compile
Overwrites a file: perl|ruby: -[\w]*i.*
Deletes files: tar: --remove-files|--recursive-unlink|--unlink-first|-U
Overwrites a file: tar|unzip: -\w*x\w*|x[vfzjJp]*|--extract|--get|-o
Deletes files: zip: -\w*m|--move
Overwrites a file: curl|wget: -[a-zA-Z]*[oO].*|--output.*|--remote-name.*
Deletes or overwrites files at the other end: rsync: --del.*|--remove-(source
  |sent)-files|--ignore-errors|--inplace
Removes containers: docker|podman|nerdctl: rm|rmi|remove|prune|kill|down|stop|leave
  |uninstall
Runs or moves images: docker|podman|nerdctl: run|exec|pull|push
Removes what runs: kubectl|oc|helm: delete|del|un|drain|evict|uninstall|rollback
  |replace|--prune.*|--replace.*
Changes a cluster: kubectl|oc|helm: apply|exec|scale|rollout|patch|upgrade|create|edit
  |set|label|annotate|taint|cordon|uncordon|autoscale|expose|run|cp|debug|attach
  |install|adm
Destroys infrastructure: terraform|tofu|terragrunt|pulumi: --?destroy|destroy|down|dn
  |--?replace.*|rm|delete|taint
Changes infrastructure: terraform|tofu|terragrunt|pulumi: apply|up|import|state|refresh
  |cancel|untaint|force-unlock|run-all|workspace|--?migrate-state|--?force-copy
  |--?reconfigure|update
Deletes in the cloud: aws|gcloud|az|gsutil|s3cmd|rclone|doctl|heroku|fly|flyctl: rm|rb
  |del|(batch-)?delete.*|terminate.*|remove.*|purge.*|destroy|deletefile|rmdirs?
  |cleanup|dedupe|deregister.*|(\S*:)(destroy|reset|delete|remove|rm)
Deletes in the cloud: rclone|gsutil|s3cmd: sync|mv|move|moveto|rsync
Runs statements in a database: psql|mysql|mariadb|sqlite3|mongosh?|redis-cli
  |clickhouse.*|sqlcmd: -c|-e|--command.*|--execute.*|--eval.*|(?i:.*(drop|delete
  |truncate|flush).*)
Downloads third-party code: npm|pnpm|yarn|pip[\d.]*|pipx|gem|cargo|go|apt|apt-get|yum
  |dnf|brew|apk|uv: install|i|add|ci|get|upgrade|update|publish|sync
Downloads third-party code: npx|uvx|bunx|dlx: .*
Stops a service: systemctl|service|launchctl: stop|disable|restart|mask|kill|unload
Grants wide permissions: chmod: [0-7]*[2367]|\S*[+=]\S*[sw]\S*|[4-7][0-7]{3}
Skips certificate checks: curl|wget|git: -k|--insecure|--no-check-certificate
Sends data out: curl|wget|http|https|xh: -X|--request.*|-d.*|--data.*|-T|--upload-file
  |-F|--form.*|--post.*|@.*
Opens a shell: nc|ncat|netcat|socat: -\w*[ec]\w*|(?i:exec.*|system.*)
Clears its tracks: history: -c|-w
Runs a program from a file: [gmn]?awk|g?sed: -f.*|--file.*
Decodes: base64|base32|xxd|openssl|gunzip|zcat: -d|-D|--decode|-r|enc|.*
May delete the whole disk: .*: --no-preserve-root
Skips the checks: .*: --no-verify|--skip-checks?|--no-checks?
Forces or deletes: .*: --force|--force-.*|--hard|--purge|--prune|--delete
Asks for no confirmation: .*: --yes|--assume-yes|--?auto-approve|--non-interactive
Drops protection: .*: --privileged|--allow-root|--unsafe.*|--dangerously.*
"""
_RULES = [
    (warning, re.compile(programs), re.compile(arguments))
    for warning, programs, arguments in (
        line.split(": ", 2)
        for line in _RULE_LINES.strip().replace("\n  ", "").splitlines()
    )
]
# Programs that only read and print: by themselves they write nothing and run nothing.
# The rules above still warn of some of their options.
_READ_ONLY_NAMES = """
: [ [[ awk basename cal cat cd cksum cmp column comm cut date df diff dirname du echo
egrep expr false fgrep file fmt fold free gawk git grep gsed head hostname id jobs
join jq last locale ls lsblk lscpu mawk md5sum mkdir nl nproc paste pgrep popd
printenv printf ps pushd pwd read readlink realpath rev rg sed seq sha1sum sha256sum
sha512sum sleep sort stat strings sum tac tail test touch tr tree true type uname uniq
uptime wait wc which who whoami zcat
"""
_READ_ONLY_PROGRAMS = frozenset(_READ_ONLY_NAMES.split())
_RULED_PROGRAMS = re.compile(
    "|".join(
        ["git(-.*)?", *(rule[1].pattern for rule in _RULES if rule[1].pattern != ".*")]
    )
)
_HOOKS = re.compile(
    r"--compress-program.*|--pre(=.*)?|--checkpoint-action.*|--to-command.*|.*ProxyCommand.*|--use-compress-program.*"
    r"|--rsh.*|--unzip-command.*|--exec.*|-exec(dir)?|-ok(dir)?|--eval.*|alias\..*"
    r"|core\.(pager|editor|sshcommand|fsmonitor|hookspath).*|-I|--split-string.*|-S",
    re.IGNORECASE,
)
_HOOK_PROGRAMS = re.compile(
    r"tar|ssh|scp|sftp|rsync|git|zip|env|gdb|man|less|make|parallel|sort|rg|find|fd"
)
# Code with which awk or sed can run a program or write a file.
_TEXT_TOOLS = re.compile(r"[gmn]?awk|sed|gsed")
_TEXT_TOOL_CODE = re.compile(
    r"system\s*\(|getline|[|>]\s*&?\s*[\"a-z]|(^|[;}\d\s])[ewW]\s|/[gip\d]*e[gip\d]*$"
)
_DISK = re.compile(r"/dev/(?:[hsv]d[a-z]|nvme|disk|mapper|mmcblk)")
# Programs that pass one word, or all their words, to a shell.
_SHELL_CALLERS = re.compile(r"su|runuser|script|flock|watch")
_SSH_VALUE_OPTIONS = re.compile(r"-[bcDEeFIiJLlmOopQRSWw]")
_RISKY_VARIABLES = re.compile(
    r"(LD_\w+|DYLD_\w+|PATH|IFS|BASH_ENV|ENV|SHELLOPTS|PROMPT_COMMAND|PYTHON\w+"
    r"|PERL5\w+|NODE_OPTIONS|RUBYOPT|GIT_\w+|EDITOR|PAGER|http_proxy|https_proxy"
    r"|HTTPS?_PROXY)\+?="
)
_ADDRESS = re.compile(
    r"\w[\w+.-]*://\S+|[\w.-]+@[\w.-]+(:\S*)?|/dev/(?:tcp|udp)/\S+"
    r"|\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?(?:/\S*)?|\[?[0-9a-f]*(?::[0-9a-f]*){3,}\]?\S*"
    r"|[\w-]+(?:\.[\w-]+)*\.(?:com|net|org|io|dev|ru|cn|top|xyz|info|example|test)\S*",
    re.IGNORECASE,
)
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{12,}={0,2}|(?:\\{1,2}x[0-9a-fA-F]{2}){4,}")
_CASES = (re.compile("[A-Z]"), re.compile("[a-z]"), re.compile("[0-9]"))
# Only the first letters of a longer word are checked: nobody types such a word.
MOST_LETTERS = 2000
OPTION_WINDOW = 20  # words after an interpreter that may be its options
TOO_LONG = "A token is too long to check."
_PATH_STEP = 16  # encoded text rarely has a slash this often


@dataclass(slots=True)
class CommandFindings:
    """The findings about one simple command: by index of the word, and for all of
    it."""

    words: list[list[str]]
    redirects: list[list[str]]
    assigns: list[list[str]]
    doubts: list[str] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)  # shell code given as one word
    hosts: list[str] = field(default_factory=list)


def inspect_command(simple: SimpleCommand, *, fed: bool = False) -> CommandFindings:
    """Inspect one simple command; `fed` says that it reads another's output."""
    findings = CommandFindings(
        [list(_list_word_warnings(word)) for word in simple.words],
        [list(_list_redirect_warnings(redirect)) for redirect in simple.redirects],
        [
            ["Changes how programs run"] * bool(_RISKY_VARIABLES.match(word.text))
            for word in simple.assigns
        ],
    )
    fed = fed or any(redirect.operator.startswith("<") for redirect in simple.redirects)
    _inspect_programs(simple.words, findings, fed=fed)
    findings.hosts = list(_list_hosts(simple))
    for word in simple.all_words:
        findings.doubts += [
            doubt for mark, doubt in MARK_DOUBTS.items() if mark in word.marks
        ]
        if len(word.text) > MOST_LETTERS:
            findings.doubts.append(TOO_LONG)
        else:
            findings.doubts += [ENCODED] * is_encoded_word(word.text)
    return findings


def _truncate_word(text: str) -> str:
    """The part of a word that is searched, so that no search takes longer for a longer
    word."""
    return text[:MOST_LETTERS]


def is_encoded_word(text: str) -> bool:
    """Whether a word looks encoded; a long path does not."""
    return any(_is_encoded_run(match[0]) for match in _ENCODED.finditer(text))


def _is_encoded_run(text: str) -> bool:
    if len(text) <= _PATH_STEP * text.count("/"):
        return False
    mixed = len(text) >= 32 and all(case.search(text) for case in _CASES)
    return mixed or text.endswith("=") or text.startswith("\\")


def parse_program_name(word: ShellWord) -> str:
    """The name of a program, without its directory."""
    return _truncate_word(word.text.rpartition("/")[2])


def _inspect_programs(
    words: Sequence[ShellWord], findings: CommandFindings, *, fed: bool
) -> None:
    """Inspect the program and those that it is told to run in turn. The rules of the
    first program apply to all words, those of another to its next words, and at least
    to those before the next program."""
    starts = list(_list_program_places(words))
    for place, end in pairwise([*starts, len(words)]):
        name = parse_program_name(words[place])
        warnings = findings.words[place]
        warnings += [_PROGRAMS[name]] if name in _PROGRAMS else []
        warnings += ["A script: its content is not shown"] * _is_script(words[place])
        if words[place].quoted or words[place].marks:
            warnings.append("The program's name is disguised")
        warnings += ["Starts a shell"] * bool(_SHELLS.fullmatch(name))
        known = _is_known_program(name) or (place and _RULED_PROGRAMS.fullmatch(name))
        warnings += [UNKNOWN_PROGRAM] * (not warnings and not known)
        last = max(end, min(place + OPTION_WINDOW, len(words))) if place else len(words)
        _inspect_arguments(name, words, range(place + 1, last), findings)
        _inspect_interpreter(words[place : place + OPTION_WINDOW], findings, fed=fed)


def _inspect_arguments(
    name: str, words: Sequence[ShellWord], places: range, findings: CommandFindings
) -> None:
    rest = [words[place].text for place in places]
    for place, text in zip(places, rest, strict=True):
        findings.words[place] += _list_argument_warnings(name, text)
    seen = [_truncate_word(text) for text in rest]
    if _HOOK_PROGRAMS.fullmatch(name) and any(map(_HOOKS.fullmatch, seen)):
        findings.doubts.append(RUNS_OTHER)
    if _TEXT_TOOLS.fullmatch(name) and any(map(_TEXT_TOOL_CODE.search, seen)):
        findings.doubts.append(OTHER_LANGUAGE)
    if shell_git.is_git(name):
        for place, warning in shell_git.list_git_warnings(name, seen):
            findings.words[places.start + place].append(warning)
            findings.doubts += [warning] * (warning == RUNS_OTHER)
    if name == "uniq" and sum(not re.match(r"-|\d+$", text) for text in seen) > 1:
        findings.words[places.stop - 1].append(OVERWRITES)
    findings.codes += _list_shell_code(name, rest)


def _list_program_places(words: Sequence[ShellWord]) -> Iterator[int]:
    """The indexes of programs: the first word and, after a wrapper, each known name."""
    if not words:
        return
    yield 0
    if parse_program_name(words[0]) not in _WRAPPERS.split():
        return
    for place in range(1, len(words)):
        name = parse_program_name(words[place])
        known = (
            name in _PROGRAMS
            or name in _WRAPPERS.split()
            or _SHELLS.fullmatch(name)
            or _LANGUAGES.fullmatch(name)
            or _RULED_PROGRAMS.fullmatch(name)
        )
        if known and name != ".":  # which is the current directory here
            yield place
        if shell_git.is_git(name):
            return  # its words are its own: `git remote rm`


def _inspect_interpreter(
    words: Sequence[ShellWord], findings: CommandFindings, *, fed: bool
) -> None:
    name = parse_program_name(words[0])
    texts = [word.text for word in words[1:]]
    if name in ("eval", "source", ".", "trap", "alias"):
        findings.doubts.append(FOREIGN_TEXT)
    shell = _SHELLS.fullmatch(name)
    if not shell and not _LANGUAGES.fullmatch(name):
        return
    codes = [n for n, text in enumerate(texts) if re.fullmatch(r"-\w*[ceEr]|/c", text)]
    operands = [text for text in texts if not text.startswith("-")]
    if shell and codes and len(texts) > codes[0] + 1:
        findings.codes.append(texts[codes[0] + 1])
    elif codes or "-" in texts:
        findings.doubts.append(OTHER_LANGUAGE)
    elif fed or "-s" in texts or not operands:
        findings.doubts.append(FOREIGN_TEXT)


def _list_shell_code(name: str, rest: Sequence[str]) -> Iterator[str]:
    """Yield the code that this program passes to a shell, here or on another
    machine."""
    if name == "watch":
        yield " ".join(text for text in rest if not text.startswith("-"))
    elif _SHELL_CALLERS.fullmatch(name) and "-c" in rest[:-1]:
        yield rest[rest.index("-c") + 1]
    elif name == "ssh":
        operands = [
            place
            for place, text in enumerate(rest)
            if not text.startswith("-")
            and not (place and _SSH_VALUE_OPTIONS.fullmatch(rest[place - 1]))
        ]
        if operands and rest[operands[0] + 1 :]:
            yield " ".join(rest[operands[0] + 1 :])


def _list_argument_warnings(name: str, text: str) -> list[str]:
    return [
        warning
        for warning, programs, arguments in _RULES
        if programs.fullmatch(name) and arguments.fullmatch(_truncate_word(text))
    ]


def _list_word_warnings(word: ShellWord) -> Iterator[str]:
    if paths.is_whole_directory(word.text):
        yield "A whole directory or disk"
    if word.text.startswith(("/", "~", "..")) or "/" in word.text:
        yield from (
            m for m in paths.list_path_marks(word.text, "/") if m != "Configuration"
        )
    if _DISK.search(word.text):
        yield "A disk itself"
    if "home" in word.marks:
        yield "In a user's home directory"
    if word.marks & {"substitution", "process"}:
        yield "Runs another command first"
    if "variable" in word.marks:
        yield "Variable: value not shown"


def _list_redirect_warnings(redirect: Redirection) -> Iterator[str]:
    target = redirect.target.text
    _, warning = REDIRECTIONS[redirect.form]
    if redirect.is_other_command:
        yield "Runs another command first"
    elif target == "/dev/null" and ">" in redirect.operator:
        yield "Hides errors" if redirect.number == "2" else "Hides its output"
    elif warning:
        yield warning
    if target.startswith(("/dev/tcp/", "/dev/udp/")):
        yield "Connects to the network"
    yield from paths.list_path_marks(target, "/")
    if _DISK.match(target):
        yield "A disk itself"
    if paths.is_system_path(target) and target != "/dev/null":
        yield "Part of the machine"


def _is_known_program(name: str) -> bool:
    """Whether the program is known: it only reads, or its code is inspected."""
    return bool(
        name in _READ_ONLY_PROGRAMS
        or _SHELLS.fullmatch(name)
        or _LANGUAGES.fullmatch(name)
    )


def _is_script(word: ShellWord) -> bool:
    text = word.text
    relative = "/" in text and not text.startswith(("/bin/", "/usr/", "/sbin/"))
    return relative or text.endswith(
        (".sh", ".py", ".pl", ".rb", ".js", ".bat", ".ps1")
    )


def _list_hosts(simple: SimpleCommand) -> Iterator[str]:
    given = [*simple.words[1:], *(redirect.target for redirect in simple.redirects)]
    for word in given:
        match = _ADDRESS.search(_truncate_word(word.text))
        if match:
            yield match[0]
