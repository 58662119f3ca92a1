#!/bin/sh
# Makes .venv with every package at its pinned version, and this project in it. Run by make; silent when all is there.
#
# Python and pip are used as this machine has them configured: no index, mirror or certificate is named here.
# As root the tools are also run as an ordinary user, so the interpreter and the packages must be readable by all.
# Where this folder is closed to others, .venv is a link to a folder under /var/tmp and the project is copied into it.
set -eu
umask 022
cd "$(dirname "$0")/.."
here=$(pwd -P)
store=/var/tmp/slurm-agent-tools

say() { printf 'set-up: %s\n' "$*"; }

fail() {
    printf 'set-up: %s\n' "$*" >&2
    exit 1
}

as_anyone() {
    if [ "$(id -u)" = 0 ]; then
        setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
    else
        "$@"
    fi
}

# apt-get as root, otherwise the one line that a person has to run.
install_packages() {
    command -v apt-get >/dev/null || fail "please install: $*"
    [ "$(id -u)" = 0 ] || fail "please run: sudo apt-get install $*"
    say "installing $*"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -q >/dev/null
    apt-get install -y -q --no-install-recommends "$@" >/dev/null
}

# Prints the first interpreter of 3.11 or newer that everybody here may run; PYTHON names one to try first.
find_python() {
    for name in ${PYTHON:-} python3 /usr/bin/python3 python3.14 python3.13 python3.12 python3.11; do
        path=$(command -v "$name") || continue
        as_anyone "$path" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue
        # An active environment may be .venv itself, which is taken away before it is made: take what it was made with.
        "$path" -c 'import os, sys; print(os.path.realpath(sys._base_executable))'
        return
    done
    return 1
}

make_venv() {
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        install_packages "$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
    fi
    say "making $venv with $python and the pinned packages (a minute or two)"
    rm -rf .venv "$venv"
    "$python" -m venv "$venv"
    [ "$venv" = "$here/.venv" ] || ln -s "$venv" .venv
    "$venv/bin/python" -m pip install -qq --require-hashes -r requirements.txt
}

install_project() {
    say "installing slurm-agent-tools"
    # shellcheck disable=SC2086 - "-e ." is two words
    "$venv/bin/python" -m pip install -qq --no-index --no-deps --no-build-isolation --force-reinstall $target
}

sum() { sha256sum | cut -c1-16; }

python=$(find_python) || {
    install_packages python3 python3-venv
    python=$(find_python) || fail "no Python 3.11 or newer here; set PYTHON to one"
}

if as_anyone test -r "$here/pyproject.toml"; then
    venv=$here/.venv
    target="-e ."
    sources=pyproject.toml
else
    venv=$store/venv-$(printf %s "$here" | sum)
    target=.
    sources="pyproject.toml README.md LICENSE src policies .github"
    mkdir -p -m 0755 "$store"
    [ -O "$store" ] || fail "$store belongs to somebody else"
fi

wanted=$( (echo "$python $venv" && cat requirements.txt) | sum)
if [ "$(cat "$venv/packages" 2>/dev/null)" != "$wanted" ] || [ "$(readlink -f .venv)" != "$venv" ]; then
    make_venv
    echo "$wanted" >"$venv/packages"
fi

# shellcheck disable=SC2086 - a list of names
wanted=$(find $sources -type f ! -name '*.pyc' -exec sha256sum {} + | sort | sum)
# The second question: `uv run` puts a link to this folder in the place of our copy, which others cannot read here.
if [ "$(cat "$venv/project" 2>/dev/null)" != "$wanted" ] ||
    ! as_anyone "$venv/bin/python" -c 'import slurm_agent_tools.errors' 2>/dev/null; then
    install_project
    echo "$wanted" >"$venv/project"
fi
