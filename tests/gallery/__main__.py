"""`make gallery`: a picture of every scene in all four looks, and one page with all of
them, in var/gallery. Arguments go to pytest: `make gallery ARGS="-k review"`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from html import escape
from pathlib import Path

from tests.guards import ROOT

FOLDER = ROOT / "var" / "gallery"
LOOKS = ("1280-light", "1280-dark", "360-light", "360-dark")
PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>{count} pictures · Counterseal</title>
<style>
body {{ font: 14px system-ui; margin: 16px; }}
section {{ display: flex; gap: 12px; align-items: start; margin-bottom: 32px; }}
h2 {{ font-size: 14px; }}
img {{ border: 1px solid #999; height: 420px; max-width: 40vw; object-fit: contain;
  object-position: top; }}
</style>
<h1>{count} pictures</h1>
{scenes}
"""
SCENE = """<h2 id="{name}">{name}</h2>\n<section>\n{pictures}</section>\n"""
PICTURE = '<a href="{file}"><img src="{file}" alt="{file}" loading="lazy"></a>\n'


def main(args: list[str]) -> int:
    """pytest's exit code: 0 when every scene was made and nothing was wrong with it."""
    begun = time.monotonic()
    FOLDER.mkdir(parents=True, exist_ok=True)
    environ = {**os.environ, "COUNTERSEAL_GALLERY": str(FOLDER)}
    tests = ["-m", "pytest", "-v", "--no-header", "tests/gallery/test_gallery.py"]
    done = subprocess.run([sys.executable, *tests, *args], cwd=ROOT, env=environ)
    count = _write(FOLDER)
    took = round(time.monotonic() - begun)
    sys.stdout.write(f"{count} pictures in {took} s: {FOLDER / 'index.html'}\n")
    return done.returncode


def _write(folder: Path) -> int:
    """The contact sheet; how many pictures there are."""
    suffix = f"-{LOOKS[0]}.png"
    names = sorted(file.name.removesuffix(suffix) for file in folder.glob(f"*{suffix}"))
    scenes = "".join(
        SCENE.format(name=escape(name), pictures=_pictures(name)) for name in names
    )
    count = len(names) * len(LOOKS)
    (folder / "index.html").write_text(PAGE.format(count=count, scenes=scenes))
    return count


def _pictures(name: str) -> str:
    return "".join(PICTURE.format(file=escape(f"{name}-{look}.png")) for look in LOOKS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
