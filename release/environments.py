"""An empty environment in which a wheel is installed and tried."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

START_TIMEOUT_S = 120
STOP_TIMEOUT_S = 30


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment below a folder, which is also the home of what runs."""

    folder: Path

    @property
    def bin(self) -> Path:
        return self.folder / "venv" / "bin"

    def install(self, requirements: Iterable[str], *, wheels: Path) -> None:
        """Create the environment. The product comes from `wheels`, all else from where
        pip finds packages."""
        venv = self.folder / "venv"
        run_silently([sys.executable, "-m", "venv", str(venv)])
        pip = [str(self.bin / "python"), "-m", "pip", "install", "--quiet"]
        run_silently([*pip, "--find-links", str(wheels), *requirements])

    def list_packages(self) -> set[str]:
        printed = self.run("python", "-m", "pip", "list", "--format", "freeze")
        return {line.partition("==")[0] for line in printed.splitlines()}

    def run(self, program: str, *arguments: str, code: int = 0, **more: str) -> str:
        """Run a program of the environment and return all that it prints. Raises
        AssertionError when its exit code is another."""
        done = subprocess.run(
            [str(self.bin / program), *arguments],
            cwd=self.folder,
            env=self.build_environ(**more),
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert done.returncode == code, f"{program} {arguments}: {done.stdout}"
        return done.stdout

    def build_environ(self, **more: str) -> dict[str, str]:
        """Nothing of the caller's but where programs are."""
        path = f"{self.bin}{os.pathsep}{os.environ['PATH']}"
        return {"HOME": str(self.folder), "PATH": path, **more}

    def check_start(self, *arguments: str) -> None:
        """Start `counterseal` with these arguments, wait until it is ready, and stop
        it. Raises AssertionError."""
        port = find_free_port()
        with (self.folder / "up.log").open("w+") as log:
            process = subprocess.Popen(
                [str(self.bin / "counterseal"), *arguments],
                cwd=self.folder,
                env=self.build_environ(PORT=str(port)),
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            try:
                self._wait_until_ready(process, f"http://127.0.0.1:{port}/readyz")
            finally:
                process.send_signal(signal.SIGINT)
                code = process.wait(STOP_TIMEOUT_S)
            log.seek(0)
            printed = log.read()
        assert code == 0, printed

    def _wait_until_ready(self, process: subprocess.Popen[bytes], url: str) -> None:
        end = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < end:
            printed = (self.folder / "up.log").read_text()
            assert process.poll() is None, printed
            if "Counterseal is running at" in printed:
                with urllib.request.urlopen(url, timeout=10) as answer:  # noqa: S310
                    assert answer.status == 200, printed
                return
            time.sleep(0.2)
        raise AssertionError(printed)

    def write_sbom(self, file: Path) -> None:
        """What is installed here, as a CycloneDX document."""
        command = [sys.executable, "-m", "cyclonedx_py", "environment"]
        command += ["--output-reproducible", "--output-file", str(file)]
        run_silently([*command, str(self.bin / "python")])


def run_silently(command: list[str], folder: Path | None = None) -> None:
    """Run a program, and show what it printed only when it fails. *Raises*
    CalledProcessError."""
    done = subprocess.run(
        command,
        cwd=folder,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode:
        sys.stderr.buffer.write(done.stdout)
        done.check_returncode()


def find_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
