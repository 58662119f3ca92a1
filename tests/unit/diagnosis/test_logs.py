from __future__ import annotations

import pytest
from tests.unit.diagnosis.records import log, wrote

from slurm_agent_tools.diagnosis.classify import diagnose

# Written for this project after what the programs print; one line each, \n between the lines of a log.
LOGS = [
    (
        "host-out-of-memory",
        "Loading data\nslurmstepd: error: Detected 1 oom_kill event in StepId=123.batch. Some of the step tasks have been OOM Killed.\n",
    ),
    (
        "host-out-of-memory",
        "srun: error: node01: task 0: Out Of Memory\nslurmstepd: error: *** STEP 12.0 ON node01 CANCELLED AT 2023-01-01T00:00:00 ***",
    ),
    (
        "host-out-of-memory",
        "slurmstepd: error: Exceeded step memory limit at some point.\nsrun: error: n1: task 0: Killed",
    ),
    ("host-out-of-memory", "RuntimeError: DataLoader worker (pid 4523) is killed by signal: Killed."),
    (
        "host-out-of-memory",
        "RuntimeError: [enforce fail at alloc_cpu.cpp:73] . DefaultCPUAllocator: can't allocate memory: you tried to allocate 8589934592 bytes. Error code 12 (Cannot allocate memory)",
    ),
    (
        "host-out-of-memory",
        'Traceback (most recent call last):\n  File "a.py", line 3, in <module>\n    x = [0]*10**12\nMemoryError',
    ),
    ("host-out-of-memory", "Error: cannot allocate vector of size 3.7 Gb\nExecution halted"),
    (
        "gpu-out-of-memory",
        'Traceback (most recent call last):\n  File "train.py", line 10, in <module>\n    y = m(x)\nRuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 10.76 GiB total capacity)',
    ),
    (
        "gpu-out-of-memory",
        "tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[256,512] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
    ),
    ("time-limit", "slurmstepd: error: *** JOB 555 ON node3 CANCELLED AT 2022-01-01T10:00:00 DUE TO TIME LIMIT ***"),
    ("cancelled", "slurmstepd: error: *** JOB 555 ON node3 CANCELLED AT 2022-01-01T10:00:00 ***"),
    (
        "cancelled",
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\nslurmstepd: error: *** JOB 555 ON node3 CANCELLED AT 2022-01-01T10:00:00 ***\nslurmstepd: error: *** STEP 555.0 ON node3 CANCELLED AT 2022-01-01T10:00:00 ***",
    ),
    (
        "missing-module",
        "Traceback (most recent call last):\n  File \"main.py\", line 1, in <module>\n    import torch\nModuleNotFoundError: No module named 'torch'",
    ),
    (
        "missing-file",
        "Traceback (most recent call last):\n  File \"main.py\", line 1, in <module>\n    open('x')\nFileNotFoundError: [Errno 2] No such file or directory: 'x'",
    ),
    ("missing-file", "cat: data.txt: No such file or directory"),
    ("missing-file", "/var/spool/slurmd/job1/slurm_script: line 3: ./run.sh: No such file or directory"),
    ("permission", "bash: ./a.out: Permission denied"),
    ("permission", "mkdir: cannot create directory \u2018/scratch/x\u2019: Permission denied"),
    (
        "disk-full",
        "RuntimeError: [enforce fail at inline_container.cc:471] . PytorchStreamWriter failed writing file data/5: file write failed\nOSError: [Errno 122] Disk quota exceeded",
    ),
    ("script-error", "/var/spool/slurm/job1/slurm_script: line 14: unexpected EOF while looking for matching `\"'\n"),
    ("script-error", "usage: train.py [-h] [--lr LR]\ntrain.py: error: unrecognized arguments: --learning-rate 0.1"),
    (
        "python-exception",
        "  File \"train.py\", line 3\n    print 'x'\n          ^\nSyntaxError: Missing parentheses in call to 'print'",
    ),
    ("script-error", "sbatch: error: Invalid --mem specification"),
    ("command-not-found", "/var/spool/slurmd/job1/slurm_script: line 8: nvcc: command not found"),
    (
        "command-not-found",
        "srun: error: node1: task 0: Exited with exit code 2\nslurmstepd: error: execve(): python3.9: No such file or directory",
    ),
    ("module-load", "ModuleCmd_Load.c(213):ERROR:105: Unable to locate a modulefile for 'cuda/11.9'"),
    (
        "module-load",
        "/var/spool/slurm/job/slurm_script: line 5: conda: command not found\nTraceback (most recent call last):\n  File \"a.py\", line 1, in <module>\nModuleNotFoundError: No module named 'torch'",
    ),
    ("shared-library", "./a.out: /lib64/libstdc++.so.6: version `GLIBCXX_3.4.29' not found (required by ./a.out)"),
    ("shared-library", "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory"),
    (
        "cuda-driver",
        "RuntimeError: CUDA error: no kernel image is available for execution on the device\nCUDA kernel errors might be asynchronously reported",
    ),
    ("cuda-driver", "AssertionError: Torch not compiled with CUDA enabled"),
    (
        "cuda-error",
        '../aten/src/ATen/native/cuda/Indexing.cu:1236: indexSelectSmallIndex: block: [0,0,0], thread: [0,0,0] Assertion `srcIndex < srcSelectDimSize` failed.\nTraceback (most recent call last):\n  File "t.py", line 3, in f\nRuntimeError: CUDA error: device-side assert triggered',
    ),
    (
        "nccl-timeout",
        "[rank1]:[E1121 ProcessGroupNCCL.cpp:607] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=1) ran for 600000 milliseconds before timing out.\nterminate called after throwing an instance of 'c10::DistBackendError'\n  what():  NCCL watchdog thread terminated with exception\nsrun: error: n1: task 1: Aborted (core dumped)",
    ),
    ("port-in-use", "RuntimeError: Address already in use"),
    (
        "port-in-use",
        "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: 1, code: -98, name: EADDRINUSE, message: address already in use",
    ),
    (
        "segmentation-fault",
        "[node1:1234] *** Process received signal ***\n[node1:1234] Signal: Segmentation fault (11)\n[node1:1234] Signal code: Address not mapped (1)\nmpirun noticed that process rank 0 with PID 0 on node node1 exited on signal 11 (Segmentation fault).",
    ),
    ("segmentation-fault", "srun: error: node1: task 0: Segmentation fault (core dumped)"),
    (
        "bus-error",
        "RuntimeError: DataLoader worker (pid 99) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.",
    ),
    (
        "python-exception",
        "Traceback (most recent call last):\n  File \"train.py\", line 88, in <module>\n    main()\n  File \"train.py\", line 20, in main\n    x = cfg['a']\nKeyError: 'a'",
    ),
    (
        "python-exception",
        "Error executing job with overrides: []\nTraceback (most recent call last):\n  File \"t.py\", line 3, in main\n    raise ValueError('x')\nValueError: x\n\nSet the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.",
    ),
    (
        "numeric",
        'Epoch 3: loss=nan\nTraceback (most recent call last):\n  File "t.py", line 3, in f\n    assert not torch.isnan(loss)\nAssertionError',
    ),
    (
        "license",
        "MATLAB:license checkout failed\nLicense Manager Error -4\nMaximum number of users for MATLAB reached. License checkout failed.",
    ),
    (
        "network",
        "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='models.example.org', port=443): Max retries exceeded with url: /bert (Caused by NewConnectionError('Failed to establish a new connection: [Errno 101] Network is unreachable'))",
    ),
    (
        "network",
        'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nsocket.gaierror: [Errno -2] Name or service not known',
    ),
    ("network", "ssh: connect to host x port 22: Connection timed out"),
    (
        "mpi-abort",
        "--------------------------------------------------------------------------\nMPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD\nwith errorcode 1.",
    ),
    (
        "host-out-of-memory",
        "slurmstepd: error: Job 123 exceeded memory limit (4200000 > 4194304), being killed\nslurmstepd: error: Exceeded job memory limit\nslurmstepd: error: *** JOB 123 ON n1 CANCELLED AT 2020-01-01T00:00:00 ***",
    ),
    ("node-failure", "srun: error: Node failure on n12\nsrun: Job step aborted: Waiting up to 32 seconds"),
    (
        "limit",
        "sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
    ),
    ("unknown", "epoch 1\nepoch 2\nsrun: error: n1: task 0: Exited with exit code 1"),
    ("script-error", "usage: x\ntrain.py: error: argument --lr: invalid float value: 'a'"),
    ("missing-file", "NotADirectoryError: [Errno 20] Not a directory: 'x'"),
    ("network", "httpx.ConnectError: [Errno 111] Connection refused"),
    ("nccl-timeout", "RuntimeError: Timed out initializing process group in store based barrier on rank: 0"),
    ("shared-library", "x: version `CXXABI_1.3.13' not found"),
    ("node-failure", "srun: error: Communication connection failure to node gpu01"),
    ("cuda-driver", "CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected"),
    ("network", "huggingface_hub.utils._errors.LocalEntryNotFoundError: x"),
]


@pytest.mark.parametrize(("category", "text"), LOGS, ids=lambda value: value[:40])
def test_a_log_alone_gets_its_category(category, text):
    found = diagnose(None, (), [log(*text.split("\n"))])

    assert found.category == category
    assert found.evidence


@pytest.mark.parametrize(("category", "text"), [case for case in LOGS if case[0] != "cancelled"], ids=lambda v: v[:40])
def test_a_failed_job_with_that_log_gets_the_same_one(category, text):
    written = log(*text.split("\n"))
    state = "TIMEOUT" if category == "time-limit" else "FAILED"
    assert diagnose(wrote(written, state=state, exit_code=1), (), [written]).category == category
