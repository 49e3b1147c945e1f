"""The image, built from a base that mmdebstrap makes. A process runs as in a container:
as its own user, on a read-only root, in a network of its own."""

from __future__ import annotations

import json
import stat
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.deploy.programs import DEPLOY, KEY, run
from tests.guards import ROOT, proving

LIMIT = 250_000_000
# What debian:bookworm-slim leaves out too.
LEFT_OUT = ("doc", "groff", "info", "linda", "lintian", "locale", "man")
AUTHORITIES = Path("/etc/ssl/certs/ca-certificates.crt")
EMBEDDED = {"postgres", "initdb", "redis-server", "valkey-server"}
TOOLS = {"gcc", "cc", "ld", "as", "make", "pip", "pip3", "apt", "apt-get", "perl"}
# What an engine for containers does, with the programs of util-linux alone.
CONTAINER = """
root=$1; shift
mount --bind "$root" "$root"
mount -o remount,bind,ro "$root"
mount -t tmpfs none "$root/tmp"
mount -t tmpfs -o uid=10001,gid=10001,mode=750 none "$root/var/lib/counterseal"
mount --rbind /dev "$root/dev"
mount -t proc none "$root/proc"
ip link set lo up
exec chroot --userspec=10001:10001 "$root" "$@"
"""
# The web process, and the image's health check until it succeeds.
CHECKED = """
counterseal serve --host 127.0.0.1 --port 8000 & web=$!
for n in $(seq 120); do
    if "$@" 2>/dev/null; then echo healthy; break; fi
    kill -0 $web || exit 1
    sleep 0.5
done
kill $web; wait $web; echo "ended with $?"
touch /opt/counterseal/x 2>/dev/null || echo read-only
"""


@pytest.mark.proof
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not proving(), reason="`make prove` builds the image")
def test_the_image_is_small_and_runs_read_only(
    tmp_path: Path, record_proof: Callable[[str, str], None]
) -> None:
    buildah = partial(
        run, "buildah", f"--root={tmp_path}/images", f"--runroot={tmp_path}/run"
    )
    build_image(buildah, tmp_path)
    (image,) = json.loads(buildah("images", "--json", "counterseal"))
    config = json.loads(buildah("inspect", "--type", "image", image["id"]))["Docker"]
    assert config["config"]["User"] == "10001:10001"
    container = buildah("from", "--pull-never", image["id"]).strip()
    root = Path(buildah("mount", container).strip())
    try:
        size = measure(root)
        assert size < LIMIT
        names = {path.name for path in root.rglob("*") if not path.is_dir()}
        assert not (EMBEDDED | TOOLS) & names
        said = serve(root, config["config"])
        assert "healthy" in said
        assert "read-only" in said
        assert "ended with 143" in said  # by SIGTERM, once it has drained
    finally:
        buildah("rm", container)
    record_proof(
        "T28",
        f"deploy/Containerfile on a Debian of mmdebstrap: {size / 1e6:.0f} MB, user"
        " 10001, a web process on a read-only root is healthy, no embedded server, no"
        " compiler",
    )


def build_image(buildah: Callable[..., str], folder: Path) -> None:
    """From a Debian and packages that come as this machine gets them."""
    words = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in LEFT_OUT]
    run("mmdebstrap", "--variant=minbase", *words, "bookworm", f"{folder}/base.tar")
    (folder / "Containerfile").write_text("FROM scratch\nADD base.tar /\n")
    trust = folder / "policy.json"
    trust.write_text('{"default": [{"type": "insecureAcceptAnything"}]}')
    options = ["build", f"--signature-policy={trust}", "--isolation=chroot"]
    buildah(*options, "--tag=base", str(folder))
    pip = folder / "pip.conf"
    pip.write_text("[global]\ncert = /etc/ssl/host.crt\n")
    buildah(
        *options,
        "--build-arg=BASE=localhost/base",
        f"--volume={AUTHORITIES}:/etc/ssl/host.crt:ro",
        f"--secret=id=pip.conf,src={pip}",
        "--format=docker",
        "--tag=counterseal",
        f"--file={DEPLOY / 'Containerfile'}",
        str(ROOT),
    )


def measure(root: Path) -> int:
    """The bytes of all files, each once."""
    files = {}
    for path in root.rglob("*"):
        about = path.lstat()
        if stat.S_ISREG(about.st_mode):
            files[about.st_ino] = about.st_size
    return sum(files.values())


def serve(root: Path, config: dict[str, list[str]]) -> str:
    """What the health check says of a web process whose database is away."""
    given = {
        "BASE_URL": "https://gate.example.com",
        "DATABASE_URL": "postgresql://counterseal@127.0.0.1:5/none",
        "REDIS_URL": "redis://127.0.0.1:6/0",
        "SECRET_KEY": KEY + KEY,
        "WEBHOOK_SECRET": f"whsec_{KEY}",
        **dict.fromkeys(("DATA_KEY", "TAG_KEY", "GRANT_KEY"), KEY),
        **dict(pair.split("=", 1) for pair in config["Env"]),
    }
    healthcheck = config["Healthcheck"]["Test"]  # type: ignore[call-overload]
    assert healthcheck[0] == "CMD"
    environ = ["/usr/bin/env", "-i", *(f"{name}={given[name]}" for name in given)]
    inside = [*environ, "sh", "-c", CHECKED, "sh", *healthcheck[1:]]
    words = ["unshare", "--mount", "--net", "--pid", "--fork", "sh", "-ec", CONTAINER]
    done = subprocess.run(
        [*words, "sh", str(root), *inside], capture_output=True, text=True, timeout=300
    )
    return done.stdout + done.stderr
