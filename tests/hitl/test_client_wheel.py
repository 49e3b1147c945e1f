"""The client's wheel, as the gate makes and serves it."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from django.test import Client

from counterseal_client.version import __version__
from hitl import client_wheel, environment
from hitl.client_page import FIRST_CALL, build_install_line
from tests.markup import read_page


def install(wheel: Path, folder: Path) -> metadata.Distribution:
    """Install the wheel alone, with pip's own checks of its hashes."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
    command += ["--no-index", "--target", str(folder), str(wheel)]
    subprocess.run(command, check=True, capture_output=True)
    (found,) = metadata.distributions(path=[str(folder)])
    return found


def test_pip_installs_it(tmp_path: Path) -> None:
    wheel = client_wheel.build_wheel()
    file = tmp_path / wheel.name
    file.write_bytes(wheel.content)
    installed = install(file, tmp_path / "there")
    assert (installed.name, installed.version) == ("counterseal-client", __version__)
    assert any(needed.startswith("httpx2") for needed in installed.requires or ())
    (command,) = installed.entry_points.select(group="console_scripts")
    assert command.name == "counterseal"
    package = tmp_path / "there" / "counterseal_client"
    assert (package / "py.typed").exists()
    assert (package / "claude_code" / "policy.yaml").exists()


def test_the_same_files_give_the_same_bytes() -> None:
    client_wheel.build_wheel.cache_clear()
    first = client_wheel.build_wheel()
    client_wheel.build_wheel.cache_clear()
    assert client_wheel.build_wheel() == first


def test_an_installed_client_is_described_by_what_was_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel = client_wheel.build_wheel()
    file = tmp_path / wheel.name
    file.write_bytes(wheel.content)
    install(file, tmp_path / "there")
    monkeypatch.syspath_prepend(str(tmp_path / "there"))
    monkeypatch.setattr(environment, "IS_CHECKOUT", False)
    about, scripts = client_wheel._describe_distribution()
    assert f"Version: {__version__}\n" in about
    assert "counterseal = counterseal_client.command_line.main:main" in scripts


@pytest.mark.django_db
def test_the_page_has_the_lines_to_paste_and_the_wheel() -> None:
    page = Client().get("/client/")
    text = read_page(page)
    assert build_install_line() in text
    assert FIRST_CALL.splitlines()[3] in text
    name = client_wheel.build_name()
    assert f'href="/client/{name}#sha256=' in page.content.decode()
    answer = Client().get(f"/client/{name}")
    assert answer.content == client_wheel.build_wheel().content
    assert Client().get("/client/other-1.0-py3-none-any.whl").status_code == 404
