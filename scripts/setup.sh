#!/bin/sh
# Makes .venv with every package at its pinned version, and this project in it. Run by make; silent when all is there.
#
#   sh scripts/setup.sh [NEED...]     each NEED is one of devcluster/packages.txt
#
# What the machine lacks is looked for first, then installed once, before anything is downloaded: as root by apt-get,
# otherwise one line is printed that a person runs.
#
# Python and pip are used as this machine has them configured: no index, mirror or certificate is named here.
# As root the tools are also run as an ordinary user, so the interpreter and the packages must be readable by all.
# Where this folder is closed to others, .venv is a link to a folder under /var/tmp and the project is copied into it.
set -eu
umask 022
cd "$(dirname "$0")/.."
here=$(pwd -P)
store=/var/tmp/slurm-agent-tools
devcluster=src/slurm_agent_tools/devcluster
needs=$*

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

# Whether a program, or a file by its path with wildcards, is on this machine. A user's PATH lacks the folders of daemons.
present() {
    case $1 in
        /*) for file in $1; do [ ! -e "$file" ] || return 0; done; return 1 ;;
        *) (PATH=/usr/sbin:/usr/bin:/sbin:/bin && command -v "$1" >/dev/null) ;;
    esac
}

# Prints the packages that this machine lacks, for Python first.
missing_packages() {
    if [ -z "$python" ]; then
        echo python3
        echo python3-venv
    elif ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        "$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'
    fi
    while read -r need program package _; do
        case " $needs " in
            *" $need "*) present "$program" || echo "$package" ;;
        esac
    done <$devcluster/packages.txt
}

# apt-get as root, otherwise the one line that a person has to run.
install_packages() {
    command -v apt-get >/dev/null || fail "please install: $*"
    [ "$(id -u)" = 0 ] || fail "please run: sudo apt-get install -y --no-install-recommends --no-remove $*"
    say "installing $*"
    sh $devcluster/install_packages.sh "$@"
}

# A private cluster listens on loopback only, where its daemons find the machine's name. See devcluster/hostname.py.
check_name() {
    name=$(cat /proc/sys/kernel/hostname)
    address=$(getent ahostsv4 "$name" | awk 'NR == 1 { print $1 }')
    case $address in 127.*) return ;; esac
    sh $devcluster/with_hosts.sh /etc/hosts true 2>/dev/null ||
        fail "the name of this machine, $name, stands for ${address:-nothing}, and the private Slurm listens on" \
            "loopback only; please put the line \`127.0.0.1 $name\` at the top of /etc/hosts"
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

case " $needs " in *" cluster "*) check_name ;; esac
python=$(find_python) || python=
packages=$(missing_packages | awk '!seen[$0]++')
if [ -n "$packages" ]; then
    # shellcheck disable=SC2086 - a list of names
    install_packages $packages
    python=$(find_python) || fail "no Python 3.11 or newer here; set PYTHON to one"
fi

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
# The second question: an editable installation by hand puts a link to this folder, which others cannot read here.
if [ "$(cat "$venv/project" 2>/dev/null)" != "$wanted" ] ||
    ! as_anyone "$venv/bin/python" -c 'import slurm_agent_tools.errors' 2>/dev/null; then
    install_project
    echo "$wanted" >"$venv/project"
fi
