#!/bin/bash
# The first process in a bare system's own namespaces: mounts what a machine has, then runs the command in there.
#
#   enter.sh POINT LOWER UPPER WORK CGROUPS ADDRESS BINDS -- COMMAND...
#
# Every mount is private to the namespace and ends with it. Bash stays, so that orphans are waited for.
set -euo pipefail
point=$1 lower=$2 upper=$3 work=$4 cgroups=$5 address=$6 binds=$7
shift 8

mount -t overlay -o "lowerdir=$lower,upperdir=$upper,workdir=$work" none "$point"
cd "$point"
echo bare >/proc/sys/kernel/hostname
mount -t proc none proc
mount -t sysfs -o ro none sys
mount -t tmpfs -o nosuid,nodev,mode=1777 none dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 none dev/pts
rm -f dev/ptmx
ln -s pts/ptmx dev/ptmx

# One folder for each v1 hierarchy of the machine, and the names of its controllers.
mount_v1() {
    mount -t tmpfs -o mode=755 none sys/fs/cgroup
    local line controllers name
    while IFS=: read -r _ controllers line; do
        [ -n "$controllers" ] || continue
        name=${controllers#name=}
        mkdir "sys/fs/cgroup/$name"
        mount -t cgroup -o "$controllers" none "sys/fs/cgroup/$name"
        for line in ${name//,/ }; do
            [ -e "sys/fs/cgroup/$line" ] || ln -s "$name" "sys/fs/cgroup/$line"
        done
    done </proc/self/cgroup
}

case $cgroups in
    v1) mount_v1 ;;
    hybrid) mount_v1 && mkdir sys/fs/cgroup/unified && mount -t cgroup2 none sys/fs/cgroup/unified ;;
    v2) mount -t cgroup2 none sys/fs/cgroup ;;
    tmpfs) mount -t tmpfs -o mode=755 none sys/fs/cgroup ;;
    none) ;; # the empty folder of sysfs
esac

printf '127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n%s bare\n' "$address" >etc/hosts
echo bare >etc/hostname
cp -L /etc/resolv.conf etc/resolv.conf
while read -r folder; do
    mount --bind -o ro "$folder" ".$folder"
done <"$binds"

# Not chroot: whoever is in one may make no namespace of users, which an ordinary user of a real machine may.
mkdir -p "$point/mnt/machine"
pivot_root . mnt/machine
cd /
umount --lazy /mnt/machine
rmdir /mnt/machine
hash -r

code=0
"$@" || code=$?
exit "$code"
