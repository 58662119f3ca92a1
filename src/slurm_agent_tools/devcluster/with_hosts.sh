#!/bin/sh
# Runs a command that reads FILE as /etc/hosts, which nothing else on this machine does: sh with_hosts.sh FILE COMMAND...
# Each step takes the place of the one before, so that the command is the process that was started.
set -eu
hosts=$1
shift
if [ "$(id -u)" = 0 ]; then
    # shellcheck disable=SC2016 - read by the inner shell
    exec unshare --mount --propagation slave sh -c \
        'mount --bind "$1" /etc/hosts && shift && exec "$@"' sh "$hosts" "$@"
fi
# An ordinary user mounts as the root of a namespace of their own, then is that user again.
# shellcheck disable=SC2016
exec unshare --user --map-root-user --mount --propagation slave sh -c '
    mount --bind "$1" /etc/hosts && user=$2 group=$3 && shift 3 &&
    exec unshare --user --map-user="$user" --map-group="$group" "$@"' sh "$hosts" "$(id -u)" "$(id -g)" "$@"
