"""What is chosen for each layout of control groups, on a made-up file system."""

import os
from pathlib import Path

import pytest

from slurm_agent_tools.devcluster import cgroups
from slurm_agent_tools.devcluster.cgroups import Machine, Way
from slurm_agent_tools.devcluster.definition import Cluster, DevclusterError, MemoryLimits

V1 = ("freezer", "memory", "cpuacct", "cpuset")
TMPFS = "tmpfs /sys/fs/cgroup tmpfs rw,mode=755 0 0\n"
V2 = "cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n"


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    for folder in ("proc/self", "sys/fs/cgroup", "run"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text("0::/\n")
    mounts(tmp_path, "")
    return Machine(tmp_path, privileged=True)


def mounts(root: Path, text: str) -> None:
    (root / "proc/self/mounts").write_text(f"sysfs /sys sysfs rw 0 0\n{text}")


def version_1(machine: Machine, options: str = "rw", names: tuple[str, ...] = V1) -> None:
    for name in names:
        (machine.groups / name).mkdir()
    rows = [f"cgroup /sys/fs/cgroup/{name} cgroup {options},{name} 0 0\n" for name in names]
    mounts(machine.root, TMPFS + "".join(rows))


def version_2(machine: Machine, controllers: str = "cpuset cpu io memory pids", line: str = V2) -> None:
    mounts(machine.root, line)
    (machine.groups / "cgroup.controllers").write_text(f"{controllers}\n")
    (machine.groups / "cgroup.subtree_control").touch()


def systemd(machine: Machine, *, bus: bool = True) -> None:
    (machine.root / "run/systemd/system").mkdir(parents=True)
    if bus:
        (machine.root / "run/dbus").mkdir()
        (machine.root / "run/dbus/system_bus_socket").touch()


def chosen(machine: Machine) -> Way:
    return cgroups.ways(machine)[0][0]


def reason(machine: Machine) -> str:
    (way, why) = cgroups.ways(machine)[0]
    assert way is Way.POLLING
    return why


def test_version_1_is_taken_where_slurm_can_write_all_that_it_uses(machine):
    version_1(machine)

    assert [way for way, _ in cgroups.ways(machine)] == [Way.V1, Way.POLLING]


def test_hybrid_is_version_1(machine):
    version_1(machine)
    with (machine.root / "proc/self/mounts").open("a") as file:
        file.write("cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n")

    assert chosen(machine) is Way.V1


def test_a_hierarchy_with_two_controllers_is_found_by_its_link(machine):
    version_1(machine, names=("freezer", "memory", "cpu,cpuacct"))
    (machine.groups / "cpuacct").symlink_to("cpu,cpuacct")

    assert chosen(machine) is Way.V1


def test_version_1_that_is_read_only_is_not_taken_and_the_reason_names_it(machine):
    version_1(machine, "ro")

    assert "freezer, memory, cpuacct" in reason(machine)


@pytest.mark.parametrize("absent", ["freezer", "memory", "cpuacct"])
def test_version_1_without_one_of_them_is_not_taken(machine, absent):
    version_1(machine, names=tuple(name for name in V1 if name != absent))

    assert f"for {absent} are" in reason(machine)


def test_a_hierarchy_that_was_mounted_and_covered_again_does_not_count(machine):
    version_1(machine)
    with (machine.root / "proc/self/mounts").open("a") as file:
        file.write("tmpfs /sys/fs/cgroup/memory tmpfs ro 0 0\n")

    assert "for memory are" in reason(machine)


@pytest.mark.parametrize("line", [TMPFS, ""])
def test_a_bare_tmpfs_and_nothing_at_all_are_polled(machine, line):
    mounts(machine.root, line)

    assert [way for way, _ in cgroups.ways(machine)] == [Way.POLLING]


def test_a_machine_without_proc_is_polled(tmp_path):
    assert chosen(Machine(tmp_path, privileged=True)) is Way.POLLING


def test_version_2_under_systemd_is_asked_for_at_systemd(machine):
    version_2(machine)
    systemd(machine)

    assert [way for way, _ in cgroups.ways(machine)] == [Way.V2_BY_SYSTEMD, Way.POLLING]


def test_systemd_without_a_bus_cannot_be_asked(machine):
    version_2(machine)
    systemd(machine, bus=False)

    assert "no D-Bus" in reason(machine)


def test_version_2_without_systemd_is_made_by_hand(machine):
    version_2(machine)

    assert [way for way, _ in cgroups.ways(machine)] == [Way.V2_ALONE, Way.POLLING]


def test_version_2_that_is_read_only_is_polled(machine):
    version_2(machine, line=V2.replace(" rw", " ro"))

    assert "cannot be written" in reason(machine)


def test_version_2_without_the_memory_controller_is_polled(machine):
    version_2(machine, "hugetlb memory_other")

    assert "no memory controller" in reason(machine)


def test_version_2_on_a_machine_whose_controllers_version_1_holds_is_polled(machine):
    version_2(machine)
    (machine.root / "proc/self/cgroup").write_text("4:memory:/\n0::/\n")

    assert "version 1 holds" in reason(machine)


def test_an_ordinary_user_gets_polling_whatever_is_there(machine):
    version_1(machine)

    assert cgroups.ways(Machine(machine.root)) == [(Way.POLLING, "only root may make control groups for jobs")]


def test_polling_never_leaves_the_choice_of_a_plugin_to_slurm():
    assert cgroups.conf(Way.POLLING, (22, 5)) == "CgroupPlugin=cgroup/v1\n"
    assert cgroups.conf(Way.POLLING, (23, 11)) == "CgroupPlugin=cgroup/v1\n"
    assert cgroups.conf(Way.POLLING, (24, 5)) == cgroups.conf(Way.POLLING, (26, 5)) == "CgroupPlugin=disabled\n"


@pytest.mark.parametrize("version", [(22, 5), (26, 5)])
@pytest.mark.parametrize("way", [Way.V1, Way.V2_BY_SYSTEMD, Way.V2_ALONE])
def test_every_way_but_polling_limits_memory_and_nothing_else(way, version):
    lines = cgroups.conf(way, version).splitlines()

    assert f"CgroupPlugin={way.limits}" in lines
    assert [line for line in lines if line.startswith("Constrain") and line.endswith("=yes")] == [
        "ConstrainRAMSpace=yes"
    ]
    assert ("IgnoreSystemd=yes" in lines) == (way is Way.V2_ALONE)
    assert ("SystemdTimeout=10000" in lines) == (way is Way.V2_BY_SYSTEMD and version == (26, 5))


def test_without_systemd_the_slice_is_made_and_put_away(machine):
    version_2(machine)
    cgroups.make_ready(Way.V2_ALONE, machine)
    assert (machine.groups / "system.slice").is_dir()
    assert (machine.groups / "cgroup.subtree_control").read_text() in {"+memory", "+cpu", "+cpuset", "+pids"}

    cgroups.put_away(machine)
    assert not (machine.groups / "system.slice").exists()


def test_a_slice_that_is_in_use_or_systemds_own_stays(machine):
    version_2(machine)
    (machine.groups / "system.slice/other").mkdir(parents=True)
    cgroups.put_away(machine)
    assert (machine.groups / "system.slice/other").is_dir()

    (machine.groups / "system.slice/other").rmdir()
    systemd(machine)
    cgroups.put_away(machine)
    assert (machine.groups / "system.slice").is_dir()


def test_a_kernel_that_refuses_its_controllers_is_a_reason_to_poll(machine, monkeypatch):
    version_2(machine)

    def busy(*_: object, **__: object) -> int:
        raise OSError(16, os.strerror(16))

    monkeypatch.setattr(Path, "write_text", busy)
    with pytest.raises(DevclusterError, match="Device or resource busy"):
        cgroups.make_ready(Way.V2_ALONE, machine)
    assert not (machine.groups / "system.slice").exists()


def test_the_other_ways_need_no_preparation(machine):
    for way in (Way.V1, Way.V2_BY_SYSTEMD, Way.POLLING):
        cgroups.make_ready(way, machine)

    assert list(machine.groups.iterdir()) == []


def test_a_node_whose_jobs_get_no_memory_controller_is_not_taken_for_limited(machine):
    cluster = Cluster(Path("/srv/try"), 21000, "ada")
    for node in cluster.nodes:
        scope = machine.groups / f"system.slice/{node}_slurmstepd.scope"
        scope.mkdir(parents=True)
        (scope / "cgroup.subtree_control").write_text("cpu memory\n")
    cgroups.check(Way.V2_BY_SYSTEMD, cluster, machine)

    (scope / "cgroup.subtree_control").write_text("cpu\n")
    with pytest.raises(DevclusterError, match=node):
        cgroups.check(Way.V2_BY_SYSTEMD, cluster, machine)
    cgroups.check(Way.POLLING, cluster, machine)


def test_what_slurmd_left_is_found_in_both_versions(machine):
    (machine.groups / "memory/slurm_n1").mkdir(parents=True)
    (machine.groups / "memory/slurm_other").mkdir()
    (machine.groups / "system.slice/n2_slurmstepd.scope").mkdir(parents=True)

    found = {str(path.relative_to(machine.groups)) for path in cgroups.tops(["n1", "n2"], machine)}
    assert found == {"memory/slurm_n1", "system.slice/n2_slurmstepd.scope"}


def test_what_was_chosen_is_kept_and_told(tmp_path):
    cluster = Cluster(tmp_path, 21000, "ada")
    (tmp_path / "run").mkdir()
    assert cgroups.recorded(cluster) is None
    polled, enforced = MemoryLimits("polling", "nothing is mounted"), MemoryLimits("cgroup/v2", "it is there")
    cgroups.record(cluster, polled)

    assert cgroups.recorded(cluster) == polled
    assert cgroups.told(polled) == "polled every two seconds, because nothing is mounted"
    assert cgroups.told(enforced) == "enforced by the kernel (cgroup/v2): it is there"


def test_a_record_of_nonsense_is_no_record(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/memory.json").write_text("[]")

    assert cgroups.recorded(Cluster(tmp_path, 21000, "ada")) is None


def test_the_walls_of_version_1_are_those_whose_hierarchies_can_be_written(machine):
    version_1(machine, names=(*V1, "devices"))
    assert cgroups.walls(Way.V1, machine) == ("memory",)
    for name, wall in (("cpuset", "cores"), ("devices", "devices")):
        (machine.groups / name / "cgroup.procs").touch()
        assert wall in cgroups.walls(Way.V1, machine)
    assert cgroups.walls(Way.V1, machine) == cgroups.WALLS


def test_version_2_holds_devices_by_itself_and_cores_with_their_controller(machine):
    version_2(machine, "memory pids")
    assert cgroups.walls(Way.V2_BY_SYSTEMD, machine) == ("memory", "devices")
    version_2(machine)
    assert cgroups.walls(Way.V2_ALONE, machine) == ("memory", "cores", "devices")
    assert cgroups.walls(Way.POLLING, machine) == ()


def test_cgroup_conf_holds_the_walls_that_are_wanted():
    whole = cgroups.conf(Way.V1, (22, 5), cgroups.WALLS)
    assert {"ConstrainRAMSpace=yes", "ConstrainCores=yes", "ConstrainDevices=yes"} <= set(whole.splitlines())
    assert "ConstrainDevices=no" in cgroups.conf(Way.V1, (22, 5), ("memory", "cores"))


def test_walls_are_kept_with_what_was_chosen(tmp_path):
    cluster = Cluster(tmp_path, 16000, "ada")
    (tmp_path / "run").mkdir()
    cgroups.record(cluster, MemoryLimits("cgroup/v1", "it is there", ("memory", "devices")))
    assert cgroups.recorded(cluster) == MemoryLimits("cgroup/v1", "it is there", ("memory", "devices"))
