"""Stand-ins for Slurm's programs: small scripts that run for real, note how they were called, and answer.

Files of the folder `said` say what they answer beside that: `ends.NAME` (a daemon ends with these words), `jobs`
(what squeue shows until scancel comes), `last` (the highest number of a job that the database knows).
"""

from __future__ import annotations

import sys
from pathlib import Path

_HEAD = """\
#!/bin/sh
name=${0##*/}
folder=${SLURM_CONF%/etc/*}
said=@SAID@
echo "$name $*" >> "$said/calls"
"""

_DAEMON = 'if [ -f "$said/ends.$name" ]; then cat "$said/ends.$name"; exit 1; fi\nexec sleep 600\n'

_SLURMD = (
    'if [ "$1" = -C ]; then echo "NodeName=desk CPUs=8 Boards=1 SocketsPerBoard=1 CoresPerSocket=4 ThreadsPerCore=2'
    ' RealMemory=32000"; echo UpTime=1-00:00:00; exit 0; fi\n'
    'if [ "$1" = -V ]; then echo "slurm 24.11.5"; exit 0; fi\n'
    'ends="$said/ends.${3#??}"\n'  # a node's name without the letters of its cluster
    'if [ -f "$ends" ]; then cat "$ends"; exit 1; fi\necho "$3 idle" >> "$said/nodes"\nexec sleep 600\n'
)

_SINFO = """\
case "$*" in
  *%R*) printf 'gpu\\ncpu\\ncpu\\n' ;;
  *) cat "$said/nodes" ;;
esac
"""

_SQUEUE = '[ ! -f "$said/jobs" ] || cat "$said/jobs"\n'

_SCANCEL = 'rm -f "$said/jobs"\n'

_SACCTMGR = 'if [ -f "$said/refuses.$name" ]; then cat "$said/refuses.$name" >&2; exit 1; fi\n'

_MARIADB = 'case "$*" in *MAX*) cat "$said/last" ;; esac\n'

_SSHD = """\
import socket, subprocess, sys
port = next(int(line.split()[1]) for line in open(sys.argv[-1]) if line.startswith("Port "))
listening = socket.create_server(("127.0.0.1", port))
session = subprocess.Popen(["sleep", "600"])
while True:
    listening.accept()[0].close()
"""


def make(bin_dir: Path, said: Path) -> None:
    """Write them; the folder of plugins that belongs to them as well."""
    bin_dir.mkdir(parents=True)
    (bin_dir.parent / "lib/any/slurm-wlm").mkdir(parents=True)
    said.mkdir()
    (said / "nodes").touch()
    quiet = ("munge", "mariadb", "mariadb-admin", "mariadb-install-db", "scontrol")
    bodies = dict.fromkeys(quiet, _SACCTMGR) | dict.fromkeys(("munged", "mariadbd", "slurmdbd", "slurmctld"), _DAEMON)
    bodies |= {"slurmd": _SLURMD, "sinfo": _SINFO, "squeue": _SQUEUE, "scancel": _SCANCEL, "sacctmgr": _SACCTMGR}
    for name, body in bodies.items():
        _write(bin_dir / name, _HEAD.replace("@SAID@", str(said)) + body)
    _write(bin_dir / "mariadb", _HEAD.replace("@SAID@", str(said)) + _SACCTMGR + _MARIADB)
    _write(bin_dir / "sshd", f"#!{sys.executable}\n{_SSHD}")


def _write(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)
