"""How generated scripts start several processes, go on from checkpoints and carry a reason."""

from __future__ import annotations

import pytest
from tests.unit.insights.test_script_writing import draft, picked

from slurm_agent_tools.insights.script_writing import Draft
from slurm_agent_tools.scripts.directive_lines import read_directives


def last_part(found: Draft) -> str:
    """What runs the command: everything behind the last empty line."""
    return found.script.rstrip("\n").rpartition("\n\n")[2]


def test_distributed_work_is_one_task_per_gpu_over_as_many_nodes_as_it_takes():
    found = draft(gpus=8, distributed=True)

    assert picked(found, "nodes", "ntasks-per-node", "gpus-per-node", "cpus-per-task") == ("2", "4", "4", "8")
    assert last_part(found).splitlines()[-5:] == [
        "srun --kill-on-bad-exit=1 bash -euo pipefail -c '",
        'export RANK="$SLURM_PROCID" LOCAL_RANK="$SLURM_LOCALID"',
        'export WORLD_SIZE="$SLURM_NTASKS" LOCAL_WORLD_SIZE="$SLURM_NTASKS_PER_NODE"',
        "exec python train.py",
        "'",
    ]
    assert "MASTER_ADDR=$(hostname)\n" in last_part(found)
    assert "Processes: 4 on each node, one per GPU." in found.reasons


@pytest.mark.parametrize(
    ("facts", "program"),
    [
        ({"command": "torchrun --nproc_per_node=4 --standalone t.py --lr 3"},
         ('exec torchrun --nnodes=2 --nproc-per-node=4 --node-rank="$SLURM_NODEID" --master-addr="$MASTER_ADDR"'
         ' --master-port="$MASTER_PORT" t.py --lr 3')),
        ({"command": "env/bin/python -u -m pkg.train -n 3", "launcher": "torchrun"},
         ('exec env/bin/python -m torch.distributed.run --nnodes=2 --nproc-per-node=4 --node-rank="$SLURM_NODEID"'
         ' --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" -m pkg.train -n 3')),
        ({"command": "python -m torch.distributed.launch --nnodes 3 t.py"},
         ('exec python -m torch.distributed.run --nnodes=2 --nproc-per-node=4 --node-rank="$SLURM_NODEID"'
         ' --master-addr="$MASTER_ADDR" --master-port="$MASTER_PORT" t.py')),
        ({"command": "./train --lr 3", "launcher": "torchrun"},
         ('exec torchrun --nnodes=2 --nproc-per-node=4 --node-rank="$SLURM_NODEID" --master-addr="$MASTER_ADDR"'
         ' --master-port="$MASTER_PORT" --no-python ./train --lr 3')),
        ({"command": "accelerate launch --num_processes 3 --multi_gpu --mixed_precision=no t.py"},
         ('exec accelerate launch --multi_gpu --num_machines=2 --num_processes=8 --machine_rank="$SLURM_NODEID"'
         ' --main_process_ip="$MASTER_ADDR" --main_process_port="$MASTER_PORT" --mixed_precision=no t.py')),
        ({"command": "deepspeed --num_gpus=4 t.py --deepspeed d.json"}, "exec python t.py --deepspeed d.json"),
        ({"command": "python t.py", "launcher": "deepspeed"}, "exec python t.py"),
        ({"command": "srun python t.py"}, "exec python t.py"),
        ({"command": "cd x && python t.py"}, "cd x && python t.py"),
        ({"command": "LEVEL=1 python t.py"}, "LEVEL=1 python t.py"),
    ],
)  # fmt: skip
def test_each_launcher_is_told_the_jobs_layout_and_nothing_else(facts, program):
    found = draft(**{"gpus": 8, "distributed": True} | facts)

    assert last_part(found).splitlines()[-2:] == [program, "'"]
    per_node = "1" if "--nnodes" in program or "--num_machines" in program else "4"
    assert picked(found, "ntasks-per-node", "gpus-per-node") == (per_node, "4")


def test_mpirun_takes_the_layout_from_slurm_with_one_process_per_gpu_or_per_cpu():
    found = draft(
        command="mpirun -np 3 --bind-to core ./a.out -n 5", gpus=0, nodes=2, cpus=8, memory="16G", distributed=True
    )

    assert last_part(found) == "mpirun --bind-to core ./a.out -n 5"
    assert picked(found, "nodes", "ntasks-per-node", "cpus-per-task", "mem") == ("2", "4", "1", "8G")
    assert "Processes: 4 on each node, as there are no GPUs." in found.reasons
    assert last_part(draft(command="./a.out", gpus=4, launcher="mpi")) == "mpirun ./a.out"


def test_a_step_with_options_of_its_own_stays_as_it_is():
    assert last_part(draft(command="srun --label python t.py", distributed=True)).endswith("\nsrun --label python t.py")


def test_a_job_without_gpus_has_one_process_on_each_node():
    found = draft(gpus=0, nodes=2, launcher="torchrun")

    assert picked(found, "nodes", "ntasks-per-node", "cpus-per-task", "gpus-per-node") == ("2", "1", "4", None)
    assert "--nproc-per-node=1 " in last_part(found)


def test_the_newest_checkpoint_counts_and_the_program_is_told_before_the_limit():
    checkpoint = {"dir": "ckpt", "resume_from": "ckpt/step-*.pt", "signal_before": "5m"}
    found = draft(checkpoint=checkpoint, array="0-3%2", time_limit="1h")

    assert picked(found, "signal", "time") == ("USR1@300", "01:00:00")
    assert """find "$CHECKPOINT_DIR" -maxdepth 1 -name 'step-*.pt' """ in found.script
    assert last_part(found).splitlines()[0] == "srun --kill-on-bad-exit=1 bash -euo pipefail -c '"
    assert last_part(found).splitlines()[1].startswith('trap "" USR1')
    assert last_part(found).splitlines()[2] == "exec python train.py"
    duties = [reason for reason in found.reasons if reason.startswith("The program ")]
    assert [word for word in ("CHECKPOINT_DIR", "RESUME_FROM", "USR1 5m") if any(word in duty for duty in duties)] == [
        "CHECKPOINT_DIR", "RESUME_FROM", "USR1 5m",
    ]  # fmt: skip


def test_a_reason_stands_behind_the_memory_where_the_policy_finds_it():
    found = draft(justification="the whole data set is read at once", memory="20G")

    assert read_directives(found.script.encode(), "x").justification == "the whole data set is read at once"
    assert picked(found, "mem-per-gpu") == ("20G",)


@pytest.mark.parametrize(("text", "slurm"), [("2h", "02:00:00"), ("90min", "01:30:00"), ("100s", "00:02:00")])
def test_a_time_limit_may_be_written_as_people_write_it(text, slurm):
    assert picked(draft(time_limit=text), "time") == (slurm,)
