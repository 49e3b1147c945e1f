#!/bin/sh
# install.sh <python> <lock file>: bring .venv to exactly what the lock file says.
# uv does it in seconds; where uv cannot be installed or cannot find the packages
# (it reads no pip configuration), plain pip does the same, slower.
set -eu
python=$1
lock=$2

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
    echo "Counterseal needs Python 3.11 or newer: make PYTHON=python3.12 up" >&2
    exit 1
}
if ! [ -x .venv/bin/python ]; then
    echo "Creating .venv"
    "$python" -m venv .venv || {
        echo "The module venv is missing: apt-get install python3-venv" >&2
        exit 1
    }
fi

pip() {
    .venv/bin/python -m pip --disable-pip-version-check --quiet "$@"
}

# What the machine tells pip about mirrors, told to uv.
setting() {
    .venv/bin/python -m pip config get "$1" 2>/dev/null || true
}
: "${UV_DEFAULT_INDEX:=${PIP_INDEX_URL:-$(setting global.index-url)}}"
: "${UV_INDEX:=${PIP_EXTRA_INDEX_URL:-$(setting global.extra-index-url)}}"
: "${UV_FIND_LINKS:=${PIP_FIND_LINKS:-$(setting global.find-links)}}"
: "${SSL_CERT_FILE:=${PIP_CERT:-$(setting global.cert)}}"
for name in UV_DEFAULT_INDEX UV_INDEX UV_FIND_LINKS SSL_CERT_FILE; do
    eval "value=\$$name"
    # An empty one is not the same as none.
    if [ -n "$value" ]; then export "${name?}"; else unset "$name"; fi
done

# The command `counterseal` of this copy of the repository.
root=$(pwd)
cat >.venv/bin/counterseal <<EOF
#!/bin/sh
PYTHONPATH="$root/client:$root\${PYTHONPATH:+:\$PYTHONPATH}"
export PYTHONPATH
exec "$root/.venv/bin/python" -P -m counterseal_client "\$@"
EOF
chmod +x .venv/bin/counterseal

# The hashes decide, not where a file was found first.
export UV_INDEX_STRATEGY=unsafe-best-match

echo "Installing $lock"
if pip install --require-hashes --requirement requirements-uv.lock &&
    .venv/bin/uv pip sync --quiet --python .venv/bin/python \
        --require-hashes "$lock"; then
    exit 0
fi
echo "uv failed: installing with pip, which takes a minute" >&2
pip install --require-hashes --requirement "$lock" || {
    echo "The packages of $lock could not be installed: check the network" >&2
    exit 1
}
