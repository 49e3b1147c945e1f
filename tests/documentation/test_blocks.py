"""Each code block of README and the documentation is run, or is read by the tool that
its reader has: commands by their parsers, data by theirs, programs by a compiler."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import shlex
from typing import Any

import pytest
import yaml

from policies.documents import loading
from tests import factories
from tests.documentation.blocks import (
    EXCUSED,
    RUN_BY,
    Block,
    find_excuse,
    find_runner,
    list_blocks,
    read_blocks,
)
from tests.guards import ROOT
from tests.printed.commands import Command, paste
from tests.printed.texts import Text

BLOCKS = list(list_blocks())
MAKEFILE = (ROOT / "Makefile").read_text()
SHELL = ("", "sh", "console")
TOP_LEVEL_AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST
# Programs of others in the commands of a page.
OTHERS = {"curl", "docker", "git", "cd", "npm", "prefect", "restate-server", "temporal"}
OTHERS |= {"pg_dump", "pg_restore", "sudo", "ln", "systemctl"}
# Where a program stands on a host.
FOLDER = re.compile(r"^(\.venv|/opt/counterseal[\w.-]*)/bin/")


def check_commands(block: Block) -> None:
    """Every line is a command that its program takes."""
    for line in block.text.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        program = FOLDER.sub("", words[0]) if words else ""
        while "=" in program.partition("-")[0]:
            words = words[1:]
            program = words[0]
        if program == "make":
            assert re.search(rf"^{words[1]}:", MAKEFILE, re.M), line
        elif program in {"python", "node"} and "-m" not in words:
            assert words[1] in re.findall(r"# writes (\S+)", block.text), line
        elif program in {"python", "python3"}:
            assert importlib.util.find_spec(words[words.index("-m") + 1]), line
        elif program and program not in OTHERS:
            parts = (shlex.quote(w) if " " in w else w for w in words[1:])
            for part in " ".join([program, *parts]).split(" && "):
                check_command(block, part)


def check_command(block: Block, line: str) -> None:
    command = Command(Text(block.page, block.line, line), line, whole=True)
    with pytest.MonkeyPatch.context() as patch:
        try:
            paste(command, patch)
        except SystemExit as end:
            if end.code:
                raise AssertionError(line) from end


def check_yaml(block: Block) -> None:
    """A part of a policy is one: the tests' policy takes it."""
    data = yaml.safe_load(block.text)
    document: dict[str, Any] = factories.document_of_tests()
    if set(data) == {"scrape_configs"}:
        (job,) = data["scrape_configs"]
        assert set(job) == {"job_name", "authorization", "static_configs"}
        return
    if set(data) <= {"amounts", "money"}:
        for value in data.values():
            assert all(isinstance(entry, dict) for entry in value)
        return
    for key, value in data.items():
        if isinstance(value, dict):
            document[key] = {**document.get(key, {}), **value}
        else:
            document[key] = value
    for queue in re.findall(r"(?:queues?|hold): \[?(\w+)", block.text):
        document["queues"].setdefault(queue, queue)
    text = json.dumps(document).replace("process_refund", "pay")
    loading.parse_document(json.loads(text))


def check_json(block: Block) -> None:
    """One value, or one on each line."""
    try:
        json.loads(block.text)
    except json.JSONDecodeError:
        assert all(json.loads(line) for line in block.text.splitlines())


def check_python(block: Block) -> None:
    """It compiles, and what it imports of ours is there."""
    tree = compile(block.text, str(block), "exec", flags=TOP_LEVEL_AWAIT)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith(
            "counterseal"
        ):
            assert node.module is not None
            given = {alias.name for alias in node.names}
            assert given <= list_names(node.module), (node.module, given)


def list_names(module: str) -> set[str]:
    """What a module of the client defines or imports, without importing it: an adapter
    imports its framework."""
    path = ROOT / "client" / module.replace(".", "/")
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    names = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.ImportFrom | ast.Import):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {one.id for one in targets if isinstance(one, ast.Name)}
    return names


def check_typescript(block: Block) -> None:
    """What it imports of ours is there."""
    for given, package in re.findall(
        r'import \{ ([^}]*) \} from "@counterseal/client(/\w+)?"', block.text
    ):
        file = f"adapters{package}" if package else "/index"
        source = (ROOT / "client/typescript/src" / f"{file.lstrip('/')}.ts").read_text()
        for name in given.split(", "):
            assert re.search(rf"\b{name.removeprefix('type ')}\b", source), name


CHECKS = {
    "json": check_json,
    "yaml": check_yaml,
    "python": check_python,
    "ts": check_typescript,
    **dict.fromkeys(SHELL, check_commands),
}


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_it_is_run_or_read(block: Block) -> None:
    runner, excuse = find_runner(block), find_excuse(block)
    if runner:
        assert (ROOT / runner).exists(), runner
        return
    if block.language in {"python", "ts"}:
        assert excuse, "run it in a test and name that in RUN_BY, or say why not"
    if block.language in CHECKS and not (excuse and block.language == ""):
        CHECKS[block.language](block)
    else:
        assert excuse, f"no test reads {block.language!r}"


def test_no_entry_is_of_a_block_that_has_gone() -> None:
    for page, first, _ in RUN_BY:
        found = [b for b in BLOCKS if b.page == page and b.first.startswith(first)]
        assert found, (page, first)
    for page, language, first, _ in EXCUSED:
        assert any(
            block.page.startswith(page)
            and (block.language, block.first.startswith(first)) == (language, True)
            for block in BLOCKS
        ), (page, first)


def test_a_block_is_read_with_its_indent() -> None:
    (block,) = read_blocks("x.md", "1. a\n   ```sh\n   make up\n   ```\n")
    assert (block.line, block.language, block.text) == (2, "sh", "make up\n")
    with pytest.raises(ValueError, match="not closed"):
        list(read_blocks("x.md", "```sh\nmake up\n"))


@pytest.mark.parametrize(
    "block",
    [
        Block("x.md", 1, "sh", "counterseal agents chagne ada --by adam\n"),
        Block("x.md", 1, "sh", "make nothing\n"),
        Block("x.md", 1, "yaml", "assurance: {canary: true}\n"),
        Block("x.md", 1, "json", '{"a": }\n'),
        Block("x.md", 1, "python", "from counterseal_client import Gates\n"),
        Block("x.md", 1, "ts", 'import { Gates } from "@counterseal/client";\n'),
    ],
    ids=lambda block: block.first,
)
def test_a_wrong_example_is_noticed(block: Block) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011 each tool has its own
        CHECKS[block.language](block)
