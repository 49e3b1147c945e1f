"""Each command of the client shows examples that it accepts."""

from __future__ import annotations

import argparse
import shlex

import pytest

from counterseal_client.command_line.examples import EXAMPLES
from counterseal_client.command_line.main import build_parser


@pytest.fixture(scope="module")
def commands() -> dict[str, argparse.ArgumentParser]:
    (group,) = (
        action
        for action in build_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return dict(group.choices)


def test_every_command_has_examples(
    commands: dict[str, argparse.ArgumentParser],
) -> None:
    assert set(commands) == set(EXAMPLES)
    for name, parser in commands.items():
        assert len(EXAMPLES[name]) >= 2
        for example in EXAMPLES[name]:
            assert f"\n  {example}\n" in parser.format_help()


@pytest.mark.parametrize("example", sum(EXAMPLES.values(), ()))
def test_an_example_is_accepted(example: str) -> None:
    program, *words = shlex.split(example)
    assert program == "counterseal"
    build_parser().parse_args(words)
