#!/bin/sh
# Installs packages with apt-get, as root: sh install_packages.sh PACKAGE...
# The services that come with them now are neither started nor enabled.
set -eu
table=$(dirname "$0")/packages.txt
root=${SLURM_AGENT_INSTALL_ROOT:-} # where tests keep their own /etc and /usr
policy=$root/usr/sbin/policy-rc.d
ours='#!/bin/sh
# Made by slurm-agent-tools while it installs packages: no service is started.
exit 101'

# Services of programs that are not there yet; one that runs here already is nothing of ours.
new=$(while read -r _ program _ service; do
    [ -z "$service" ] || command -v "$program" >/dev/null || echo "$service"
done <"$table")

finish() {
    [ -z "$guarded" ] || rm -f "$policy"
    for service in $new; do
        [ ! -d "$root/etc/systemd/system" ] ||
            find "$root/etc/systemd/system" -type l -lname "*/$service.service" -delete
        [ ! -e "$root/etc/init.d/$service" ] || update-rc.d "$service" disable >/dev/null
    done
}

# Packages ask policy-rc.d before they start a service; 101 says no. One with our words was left by a run that was killed.
guarded=
if [ ! -e "$policy" ] || [ "$(cat "$policy")" = "$ours" ]; then
    guarded=yes
fi
trap finish EXIT
trap 'exit 143' INT TERM
if [ -n "$guarded" ]; then
    printf '%s\n' "$ours" >"$policy"
    chmod 755 "$policy"
fi

export DEBIAN_FRONTEND=noninteractive
wait='DPkg::Lock::Timeout=300'
apt-get update -q -o "$wait" >/dev/null
# --no-remove: MariaDB and MySQL exclude each other, and a database that is there must stay.
apt-get install -y -q --no-install-recommends --no-remove -o "$wait" "$@" >/dev/null
