"""A person's shell: runs `python -m counterseal_client` as a real process with a home
of its own, at a terminal where a test needs one. The process comes from the fork
server, unless a test names COMMAND, whose imports are part of it."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import tempfile
import termios
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.client.fork_server.commands import NO_AUTHORITIES, build_command
from tests.guards import ROOT
from tests.stack import wait_until

COMMAND = [sys.executable, "-m", "counterseal_client"]


@dataclass
class Dialogue:
    """A command at a terminal: what it has printed, and how to answer."""

    process: subprocess.Popen[bytes]
    master: int
    printed: bytearray = field(default_factory=bytearray)

    def read_all(self) -> None:
        """Collect what is printed until the command ends."""
        try:
            while chunk := os.read(self.master, 4096):
                self.printed += chunk
        except OSError:  # Linux says so when the last process has closed the terminal
            pass

    @property
    def text(self) -> str:
        return self.printed.decode().replace("\r\n", "\n")

    def answer(self, question: str, words: str) -> None:
        """Type words as soon as the question stands there."""
        seen = len(self.text.split(question))
        wait_until(lambda: question in self.text, 20, lambda: self.text)
        assert seen <= 2, self.text
        os.write(self.master, f"{words}\n".encode())

    def interrupt(self) -> None:
        """What Ctrl-C does."""
        self.process.send_signal(signal.SIGINT)

    def end(self) -> int:
        return self.process.wait(30)


def restore_interrupt() -> None:
    """A shell's background job ignores Ctrl-C, and so would the commands of tests that
    run in one."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@dataclass
class Shell:
    """One user's shell in a folder of its own."""

    home: Path
    variables: dict[str, str] = field(default_factory=dict)
    command: list[str] = field(
        default_factory=partial(build_command, "-m", "counterseal_client")
    )

    @property
    def environment(self) -> Mapping[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "PYTHONPATH": str(ROOT / "client"),
            "LANG": "C.UTF-8",
            "TERM": "xterm",
            **NO_AUTHORITIES,
            **self.variables,
        }

    @property
    def settings_file(self) -> Path:
        return self.home / ".config" / "counterseal" / "settings.json"

    def run(self, *words: str, typed: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command to its end, without a terminal."""
        return subprocess.run(
            [*self.command, *words],
            cwd=self.home,
            env=self.environment,
            input=typed,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command, without a terminal."""
        return subprocess.Popen(
            [*self.command, *words],
            cwd=self.home,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=restore_interrupt,
        )

    def start_with(self, *words: str, typed: str) -> subprocess.Popen[str]:
        """Start a command with something on standard input, which then ends."""
        with tempfile.TemporaryFile("w+") as file:
            file.write(typed)
            file.seek(0)
            return subprocess.Popen(
                [*self.command, *words],
                cwd=self.home,
                env=self.environment,
                stdin=file,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                preexec_fn=restore_interrupt,
            )

    @contextmanager
    def talk(self, *words: str, columns: int = 80) -> Iterator[Dialogue]:
        """Run a command at a terminal."""
        master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (24, columns))
        process = subprocess.Popen(
            [*self.command, *words],
            cwd=self.home,
            env=self.environment,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            preexec_fn=restore_interrupt,
        )
        os.close(slave)
        dialogue = Dialogue(process, master)
        reader = threading.Thread(target=dialogue.read_all)
        reader.start()
        try:
            yield dialogue
            process.wait(30)
        finally:
            process.kill()
            process.wait()
            reader.join()
            os.close(master)
