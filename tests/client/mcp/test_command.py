from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from counterseal_client.mcp.command import parse_words, split_words
from counterseal_client.mcp.stdio_proxy import build_server_command
from tests.client.mcp.conftest import (
    HOSTILE,
    NOTES,
    PROXY,
    PYTHON_PROXY,
    Bench,
    connect,
    text_of,
)


def run(
    *words: str, command: list[str] = PROXY, **environ: str
) -> subprocess.CompletedProcess[str]:
    """The command with no variables but these."""
    return subprocess.run(
        [*command, *words],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": "client", **environ},
        input="",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_servers_options_stay_its_own() -> None:
    assert split_words(["import", "--", "npx", "--", "-y"]) == (
        ["import"],
        ["npx", "--", "-y"],
    )
    options = parse_words(["--prefix", "a.", "--", "npx", "-y", "--wait", "3"])
    assert options.server == ["npx", "-y", "--wait", "3"]
    assert (options.action, options.prefix, options.wait) == ("proxy", "a.", 25.0)
    assert parse_words(["import", "--", "import"]).server == ["import"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "Name one server"),
        (("--url", "http://127.0.0.1:9/mcp", "--", "x"), "Name one server"),
        (("--map", "x", "--gate", "http://127.0.0.1:9", "--", "x"), "TOOL=NAME"),
        (("--", "x"), "--gate: give the gate's address"),
        (("--tools", "/nowhere.json", "--", "x"), "/nowhere.json"),
        (("--gate", "http://g", "--thread", "a b", "--", "x"), "--thread"),
        (("serve", "--thread", "t"), "COUNTERSEAL_URL"),
        (("--gate", "http://g", "--", "/nowhere/server"), "/nowhere/server"),
        (("--wait", "nan", "--", "x"), "0 or more"),
        (("--call-seconds", "-1", "--", "x"), "0 or more"),
    ],
)
def test_a_wrong_command_line_is_named(words: tuple[str, ...], said: str) -> None:
    done = run(*words, COUNTERSEAL_KEY="cs_test")
    assert done.returncode == 2
    assert said in done.stderr
    assert not done.stdout


@pytest.mark.parametrize("server", ["cat", "false"])
def test_the_proxy_ends_with_its_client(server: str) -> None:
    done = run("--gate", "http://127.0.0.1:9", "--", server, COUNTERSEAL_KEY="cs_test")
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(
    "words", [("--", "false"), ("--url", "http://127.0.0.1:9/mcp")]
)
def test_an_import_says_that_the_server_does_not_answer(words: tuple[str, ...]) -> None:
    done = run("import", *words)
    assert done.returncode == 2
    assert done.stderr.startswith("counterseal: the MCP server lists no tools:")
    assert done.stderr.count("\n") == 1


def test_the_server_does_not_get_the_agents_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COUNTERSEAL_KEY", "cs_test")
    monkeypatch.setenv("NOTES", "here")
    server = build_server_command(["npx", "-y", "notes"])
    assert server.env is not None
    assert server.env["NOTES"] == "here"
    assert not any("cs_test" in value for value in server.env.values())
    assert [server.command, *server.args] == ["npx", "-y", "notes"]


def test_the_key_is_never_an_option() -> None:
    done = run("--gate", "http://127.0.0.1:9", "--", "x")
    assert "COUNTERSEAL_KEY: set it to the agent's key." in done.stderr


def test_import_prints_entries_and_writes_the_file(tmp_path: Path) -> None:
    file = tmp_path / "tools.json"
    notes = str(tmp_path / "notes")
    words = ("import", "--queue", "notes", "--tools", str(file), "--", *NOTES)
    done = run(*words, command=PYTHON_PROXY)
    assert done.returncode == 0, done.stderr + notes
    entries = yaml.safe_load(done.stdout)["tools"]
    assert set(entries) >= {"send_note", "read_notes"}
    assert {entry["risk"] for entry in entries.values()} == {"high"}
    assert "send_note" in file.read_text()


@pytest.mark.servers
def test_the_proxy_refuses_what_was_not_imported(bench: Bench) -> None:
    file = bench.folder / "tools.json"
    words = ("import", "--tools", str(file), "--", *HOSTILE)
    done = run(*words, CHANGED=str(bench.folder / "changed"))
    assert done.returncode == 0, done.stderr
    (bench.folder / "changed").touch()
    with connect(bench.proxy("--tools", str(file), server=HOSTILE)) as caller:
        assert caller.portal.call(caller.client.list_tools).tools == []
        said = text_of(caller.call("send_note", to="ann", text="Hello."))
    assert "not the one that was imported" in said
