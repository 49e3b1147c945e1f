"""The kit against the tests' gate, with the real frameworks, where `make conformance`
has installed them. CI has none: tests/client/adapters stand in for them there."""

from __future__ import annotations

import os
import subprocess

import pytest
import yaml

from agents import keys
from counterseal_conformance.variants import FRAMEWORKS, list_variants
from reviews.people import tokens
from tests import conformance, factories
from tests.stack import Stack

CHECKS = ("durable.other_process", "typed.edit_typed", "verified.rejection_holds")


@pytest.mark.servers
@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_an_installed_framework_keeps_what_the_adapter_promises(
    live: Stack, framework: str
) -> None:
    python = conformance.find_environment(framework)
    if python is None:
        pytest.skip(f"{framework} is not installed: make conformance ARGS={framework}")
    people = factories.cast()
    factories.policy(people, yaml.safe_load(conformance.POLICY.read_text()))
    agent = factories.agent(
        people["owen"], conformance.AGENT, tools=list(conformance.TOOLS)
    )
    words = [str(python), "-P", "-m", "counterseal_conformance", framework]
    words += ["--counterseal", "--gate", live.base_url]
    words += ["--key", keys.issue_key(agent=agent, by=people["owen"])]
    words += ["--token", tokens.create_token(person=people["rita"], name="kit")]
    words += [word for check in CHECKS for word in ("--check", check)]
    env = {**os.environ, "PYTHONPATH": conformance.PYTHONPATH}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" held ") == len(CHECKS) * len(list_variants(framework))
