"""The compose file: read by Docker's program, and held against the Containerfile."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from hitl.command_line import COMMANDS
from hitl.environment import Counterseal
from tests.deploy.programs import DEPLOY, KEY, run

# Of uvicorn, of PostgreSQL's library, and of the file itself.
OF_OTHERS = {"FORWARDED_ALLOW_IPS", "PGPASSWORD", "GATE", "UPSTREAMS"}
FILE = DEPLOY / "compose.yaml"


@pytest.fixture(scope="module")
def services() -> Any:
    return yaml.safe_load(FILE.read_text())["services"]


def test_compose_reads_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "deploy"
    folder.mkdir()
    shutil.copy(FILE, folder)
    keys = ("PGPASSWORD", "SECRET_KEY", "DATA_KEY", "TAG_KEY", "GRANT_KEY")
    given = {"GATE": "gate.example.com", **dict.fromkeys(keys, KEY)}
    (folder / ".env").write_text(
        "".join(f"{name}={value}\n" for name, value in given.items())
    )
    read = yaml.safe_load(run("docker-compose", "config", folder=folder))
    web = read["services"]["web"]
    assert web["environment"]["BASE_URL"] == "https://gate.example.com"
    assert web["environment"]["DATA_KEY"] == KEY


def test_the_processes_are_those_of_the_image(services: Any) -> None:
    ours = {n: each for n, each in services.items() if each["image"] == "counterseal"}
    assert set(ours) == {"migrate", "web", "worker", "beat"}
    fields = {name.upper() for name in Counterseal.model_fields}
    container = (DEPLOY / "Containerfile").read_text()
    state = re.search(r"^VOLUME (\S+)$", container, re.M)
    assert state is not None
    for name, service in ours.items():
        assert service["command"][0] in COMMANDS
        assert set(service["environment"]) <= fields | OF_OTHERS, name
        assert service["read_only"] is True
        assert service["tmpfs"] == ["/tmp"]
        assert service["volumes"] == [f"state:{state[1]}"]
        assert int(service["stop_grace_period"].removesuffix("s")) >= 20
        assert ("healthcheck" in service) == (name != "web"), "the image's own is web's"
    port = re.search(r"^EXPOSE (\d+)$", container, re.M)
    assert port is not None
    assert port[1] in services["web"]["command"]
    assert services["proxy"]["environment"]["UPSTREAMS"] == f"web:{port[1]}"


def test_nothing_starts_before_the_database_is_of_its_release(services: Any) -> None:
    waits = {"condition": "service_completed_successfully"}
    for name in ("web", "worker", "beat"):
        assert services[name]["depends_on"]["migrate"] == waits


def test_only_the_proxy_is_reached_from_outside(services: Any) -> None:
    assert [name for name, each in services.items() if "ports" in each] == ["proxy"]
    for name in ("postgres", "valkey"):
        assert services[name]["networks"] == ["inside"]
        assert services[name]["healthcheck"]["test"][0] == "CMD"
