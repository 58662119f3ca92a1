"""Nodes that a job keeps for a person: told from the servers, pauses and logs that honest work needs."""

from __future__ import annotations

import pytest
from tests.unit.scripts.project import project, read

WORKERS = "python a.py &\npython b.py &\n"

KEPT = [
    "sleep infinity",
    "exec sleep inf",
    "sleep 2h",
    "sleep 1d 2h",
    "srun sleep 100000",
    "sleep infinity & wait",
    "sleep $((8 * 3600))",
    "HOURS=8\nsleep $((HOURS * 60 * 60))",
    "while sleep 60; do :; done",
    "while sleep 300; do nvidia-smi; done",
    "echo ready; if [ -f x ]; then tail -f /dev/null; fi",
    "tail -F run.log",
    "while true; do sleep 60; done",
    "while :; do nvidia-smi; sleep 5; done",
    "while :; do eval 'nvidia-smi'; sleep 5; done",
    "while [ 1 ]; do date; sleep 5; done",
    "while ((1)); do sleep 5; done",
    "for ((;;)); do sleep 1; done",
    "until false; do sleep 1; done",
    "idle() { while true; do sleep 9; done; }\nidle",
    "bash -c 'sleep infinity'",
    "python -c 'import time; time.sleep(86400)'",
    "srun python3 -c 'from time import sleep; sleep(1e9)'",
    "jupyter lab --no-browser",
    "jupyter-notebook --ip=0.0.0.0",
    "python -m jupyterlab",
    "python3 -m jupyter notebook",
    "python3 -m notebook --no-browser",
    "python -m jupyter_server",
    "python - <<'P'\nimport time\ntime.sleep(86400)\nP",
    "nohup jupyter lab &",
    "srun singularity exec x.sif jupyter lab",
    "code-server --bind-addr 0.0.0.0:80",
    "code tunnel --name here",
    "screen -dmS work",
    "tmux new-session -d -s work",
    "tmux",
    "vncserver :1",
    "Xvnc :1 &",
    "rserver --www-port 8787",
    "ssh -N -R 8888:localhost:8888 login",
    "ssh -fNR 8888:localhost:8888 login",
    "ssh -o RemoteForward=80 login",
    "autossh -M 0 -R 1:localhost:2 login",
    "ssh login -p 22 -N -R 8888:localhost:8888",
    "ssh -oRemoteForward='80 localhost:80' login",
    "/usr/sbin/sshd -D -p 2222",
    "cloudflared tunnel --url http://localhost:80",
]

FREE = [
    "sleep 600",
    "while true; do . ./next_step.sh; sleep 60; done",
    "while true; do source next_step.sh; sleep 60; done",
    "sleep $WAIT",
    "sleep $((10 * 60))",
    "while sleep 5; do curl -s localhost:80/health && break; done",
    "while sleep 60; do nvidia-smi; done &\npython train.py",
    "python -c 'import time; time.sleep(60)'",
    "python -c 'import time; time.sleep(86400)' &\npython train.py",
    "(sleep 23h; touch stop) &\npython train.py",
    "sleep 8h &\npython train.py",
    "(while true; do nvidia-smi >> gpu.log; sleep 60; done) &\npython train.py",
    "while true; do nvidia-smi; sleep 60; done &\npython train.py",
    "watch_gpu() { while true; do nvidia-smi; sleep 9; done; }\nwatch_gpu &\npython train.py",
    "nohup bash -c 'while true; do free; sleep 9; done' &\npython train.py",
    "while true; do curl -s localhost:80/health && break; sleep 5; done",
    "while true; do if [ -f done ]; then exit 0; fi; sleep 5; done",
    "while ps -p $PID; do sleep 3600; done",
    "sleep infinity | ./server --stdin",
    "tail -f run.log &\npython train.py",
    "tail -f run.log --pid=$PID",
    "tail -f run.log | grep -m1 ready",
    "tail -n 5 run.log",
    "jupyter nbconvert --execute a.ipynb",
    "jupyter --version",
    "jupyter kernelspec list",
    "code --version",
    "tmux kill-session -t x",
    "tmux ls",
    "screen -ls",
    "vncserver -kill :1",
    "ssh node1 hostname",
    "ssh -N -L 5432:db:5432 login &",
    "ssh node1 ls -R results",
    "ssh -N -L 5432:db:5432 -p 22 login -v &\npython train.py",
    "echo 'run jupyter lab yourself'",
    "xvfb-run python render.py",
    "pip install jupyter",
]


def kept(reading) -> list[str]:
    return [finding.what for finding in reading.findings if finding.level == "justify"]


@pytest.mark.parametrize("text", KEPT)
async def test_a_node_that_is_kept_for_a_person_is_found(text: str):
    reading = await read(text)

    assert len(kept(reading)) == 1
    assert {finding.rule for finding in reading.findings} == {"interactive"}


@pytest.mark.parametrize("text", FREE)
async def test_what_work_needs_keeps_no_node(text: str):
    assert (await read(text)).findings == ()


@pytest.mark.parametrize("idle", ["sleep infinity", "while true; do top -b -n 1; sleep 600; done", "tail -f /dev/null"])
async def test_behind_workers_in_the_background_what_was_meant_is_wait(idle: str):
    assert "`wait`" in kept(await read(WORKERS + idle))[0]
    assert "`wait`" not in kept(await read(f"sleep 1 &\n{idle}"))[0]


HELD = [
    "time.sleep(86400)",
    "HOURS = 8\ntime.sleep(60 * 60 * HOURS)",
    "time.sleep(1e9)",
    "from math import inf\nsleep(float('inf'))",
    "def main():\n    print('ready')\n    time.sleep(24 * 3600)\nif __name__ == '__main__':\n    main()",
    "async def main():\n    await asyncio.sleep(7200)\nasyncio.run(main())",
    "while True:\n    print('still here')\n    time.sleep(60)",
    "try:\n    while True:\n        time.sleep(1)\nexcept KeyboardInterrupt:\n    pass",
    "signal.pause()",
]

PAUSED = [
    "time.sleep(600)",
    "time.sleep(minutes * 60)",
    "while not done():\n    time.sleep(3600)",
    "while True:\n    if ready():\n        break\n    time.sleep(60)",
    "while True:\n    step()\n    time.sleep(60)",
    "for host in hosts:\n    time.sleep(3600)",
    "def idle():\n    time.sleep(86400)\nfit()",
    "server.start()\ntry:\n    while True:\n        time.sleep(86400)\nexcept KeyboardInterrupt:\n    server.stop()",
    "child = subprocess.Popen(['./sim'])\ntime.sleep(7200)",
]


@pytest.mark.parametrize("text", HELD)
async def test_a_python_program_that_only_sleeps_keeps_the_node(text: str):
    files = project(hold__py=f"import time\n{text}\n")

    assert len(kept(await read("python hold.py", files))) == 1
    assert kept(await read("python hold.py &\npython train.py", files)) == []
    files = project(train__py="import hold\nhold.fit()\n", hold__py=text)
    assert kept(await read("python train.py", files)) == [], "of a module only what the program calls runs"


@pytest.mark.parametrize("text", PAUSED)
async def test_a_pause_a_poll_and_a_server_of_a_python_program_keep_no_node(text: str):
    assert (await read("python hold.py", project(hold__py=f"import time\n{text}\n"))).findings == ()


async def test_a_file_that_the_job_runs_may_keep_the_node_as_well():
    files = project(hold__sh="#!/bin/bash\nsleep infinity\n")

    assert kept(await read("./hold.sh", files))
    assert not kept(await read("./hold.sh &\npython train.py", files))
