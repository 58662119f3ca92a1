from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from tests.unit.diagnosis.records import job, log, wrote

from slurm_agent_tools.diagnosis.classify import diagnose

LOGS = [
    (entry["category"], entry["log"]) for entry in yaml.safe_load(Path(__file__).with_name("programs.yaml").read_text())
]


@pytest.mark.parametrize(("category", "text"), LOGS)
def test_the_end_of_a_programs_log_gets_its_category(category, text):
    assert diagnose(None, (), [log(*text.splitlines())]).category == category


@pytest.mark.parametrize(("category", "text"), [item for item in LOGS if item[0] != "cancelled"])
def test_a_failed_job_with_that_log_gets_the_same_one(category, text):
    written = log(*text.splitlines())
    state = "TIMEOUT" if category == "time-limit" else "FAILED"
    assert diagnose(wrote(written, state=state, exit_code=1), (), [written]).category == category


ORDINARY = """\
NCCL INFO NET/Plugin : No plugin found (libnccl-net.so), using internal implementation
[W socket.cpp:601] [c10d] The client socket has failed to connect to [localhost]:29500 (errno: 99).
wandb: Network error (ConnectionError), entering retry loop.
UserWarning: CUDA is not available, disabling
Could not find cuda drivers on your machine, GPU will not be used.
checking for cuda.h... no
-- Could NOT find MKL (missing: MKL_LIBRARIES)
validation error: 0.12
mean squared error 0.3 (nan values dropped: 3)
all 200 tests passed, 0 failed
memory limit: 64 GB, time limit: 02:00:00
GPU memory usage: 72 GB / 80 GB
license: MIT
Using license server 27000@lic01
srun: warning: can't run 1 processes on 2 nodes, setting nnodes to 1
slurmstepd: error: couldn't chdir to `/root': No such file or directory: going to /tmp instead
slurmstepd: error: task/cgroup: unable to add task[pid=1] to memory cg '(null)'
mkdir: cannot create directory 'out': File exists
Inf norm of residual: 1.2
not converged yet, residual 1e-3
MPI startup(): I_MPI_FABRICS=shm:ofi
segmentation model: UNet
Cancelled 2 outdated tasks
skipping sample 12: FileNotFoundError
Unable to init server: Could not connect: Connection refused
Failed to detect a default CUDA architecture.
Error caught was: No module named 'triton'
lbfgs failed to converge (status=1):
chmod: changing permissions of 'x': Operation not permitted
rsync: [generator] failed to set times on "/x": Operation not permitted (1)
[cn1:1] 15 more processes have sent help message help-mpi-btl-openib.txt / error in device init
[cn1:1] PMIX ERROR: NO-PERMISSIONS in file dstore_base.c at line 237
Unable to find image 'ubuntu:latest' locally
ERROR SUMMARY: 0 errors from 0 contexts (suppressed: 0 from 0)
Checkpoint file does not exist. Training from the beginning.
File x.npz not found, computing it
libibverbs: Warning: couldn't load driver 'libx.so': libx.so: cannot open shared object file: No such file or directory
""".splitlines()


@pytest.mark.parametrize("line", ORDINARY)
def test_what_programs_print_on_a_good_day_is_no_cause(line):
    assert diagnose(job(exit_code=7), (), [log(line)]).category == "unknown"
