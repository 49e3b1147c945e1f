from __future__ import annotations

import dataclasses
from importlib.metadata import version

import pytest

from counterseal_client.adapters.flags import AdapterFlags, UnsupportedVersion

FLAGS = AdapterFlags(
    framework="pydantic",
    minimum="2.0",
    supports_edit=True,
    supports_respond=False,
    partial_ok=True,
    positional=False,
    needs_reason=True,
    model_reads_answer=True,
    held_open=False,
    binds_request=True,
    resume="sdk",
)


def test_a_release_at_or_above_the_minimum_is_taken() -> None:
    FLAGS.check_version("nothing")
    installed = version("pydantic")
    dataclasses.replace(FLAGS, minimum=installed).check_version("nothing")


@pytest.mark.parametrize("minimum", ["1000.0", "2.1000", "2.1000.0rc1"])
def test_an_older_release_is_refused_with_the_way_past_it(minimum: str) -> None:
    flags = dataclasses.replace(FLAGS, minimum=minimum)
    with pytest.raises(UnsupportedVersion) as caught:
        flags.check_version("A late answer counted.")
    assert "A late answer counted. Install pydantic>=" in str(caught.value)
