"""`make conformance`: the conformance kit against a gate of its own.

Builds one virtual environment per framework in var/conformance, starts a private
installation there, loads the kit's policy, and runs `counterseal_conformance` in
each environment. `make conformance ARGS="langgraph"` runs one of them. Frameworks for
Node are installed in client/typescript, by the npm of Node's wheel.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx2

from counterseal_conformance.people import Visitor
from counterseal_conformance.variants import (
    FRAMEWORKS,
    TYPESCRIPT,
    VARIANTS,
    find_node,
    list_variants,
)
from hitl.environment import LOOPBACK
from tests.guards import ROOT
from tests.stack import (
    START_S,
    free_port,
    list_descendants,
    stop_process,
)

FOLDER = ROOT / "var" / "conformance"
KIT = ROOT / "client" / "conformance"
POLICY = KIT / "counterseal_conformance" / "policy.yaml"
PYTHONPATH = os.pathsep.join([str(ROOT / "client"), str(KIT)])
TOOLS = ("send_note", "order_parts", "erase_note")
AGENT = "conformance"
# The package that brings Restate's server, which PyPI has not.
RESTATE_SERVER = ROOT / "tests" / "client" / "conformance" / "restate_server"
# A dead agent's lease is over soon, and an agent's webhooks may come to this machine.
ENVIRON = {
    "RILEY": "0",
    "HISTORY": "0",
    "HTTP_TIMEOUT": "1",
    "SOFT_TIME_LIMIT": "2",
    "TIME_LIMIT": "3",
    "LEASE_SECONDS": "4",
    "VISIBILITY_TIMEOUT": "8",
    "AGENT_RATE_PER_MINUTE": "100000",
    "CALLBACK_NETWORKS": f"{LOOPBACK}/32",
}


@contextmanager
def start_gate(state: Path) -> Iterator[dict[str, Any]]:
    """A private installation with the kit's policy, as the kit's `--target` file has
    it; stopped at the end."""
    state.mkdir(parents=True, exist_ok=True)
    environ = {**os.environ, **ENVIRON, "STATE": str(state), "PORT": str(free_port())}
    log = state / "up.log"
    with log.open("w") as file:
        command = [sys.executable, "manage.py", "up", "--demo"]
        up = subprocess.Popen(command, cwd=ROOT, env=environ, stdout=file, stderr=file)
    try:
        url = f"http://{LOOPBACK}:{environ['PORT']}"
        wait_for_gate(url, up, log)
        yield describe_gate(url, state, environ, up.pid)
    finally:
        stop_process(up, 30)


def wait_for_gate(
    url: str, up: subprocess.Popen[bytes], log: Path, seconds: float = 4 * START_S
) -> None:
    """Wait until the gate is ready, as long as it gets further: it has `seconds` from
    each new line of its output. Prints what it waits for. Raises SystemExit with where
    the output is when the gate has ended or stands still."""
    sys.stdout.write(f"Waiting until {url}/readyz answers. Output: {log}\n")
    said, end = "", time.monotonic() + seconds
    while not is_ready(url):
        lines = log.read_text().splitlines()
        if lines and lines[-1] != said:
            said, end = lines[-1], time.monotonic() + seconds
            sys.stdout.write(f"  {said[:100]}\n")
            sys.stdout.flush()
        ended = up.poll()
        if ended is not None or time.monotonic() > end:
            why = f"for {seconds:.0f} s nothing happened"
            why = f"it ended ({ended})" if ended is not None else why
            tail = "\n".join(lines[-20:])
            raise SystemExit(
                f"The gate did not start: {url}/readyz never answered with 200, and"
                f" {why}. Its output is in {log}:\n{tail}"
            )
        time.sleep(0.2)


def is_ready(url: str) -> bool:
    """Whether the gate answers."""
    try:
        return httpx2.get(f"{url}/readyz", trust_env=False).status_code == 200
    except httpx2.TransportError:
        return False


def describe_gate(
    url: str, state: Path, environ: dict[str, str], pid: int
) -> dict[str, Any]:
    """Load the policy, register the agent, and return what the kit needs to know."""
    manage(environ, "load_policy", "--by", "adam", "--file", str(POLICY))
    for person in ("rita", "sue", "sam"):
        manage(environ, "admit", person, "--queue", "conformance")
    manage(environ, "load_policy", "--by", "alma", "--activate", "2")
    registered = register_agent(environ, AGENT)
    demo = json.loads((state / "demo.json").read_text())
    send_every_mail(url, demo["logins"]["reviewer"])
    port = free_port()
    hook = f"http://{LOOPBACK}:{port}/hook"
    endpoint = manage(environ, "register_endpoint", AGENT, hook, "--by", "adam")
    return {
        "url": url,
        "key": find_word(registered, "cs_"),
        "logins": demo["logins"],
        "mail": str(state / "mail"),
        "endpoint": {"port": port, "secret": find_word(endpoint, "whsec_")},
        "kill_web": [sys.executable, "-m", "tests.conformance", "--kill-web", str(pid)],
        "folder": str(ROOT),
    }


def register_agent(environ: dict[str, str], name: str) -> str:
    """Register an agent that may use the kit's tools; what the command prints."""
    tools = [word for tool in TOOLS for word in ("--tool", tool)]
    words = ("--owner", "owen", "--by", "adam", *tools)
    return manage(environ, "register_agent", name, *words)


def send_every_mail(url: str, login: dict[str, str]) -> None:
    """Let the reviewer get a mail for each request: the kit opens more in an hour than
    a person would want to hear of."""
    reviewer = Visitor.sign_in(url, login)
    reviewer.open("/me/notifications/")
    reviewer.submit("per_hour", {"per_hour": "1000"})


def find_word(text: str, begins: str) -> str:
    """The first word of a command's output that begins so."""
    return next(word for word in text.split() if word.startswith(begins))


def manage(environ: dict[str, str], *words: str) -> str:
    """What a command of the product prints."""
    command = [sys.executable, "manage.py", *words]
    done = subprocess.run(
        command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout


def kill_web(supervisor: int) -> None:
    """SIGKILL to the web processes below this supervisor, which starts new ones. Raises
    SystemExit if there is none to kill."""
    killed = 0
    for pid in list_descendants(supervisor):
        with suppress(FileNotFoundError, ProcessLookupError):
            if b"hitl.web" in Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
                killed += 1
    if not killed:
        raise SystemExit(f"no web process runs below {supervisor}")


def find_environment(framework: str) -> Path | None:
    """The Python that runs the kit for this framework, None while the framework is not
    installed."""
    variant = VARIANTS[list_variants(framework)[0]]
    python = FOLDER / framework / "bin" / "python"
    installed = python
    if variant.under_node:
        python = Path(sys.executable)
        installed = TYPESCRIPT / "node_modules" / variant.package
    return python if installed.exists() else None


def build_environment(framework: str) -> Path:
    """The same, with the framework installed."""
    if found := find_environment(framework):
        return found
    sys.stdout.write(f"Installing {framework}\n")
    if VARIANTS[list_variants(framework)[0]].under_node:
        install_node_packages(TYPESCRIPT)
        return Path(sys.executable)
    folder = FOLDER / framework
    python = folder / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    install = [str(python), "-m", "pip", "install", "--quiet"]
    install += ["--editable", "./client"]
    install += ["--editable", f"./client/conformance[{framework}]"]
    subprocess.run(install, cwd=ROOT, check=True)
    if framework == "restate":
        link_restate_server(folder)
    return python


def install_node_packages(folder: Path) -> None:
    """Install what the folder's lock file has, by the npm of Node's wheel."""
    node = Path(find_node())
    npm = node.parents[1] / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    subprocess.run([str(node), str(npm), "ci"], cwd=folder, check=True)


def link_restate_server(environment: Path) -> None:
    """Put Restate's server into an environment, where the kit looks for it."""
    folder = environment / "restate-server"
    shutil.copytree(RESTATE_SERVER, folder)
    install_node_packages(folder)
    found = folder.glob("node_modules/@restatedev/restate-server-*/bin/restate-server")
    (environment / "bin" / "restate-server").symlink_to(next(found))


def run_kit(frameworks: Sequence[str]) -> int:
    """Run the kit for each framework; 0 if every promised check holds."""
    pythons = {name: build_environment(name) for name in frameworks}
    failed = 0
    shutil.rmtree(FOLDER / "state", ignore_errors=True)
    with start_gate(FOLDER / "state") as target:
        file = FOLDER / "target.json"
        file.touch(mode=0o600)
        file.write_text(json.dumps(target))
        for name, python in pythons.items():
            # `-P`: a framework's package may have the name of one of the product's.
            command = [str(python), "-P", "-m", "counterseal_conformance", name]
            command += ["--target", str(file), "--json", str(FOLDER / f"{name}.json")]
            done = subprocess.run(command, check=False)
            failed |= done.returncode
    return failed


def main(words: Sequence[str]) -> int:
    if words[:1] == ["--kill-web"]:
        kill_web(int(words[1]))
        return 0
    if words[:1] == ["--serve"]:  # a gate to try the kit on, until a signal ends it
        with start_gate(FOLDER / "state") as target:
            (FOLDER / "target.json").write_text(json.dumps(target))
            ends = {signal.SIGINT, signal.SIGTERM}
            signal.pthread_sigmask(signal.SIG_BLOCK, ends)
            signal.sigwait(ends)
        return 0
    return run_kit(words or FRAMEWORKS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
