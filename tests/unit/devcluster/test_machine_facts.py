"""What a machine has is read from what its kernel, its drivers and slurmd say; what they do not say is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from slurm_agent_tools.devcluster import machine_facts
from slurm_agent_tools.devcluster.machine_facts import Kept, MachineGpu, Sight
from slurm_agent_tools.errors import InputError

SLURMD = (
    "NodeName=desk CPUs=16 Boards=1 SocketsPerBoard=1 CoresPerSocket=8 ThreadsPerCore=2 RealMemory=64000\n"
    "UpTime=3-02:11:09\n"
)
INFORMATION = """\
Model: \t\t {model}
IRQ:   \t\t 132
GPU UUID: \t {uuid}
Video BIOS: \t 95.02.18.80.42
Bus Type: \t PCIe
Bus Location: \t 0000:{bus}
Device Minor: \t {minor}
GPU Excluded:\t No
"""
SMI = """\
<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
  <driver_version>550.90.07</driver_version>
  <attached_gpus>{count}</attached_gpus>
{gpus}</nvidia_smi_log>
"""
SMI_GPU = """\
  <gpu id="00000000:{bus}">
    <product_name>{model}</product_name>
    <mig_mode><current_mig>{mig}</current_mig><pending_mig>{mig}</pending_mig></mig_mode>
    <uuid>{uuid}</uuid>
    <minor_number>{minor}</minor_number>
    <fb_memory_usage><total>{memory}</total><used>1 MiB</used></fb_memory_usage>
  </gpu>
"""
ROCM = {
    "card0": {
        "Unique ID": "0x8a1", "VRAM Total Memory (B)": "25753026560", "VRAM Total Used Memory (B)": "27262976",
        "PCI Bus": "0000:03:00.0", "Card series": "Radeon RX 7900 XTX", "Card model": "0x471e",
    },
    "system": {"Driver version": "6.3.6"},
}  # fmt: skip


class Desk:
    """A made-up machine: files below a folder, what programs print, which files are devices."""

    def __init__(self, root: Path) -> None:
        self.root, self.says, self.devices = root, {"slurmd": SLURMD}, set()
        self.affinity = frozenset(range(16))
        for number in range(16):  # two threads of a core are as far apart as there are cores
            self.write(f"sys/devices/system/cpu/cpu{number}/topology/physical_package_id", "0\n")
            self.write(f"sys/devices/system/cpu/cpu{number}/topology/core_id", f"{number % 8}\n")

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def nvidia(self, bus: str, minor: str, model: str = "NVIDIA GeForce RTX 4090", *, uuid: str = "GPU-1") -> None:
        text = INFORMATION.format(model=model, uuid=uuid, bus=bus, minor=minor)
        self.write(f"proc/driver/nvidia/gpus/0000:{bus}/information", text)
        self.devices.add(f"dev/nvidia{minor}")

    def smi(self, *gpus: str) -> None:
        self.says["nvidia-smi"] = SMI.format(count=len(gpus), gpus="".join(gpus))

    async def read(self, kept: Kept = Kept()) -> machine_facts.MachineNode:  # noqa: B008 - frozen
        async def ask(argv):
            return self.says.get(argv[0])

        def device(path: Path) -> bool:
            return str(path.relative_to(self.root)) in self.devices

        return await machine_facts.read(Sight(ask, self.root, self.affinity, device), kept)


def smi_gpu(bus, minor, model="NVIDIA GeForce RTX 4090", *, mig="N/A", memory="24564 MiB", uuid="GPU-1") -> str:
    return SMI_GPU.format(bus=bus, minor=minor, model=model, mig=mig, memory=memory, uuid=uuid)


@pytest.fixture
def desk(tmp_path) -> Desk:
    return Desk(tmp_path)


# --- cores and memory --------------------------------------------------------------------------------------------


async def test_a_core_of_four_or_more_and_a_tenth_of_the_memory_are_kept_for_the_person(desk):
    found = await desk.read()
    assert (found.cpus, found.sockets, found.cores_per_socket, found.threads_per_core) == (16, 1, 8, 2)
    assert found.reserved == (14, 15)  # both threads of one core, as Slurm counts them
    assert (found.usable, found.cores) == (14, 7)
    assert (found.memory, found.kept_memory) == (57600, 6400)
    assert found.unread == ()
    assert found.gpus == ()


async def test_few_cores_are_all_for_jobs_and_more_memory_than_eight_gib_is_never_kept(desk):
    desk.says["slurmd"] = (
        "NodeName=x CPUs=3 Boards=1 SocketsPerBoard=1 CoresPerSocket=3 ThreadsPerCore=1 RealMemory=900000\n"
    )
    for number in range(3, 16):
        (desk.root / f"sys/devices/system/cpu/cpu{number}/topology/core_id").unlink()
    desk.affinity = frozenset(range(3))
    found = await desk.read()
    assert (found.reserved, found.kept_memory) == ((), 8192)


async def test_on_a_small_machine_half_of_the_memory_is_left_at_least(desk):
    desk.says["slurmd"] = SLURMD.replace("64000", "800")
    assert (await desk.read()).kept_memory == 400
    desk.says["slurmd"] = SLURMD.replace("64000", "2000")
    assert (await desk.read()).kept_memory == 512


async def test_what_the_person_keeps_is_what_was_said(desk):
    found = await desk.read(Kept(cores=3, memory=4000))
    assert found.reserved == (10, 11, 12, 13, 14, 15)
    assert (found.memory, found.kept_memory) == (60000, 4000)
    found = await desk.read(Kept(cores=0, memory=0))
    assert (found.reserved, found.memory) == ((), 64000)


@pytest.mark.parametrize(
    ("kept", "field"),
    [(Kept(cores=8), "keep_cores"), (Kept(cores=-1), "keep_cores"), (Kept(memory=64000), "keep_memory"), (Kept(memory=-1), "keep_memory")],
)  # fmt: skip
async def test_something_must_be_left_for_jobs(desk, kept, field):
    with pytest.raises(InputError, match=field):
        await desk.read(kept)


async def test_cores_that_this_process_may_not_use_are_for_no_job(desk):
    desk.affinity = frozenset({0, 1, 2, 3, 8, 9, 10})  # of core 3 one thread alone
    found = await desk.read(Kept(cores=0))
    assert found.cores == 3
    assert found.reserved == tuple(range(6, 16))


async def test_one_thread_of_a_core_is_no_core_and_that_is_said(desk):
    desk.affinity = frozenset({10})
    with pytest.raises(InputError, match="holds no whole core") as caught:
        await desk.read(Kept())
    assert "taskset" in caught.value.hint


async def test_two_sockets_are_counted_one_after_the_other(desk):
    desk.says["slurmd"] = (
        "NodeName=x CPUs=16 Boards=1 SocketsPerBoard=2 CoresPerSocket=8 ThreadsPerCore=1 RealMemory=64000\n"
    )
    for number in range(16):  # the kernel numbers them in turn
        desk.write(f"sys/devices/system/cpu/cpu{number}/topology/physical_package_id", f"{number % 2}\n")
        desk.write(f"sys/devices/system/cpu/cpu{number}/topology/core_id", f"{number // 2}\n")
    desk.affinity = frozenset(range(0, 16, 2))
    found = await desk.read(Kept(cores=0))
    assert found.reserved == tuple(range(8, 16))


async def test_boards_are_sockets(desk):
    desk.says["slurmd"] = SLURMD.replace("Boards=1", "Boards=2").replace("CPUs=16", "CPUs=32")
    found = await desk.read(Kept(cores=0))
    assert found.sockets == 2
    assert "are only counted" in found.unread[0]
    assert found.cores == 8  # as many as this process may use


@pytest.mark.parametrize(
    ("group", "path", "name", "limit", "left"),
    [
        ("0::/user.slice/a\n", "user.slice", "memory.max", 8192, 8192),
        ("0::/user.slice/a\n", "user.slice/a", "memory.max", 8192, 8192),
        ("5:memory:/docker/x\n", "memory", "memory.limit_in_bytes", 4096, 4096),
        ("5:memory:/x\n", "memory/x", "memory.limit_in_bytes", 4096, 4096),
        ("5:cpu:/x\n", "memory/x", "memory.limit_in_bytes", 4096, 64000),
        ("0::/a\n", "a", "memory.max", 2**30, 64000),
    ],
)
async def test_the_limit_of_a_control_group_or_of_one_above_it_counts(desk, group, path, name, limit, left):
    desk.write("proc/self/cgroup", group)
    desk.write(f"sys/fs/cgroup/{path}/{name}", f"{limit * 2**20}\n")
    assert (await desk.read(Kept(memory=0))).memory == left
    desk.write(f"sys/fs/cgroup/{path}/{name}", "max\n")
    assert (await desk.read(Kept(memory=0))).memory == 64000


@pytest.mark.parametrize(
    ("group", "files", "cores"),
    [
        ("0::/a\n", {"a/cpu.max": "400000 100000\n"}, 2),
        ("0::/a\n", {"a/cpu.max": "max 100000\n"}, 8),
        ("0::/a\n", {"a/cpu.max": "50000 100000\n"}, 1),
        ("4:cpu,cpuacct:/\n", {"cpu/cpu.cfs_quota_us": "600000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
        ("4:cpu,cpuacct:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, 8),
    ],
)
async def test_a_quota_of_processor_time_counts_in_whole_cores(desk, group, files, cores):
    desk.write("proc/self/cgroup", group)
    for path, text in files.items():
        desk.write(f"sys/fs/cgroup/{path}", text)
    assert (await desk.read(Kept(cores=0))).cores == cores


@pytest.mark.parametrize(
    "text", ["", "slurmd: error\n", SLURMD.replace("RealMemory=64000", ""), SLURMD.replace("CPUs=16", "CPUs=0")]
)
async def test_a_slurmd_that_does_not_tell_is_an_error(desk, text):
    desk.says["slurmd"] = text
    with pytest.raises(InputError, match="does not tell"):
        await desk.read()


# --- NVIDIA ------------------------------------------------------------------------------------------------------


async def test_gpus_are_named_by_the_number_of_their_device_file_not_by_their_place(desk):
    desk.nvidia("65:00.0", "0", uuid="GPU-b")
    desk.nvidia("17:00.0", "1", "NVIDIA A100-SXM4-80GB", uuid="GPU-a")
    desk.smi(
        smi_gpu("17:00.0", "1", "NVIDIA A100-SXM4-80GB", memory="81920 MiB", mig="Disabled", uuid="GPU-a"),
        smi_gpu("65:00.0", "0", uuid="GPU-b"),
    )
    found = await desk.read()
    assert found.gpus == (
        MachineGpu("rtx_4090", "/dev/nvidia0", "NVIDIA GeForce RTX 4090", 24564 * 2**20, "GPU-b"),
        MachineGpu("a100_sxm4_80gb", "/dev/nvidia1", "NVIDIA A100-SXM4-80GB", 81920 * 2**20, "GPU-a"),
    )
    assert found.types == {"rtx_4090": 1, "a100_sxm4_80gb": 1}
    assert found.unread == ()


async def test_without_nvidia_smi_the_driver_tells_the_rest_and_memory_is_not_guessed(desk):
    desk.nvidia("01:00.0", "0")
    (gpu,) = (await desk.read()).gpus
    assert (gpu.file, gpu.memory_bytes) == ("/dev/nvidia0", None)
    assert "memory of the NVIDIA GPUs is not known" in (await desk.read()).unread[0]


async def test_where_the_driver_shows_no_folder_nvidia_smi_tells_the_number(desk):
    desk.smi(smi_gpu("01:00.0", "3"))
    desk.devices.add("dev/nvidia3")
    assert [gpu.file for gpu in (await desk.read()).gpus] == ["/dev/nvidia3"]


@pytest.mark.parametrize("text", ["<nvidia_smi_log><gpu", "NVIDIA-SMI has failed", SMI.format(count=0, gpus="")])
async def test_an_nvidia_smi_that_says_nothing_readable_offers_nothing(desk, text):
    desk.says["nvidia-smi"] = text
    assert (await desk.read()).gpus == ()


async def test_what_cannot_be_offered_is_told_each_with_its_reason(desk):
    desk.smi(
        smi_gpu("01:00.0", "0"), smi_gpu("02:00.0", "N/A"), smi_gpu("03:00.0", "2", mig="Enabled"), smi_gpu("04:00.0", "3"),
    )  # fmt: skip
    desk.devices |= {"dev/nvidia2", "dev/nvidia3"}
    found = await desk.read()
    assert [gpu.file for gpu in found.gpus] == ["/dev/nvidia3"]
    said = "\n".join(found.unread)
    assert "01:00.0: /dev/nvidia0 is no device file" in said
    assert "02:00.0: the driver does not tell the number" in said
    assert "03:00.0 is divided (MIG)" in said
    assert len(found.unread) == 3


async def test_a_memory_that_nvidia_smi_does_not_tell_is_not_known(desk):
    desk.nvidia("01:00.0", "0")
    desk.smi(smi_gpu("01:00.0", "0", memory="[N/A]"))
    assert [gpu.memory_bytes for gpu in (await desk.read()).gpus] == [None]


@pytest.mark.parametrize(
    ("model", "kind"),
    [
        ("NVIDIA GeForce RTX 4090", "rtx_4090"), ("Tesla T4", "t4"), ("NVIDIA H100 PCIe", "h100_pcie"),
        ("AMD Instinct MI300X", "mi300x"), ("Radeon RX 7900 XTX", "rx_7900_xtx"), ("NVIDIA 1080", "gpu_1080"), ("NVIDIA", "gpu"),
    ],
)  # fmt: skip
def test_the_type_is_the_model_in_letters_that_slurm_takes(model, kind):
    assert machine_facts.gpu_type(model) == kind


# --- AMD ---------------------------------------------------------------------------------------------------------


def amd(desk: Desk, bus: str = "0000:03:00.0", node: str = "renderD128", vendor: str = "0x1002") -> None:
    desk.write(f"sys/devices/pci/{bus}/vendor", f"{vendor}\n")
    (desk.root / f"sys/class/drm/{node}").mkdir(parents=True)
    (desk.root / f"sys/class/drm/{node}/device").symlink_to(desk.root / f"sys/devices/pci/{bus}")
    desk.devices.add(f"dev/dri/{node}")


@pytest.mark.parametrize("spelling", ["Card series", "Card Series"])
async def test_an_amd_gpu_is_its_render_node(desk, spelling):
    amd(desk)
    card = {spelling if name == "Card series" else name: value for name, value in ROCM["card0"].items()}
    desk.says["rocm-smi"] = json.dumps({"card0": card, "system": {}})
    found = await desk.read()
    assert found.gpus == (MachineGpu("rx_7900_xtx", "/dev/dri/renderD128", "Radeon RX 7900 XTX", 25753026560, "0x8a1"),)


@pytest.mark.parametrize("text", [None, "{", "[]", '{"card0": 1}'])
async def test_without_rocm_smi_amd_gpus_are_told_and_not_offered(desk, text):
    amd(desk)
    desk.says["rocm-smi"] = text
    found = await desk.read()
    assert found.gpus == ()
    assert found.unread == ("rocm-smi does not answer: 1 AMD GPUs are not offered",)


async def test_an_amd_gpu_without_a_render_node_is_told(desk):
    amd(desk, bus="0000:09:00.0")
    desk.says["rocm-smi"] = json.dumps(ROCM)
    assert "has no device file" in (await desk.read()).unread[0]
    desk.devices.clear()
    amd(desk, node="renderD129")
    desk.devices.clear()
    assert "/dev/dri/renderD129 is no device file" in (await desk.read()).unread[0]


async def test_the_graphics_of_others_are_no_gpus_of_amd(desk):
    amd(desk, vendor="0x8086")
    desk.says["rocm-smi"] = json.dumps({})
    assert (await desk.read()).unread == ()


async def test_gpus_that_the_caller_names_are_taken_as_they_are(desk):
    async def ask(argv):
        return desk.says.get(argv[0])

    named = [MachineGpu("a100", "/srv/nvidia0", "stands in")]
    found = await machine_facts.read(Sight(ask, desk.root, desk.affinity), Kept(), named)
    assert found.gpus == tuple(named)
