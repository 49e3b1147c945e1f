"""The Python client as a wheel, made from the files of this installation, so that `pip
install` gets the version that fits the gate, without an index for it.

The same files give the same bytes: each is dated with the first day of the format.
"""

from __future__ import annotations

import base64
import hashlib
import io
import runpy
import tomllib
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import metadata, util
from pathlib import Path
from typing import Any

from . import environment

DISTRIBUTION, PACKAGE = "counterseal-client", "counterseal_client"
PROJECT = environment.ROOT / "client" / "pyproject.toml"
TAG = "py3-none-any"


@dataclass(frozen=True, slots=True)
class Wheel:
    """The name of the file, and its bytes."""

    name: str
    content: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


def read_version() -> str:
    """The version of the client."""
    version: str = runpy.run_path(str(_find_package() / "version.py"))["__version__"]
    return version


def build_name() -> str:
    """The name of the wheel's file."""
    return f"{PACKAGE}-{read_version()}-{TAG}.whl"


@cache
def build_wheel() -> Wheel:
    """The wheel (PEP 427)."""
    info = f"{PACKAGE}-{read_version()}.dist-info"
    about, scripts = _describe_distribution()
    files = {
        **dict(_list_package_files()),
        f"{info}/METADATA": about.encode(),
        f"{info}/WHEEL": (
            f"Wheel-Version: 1.0\nGenerator: counterseal\nRoot-Is-Purelib: true\n"
            f"Tag: {TAG}\n"
        ).encode(),
        f"{info}/entry_points.txt": scripts.encode(),
    }
    lines = [f"{name},{_format_hash(data)},{len(data)}" for name, data in files.items()]
    files[f"{info}/RECORD"] = "\n".join([*lines, f"{info}/RECORD,,", ""]).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return Wheel(build_name(), buffer.getvalue())


def _find_package() -> Path:
    spec = util.find_spec(PACKAGE)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def _list_package_files() -> Iterator[tuple[str, bytes]]:
    package = _find_package()
    for path in sorted(package.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path.relative_to(package.parent).as_posix(), path.read_bytes()


def _describe_distribution() -> tuple[str, str]:
    """The texts of METADATA and entry_points.txt: those of the installed client or, in
    a copy of the repository, from its project file."""
    if not environment.IS_CHECKOUT:
        installed = metadata.distribution(DISTRIBUTION)
        return (
            installed.read_text("METADATA") or "",
            installed.read_text("entry_points.txt") or "",
        )
    project: dict[str, Any] = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    about = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {read_version()}",
        f"Summary: {project['description']}",
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {needed}" for needed in project["dependencies"]),
    ]
    for extra, needed in project["optional-dependencies"].items():
        about.append(f"Provides-Extra: {extra}")
        about += [f'Requires-Dist: {each}; extra == "{extra}"' for each in needed]
    scripts = [f"{name} = {path}" for name, path in project["scripts"].items()]
    return "\n".join([*about, ""]), "\n".join(["[console_scripts]", *scripts, ""])


def _format_hash(data: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
    return f"sha256={digest.rstrip(b'=').decode()}"
