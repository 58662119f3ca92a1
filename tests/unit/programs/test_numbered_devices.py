"""Devices that are named by their number: as options, in calls of other languages, in settings; counts are none."""

from __future__ import annotations

import pytest
from tests.unit.scripts.project import project, read

NUMBERED = [
    "python x.py --gpus 0,1",
    "python x.py --gpus=2,",
    "python x.py --gpus '0, 1'",
    "python x.py --gpus 0 1",
    "python x.py --gpu_ids 0 1 2 --epochs 3",
    "python x.py --gpu 0-3",
    "python x.py --gpuids 0,1",
    "python x.py --gpuid 1",
    "python x.py --device gpu:1",
    "llama-server --device CUDA1",
    "colmap matcher --SiftMatching.gpu_index=0,1",
    "gmx mdrun -gputasks 0011",
    "python x.py --devices 0,1",
    "python x.py --trainer.devices=0,1",
    "python x.py --visible-gpus 0,1,2",
    "python x.py --gpu 0:1",
    "python x.py --gpu-list 1,3",
    "python x.py gpus=0,1",
    "python x.py gpu_id=0",
    "python x.py model.gpu_ids=[0]",
    "catboost fit --devices 0:1",
    "gmx mdrun -gpu_id 0",
    "gmx mdrun -gpu_id 01",
    "python x.py --gpu_ids=0",
    "python x.py --device-id 1",
    "namd2 +p4 +devices 0,1 run.namd",
    "namd3 +devices 0 run.namd",
    "julia -e 'using CUDA; CUDA.device!(1)'",
    "julia -e 'AMDGPU.device_id!(2)'",
    "matlab -batch 'gpuDevice(2); train'",
    "Rscript -e 'torch::cuda_set_device(1)'",
    "julia <<'J'\nCUDA.device!(0)\nJ",
    """python -c 'fit(gpu_id=0)'""",
    """srun python -c 'print("ready"); x.to("cuda:0")'""",
    """python -c 'print(torch.ones(1, device="cuda:0"))'""",
    """python -c 'print(model.to("cuda:1")(x))'""",
    """python -c 'p = {"gpu_id": 1}'""",
    """python -c 'p = {"DeviceIndex": "0,1", "Precision": "mixed"}'""",
    """python -c 'CatBoost(task_type="GPU", devices="0:1")'""",
    """python -c 'Trainer(devices="0,1")'""",
    """python -c 'x = torch.cuda.device(0)'""",
]

COUNTED = [
    "python x.py --gpus 2",
    "python x.py --gpu 1",
    "python x.py --devices 4",
    "python x.py --device 0",
    "python x.py --device-id 0",
    "python x.py --gpuid 0",
    "python x.py --gpus 0 --epochs 3",
    "python x.py --gpus 2 8",
    "colmap matcher --SiftMatching.gpu_index 0",
    "python x.py --device cuda",
    "python x.py --gpus all",
    "python x.py gpus=2",
    "srun --gpus=2 ./a.out",
    "srun --gpus=a100:2 ./a.out",
    "srun --gpu-bind=map_gpu:0,1 ./a.out",
    "matlab -batch 'gpuDevice(1); train'",
    "julia -e 'CUDA.device!(parse(Int, ENV[\"SLURM_LOCALID\"]))'",
    "sort -k 1,2 -g x",
    "cut --fields 0,1 x",
    "echo 'CUDA.device!(1)'",
    """python -c 'print(torch.cuda.device(0))'""",
    """python -c 'print(torch.cuda.get_device_name(0))'""",
    """python -c 'print(torch.cuda.memory_allocated(device="cuda:0"))'""",
    """python -c 'print(torch.cuda.get_device_properties("cuda:1"))'""",
    """srun python -c 'log.info("%s", torch.cuda.mem_get_info("cuda:0"))'""",
    """python -c 'Trainer(devices=2)'""",
    """python -c 'p = {"gpu_id": None, "DeviceIndex": index}'""",
]


def lines(reading) -> list[tuple[str, int]]:
    return [(one.evidence.file, one.evidence.line) for one in reading.findings if one.rule == "device-index"]


@pytest.mark.parametrize("text", NUMBERED)
async def test_a_device_by_its_number_is_found(text: str):
    assert lines(await read(text))


@pytest.mark.parametrize("text", COUNTED)
async def test_a_count_or_a_look_is_none(text: str):
    assert (await read(text)).findings == ()


SETTINGS = """\
# device: cuda:1
model: {name: base}
device: cuda:3  # or cuda:0
gpu_ids: [0, 1]
trainer:
  devices:
    - 0
    - 1
  gpus: 2
note: cuda  # cuda:2
"""


@pytest.mark.parametrize(
    "words", ["--config conf/a.yaml", "--config=conf/a.yaml", "conf/a.yaml", "config=$ROOT/conf/a.yaml"]
)
async def test_settings_that_a_program_is_given_are_looked_at(words: str):
    reading = await read(f"python train.py {words}", project(conf___a__yaml=SETTINGS))

    assert lines(reading) == [("conf/a.yaml", 3), ("conf/a.yaml", 4), ("conf/a.yaml", 7)]
    assert reading.files == {}


async def test_json_and_variables_in_settings_are_looked_at():
    text = '{"gpu_ids": [0],\n "device": "cuda",\n "env": {"CUDA_VISIBLE_DEVICES": "0"},\n "gpus": 4}\n'
    reading = await read("python train.py run.json", project(run__json=text))

    assert [(one.rule, one.evidence.line) for one in reading.findings] == [
        ("device-index", 1),
        ("cuda-visible-devices", 3),
    ]


async def test_settings_that_nothing_is_given_and_data_are_not_read():
    files = project(a__yaml=SETTINGS, big__json='{"device": "cuda:1"}' + " " * 300_000)

    assert (await read("cat a.yaml\npython train.py big.json", files)).findings == ()
    many = "\n".join(f"python train.py --config c{number}.yaml" for number in range(100))
    assert (await read(many, files)).findings == ()
