"""hitl.settings for tools that load settings without manage.py, such as mypy: fills in
the defaults of a private installation first."""

from __future__ import annotations

import os

from . import defaults

defaults.fill_environment(os.environ, writes_keys=False)

from hitl.settings import *  # noqa: E402, F403, TID251
