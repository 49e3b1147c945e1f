"""What a path refers to: outside the workspace, CI, configuration, secrets. Pure.

A path is judged by its name alone, exactly as written; nothing reads a disk.
"""

from __future__ import annotations

import posixpath
import re

_CI = re.compile(
    r"(^|/)(\.github/|\.gitlab-ci|\.gitlab/|\.circleci/|\.buildkite/|\.drone\.ya?ml"
    r"|\.travis\.ya?ml|jenkinsfile|azure-pipelines|bitbucket-pipelines|\.woodpecker"
    r"|\.git/hooks/|\.husky/|\.pre-commit-config|makefile$|dockerfile|docker-compose"
    r"|compose\.ya?ml|codeowners|renovate\.json|dependabot\.ya?ml)",
    re.IGNORECASE,
)
_SECRET = re.compile(
    r"(^|/)(\.env([.-][\w.-]+)?$|\.ssh(/|$)|\.gnupg(/|$)|\.aws/|\.azure/|\.kube/"
    r"|\.docker/config|\.netrc|\.pgpass|\.npmrc|\.pypirc|\.git-credentials|id_(rsa|dsa"
    r"|ecdsa|ed25519)|authorized_keys|shadow$|gshadow$|passwd$|sudoers|kubeconfig"
    r"|credentials?(\.\w+)?$|secrets?([./_-]|$)|.*\.(pem|key|p12|pfx|jks|keystore"
    r"|kdbx|asc|ppk)$|vault|service[_-]account.*\.json)",
    re.IGNORECASE,
)
_CONFIG = re.compile(
    r"(^/etc/|^/boot/|^/usr/lib/systemd|(^|/)(\.git/config|\.gitconfig|\.gitmodules"
    r"|\.gitattributes|\.bashrc|\.bash_profile|\.profile|\.zshrc|\.vimrc|crontab"
    r"|package\.json$|package-lock\.json$|pyproject\.toml$|setup\.(py|cfg)$|settings"
    r"|requirements[^/]*\.(txt|lock)$|conftest\.py$|tsconfig|\.editorconfig|nginx"
    r"|.*\.(ini|cfg|conf|toml|ya?ml|properties|service|timer|plist|tf|tfvars)$))",
    re.IGNORECASE,
)
_SYSTEM = re.compile(r"^/(bin|sbin|lib\w*|usr|dev|proc|sys|boot|etc|root)(/|$)")
LONGEST = 1000  # characters of a path that are checked
# Paths that name a whole disk, home or directory.
_WHOLE_DIRECTORIES = frozenset(
    {"/", "/*", "~", "~/", "~/*", ".", "./", "*", "./*", ".*", ".."}
)


def list_path_marks(path: str, workspace: str = "") -> list[str]:
    """List reasons to look closer at this path, the gravest first, in Counterseal's
    words."""
    marks = []
    if len(path) > LONGEST:
        marks.append("Longer than a path")
        path = path[-LONGEST:]
    if is_outside_workspace(path, workspace):
        marks.append("Outside the workspace")
    for pattern, mark in ((_SECRET, "Secret"), (_CI, "CI file")):
        if pattern.search(_normalise_path(path)):
            marks.append(mark)
    if "CI file" not in marks and _CONFIG.search(_normalise_path(path)):
        marks.append("Configuration")
    return marks


def is_outside_workspace(path: str, workspace: str = "") -> bool:
    """Whether the path leaves the workspace, or may leave it."""
    if path.startswith("~") or "\\" in path or "\x00" in path:
        return True
    if not path.startswith("/"):
        return posixpath.normpath(path).startswith("..")
    if not workspace.startswith("/"):
        return True
    root = posixpath.normpath(workspace)
    inside = posixpath.normpath(path)
    return inside != root and not inside.startswith(root.rstrip("/") + "/")


def is_whole_directory(path: str) -> bool:
    """Whether the path names a whole disk, home or directory."""
    return path in _WHOLE_DIRECTORIES


def is_system_path(path: str) -> bool:
    """Whether the path belongs to the operating system."""
    return _SYSTEM.match(posixpath.normpath(path)) is not None


def _normalise_path(path: str) -> str:
    return posixpath.normpath(path.replace("\\", "/")) if path else path
