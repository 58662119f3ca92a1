import os
import socket
from pathlib import Path

import pytest

from slurm_agent_tools.devcluster import definition
from slurm_agent_tools.devcluster.definition import Cluster, DevclusterError
from slurm_agent_tools.devcluster.machine_facts import MachineGpu, MachineNode
from slurm_agent_tools.errors import InputError, StorageError


def test_nodes_of_different_base_ports_have_different_names():
    bases = [*range(17000, 31001, 1000), 17001, 17500, 24100]
    names = [name for base in bases for name in Cluster(Path("/x"), base, "ada").nodes]

    assert len(set(names)) == 5 * len(bases)


def test_each_node_has_a_port_of_the_block():
    assert sorted(Cluster(Path("/x"), 21000, "ada").nodes.values()) == [21101, 21102, 21103, 21104, 21105]


def test_the_project_lies_in_the_users_home_whoever_asks():
    assert Cluster(Path("/x"), 21000, "ada").project == Path("/x/home/ada/project")


def test_a_saved_cluster_is_found_again_in_its_folder(tmp_path):
    made = Cluster(tmp_path, 21000, "ada")
    definition.save(made)

    assert definition.recorded(tmp_path) == made
    assert definition.recorded(tmp_path / "other") is None


@pytest.mark.parametrize("text", ["", "[]", '{"base_port": 1}', '{"base_port": "x", "user": "ada"}'])
def test_a_garbled_record_is_an_error_that_names_it(tmp_path, text):
    (tmp_path / "cluster.json").write_text(text)

    with pytest.raises(StorageError, match=r"cluster\.json"):
        definition.recorded(tmp_path)


@pytest.mark.parametrize(
    ("path", "words"), [("/tmp/" + "x" * 90, "too long"), ("/tmp/a b", "letters"), ("/tmp/a#", "letters")]
)
def test_a_folder_that_sockets_or_slurm_conf_cannot_hold_is_refused(path, words):
    with pytest.raises(InputError, match=words):
        definition.checked(Path(path))


def test_the_folder_is_the_one_of_the_environment(monkeypatch):
    monkeypatch.setenv("SLURM_AGENT_DEVCLUSTER", "/tmp/mine")

    assert definition.checked(None) == Path("/tmp/mine")


def test_an_ordinary_user_runs_everything_as_itself(monkeypatch):
    monkeypatch.setattr(definition, "is_root", lambda: False)

    assert Cluster(Path("/x"), 21000, "ada").as_user(("sbatch", "a b")) == ["sbatch", "a b"]


def test_root_runs_commands_as_the_user_with_its_groups(monkeypatch):
    monkeypatch.setattr(definition, "is_root", lambda: True)

    assert definition.run_as("nobody", ["squeue"])[:3] == ["setpriv", "--reuid", "nobody"]
    assert definition.run_as("nobody", ["squeue"])[-2:] == ["--init-groups", "squeue"]
    assert definition.run_as("root", ["squeue"]) == ["squeue"]


def test_two_clusters_that_come_up_at_once_take_different_ports():
    with definition.ports(None, None) as first, definition.ports(None, first) as second:
        assert first != second


def test_an_earlier_base_port_is_taken_again():
    with definition.ports(None, None) as free:
        pass
    with definition.ports(None, free) as again:
        assert again == free


def test_a_wanted_block_with_a_port_that_is_taken_is_an_error():
    with definition.ports(None, None) as base:
        pass
    with socket.create_server(("127.0.0.1", base + 102)):
        with pytest.raises(DevclusterError, match=str(base)), definition.ports(base, None):
            pass
        with definition.ports(None, base) as other:
            assert other != base


@pytest.mark.parametrize("wanted", [0, 80, 65000])
def test_a_base_port_out_of_range_is_refused(wanted):
    with pytest.raises(InputError, match="base_port"), definition.ports(wanted, None):
        pass


def test_readable_means_every_folder_above_can_be_entered(tmp_path):
    closed = tmp_path / "closed"
    closed.mkdir()
    file = closed / "file"
    file.touch(0o644)
    me = definition.me()

    closed.chmod(0o700)
    assert definition.readable_by(me, file)
    if os.geteuid() == 0:
        assert not definition.readable_by("nobody", file)
        assert not definition.readable_by("who-is-not-there-yet", file)
    assert definition.readable_by("who-is-not-there-yet", Path("/"))
    closed.chmod(0o000)
    assert not definition.readable_by(me, closed)
    closed.chmod(0o700)


def test_a_cluster_of_another_slurm_puts_its_programs_first(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    made = Cluster(tmp_path, 21000, "ada", Path("/opt/24.11/bin"))
    definition.save(made)

    assert definition.recorded(tmp_path) == made
    assert made.environment()["PATH"] == "/opt/24.11/bin:/usr/bin:/bin"
    assert made.search.startswith("/opt/24.11/bin:/usr/sbin:")
    assert "PATH" not in Cluster(tmp_path, 21000, "ada").environment()


def test_a_record_from_before_other_versions_is_read(tmp_path):
    (tmp_path / "cluster.json").write_text('{"folder": "/x", "base_port": 21000, "user": "ada"}')

    assert definition.recorded(tmp_path) == Cluster(tmp_path, 21000, "ada")


def test_a_saved_workstation_is_found_again_with_all_that_the_machine_has(tmp_path):
    gpus = (MachineGpu("a100", "/dev/nvidia0", "NVIDIA A100", 2**30, "GPU-1"), MachineGpu("t4", "/dev/nvidia1", "T4"))
    machine = MachineNode(16, 1, 8, 2, 57600, 6400, (14, 15), gpus, ("something could not be read",))
    made = Cluster(tmp_path, 16000, "ada", machine=machine)
    definition.save(made)
    assert definition.recorded(tmp_path) == made
    assert (made.name, Cluster(tmp_path, 17000, "ada").name) == ("workstation", "devcluster")


def test_workstations_and_devclusters_take_different_ports():
    with definition.ports(None, None, definition.OF_WORKSTATIONS) as base:
        assert base in definition.OF_WORKSTATIONS
    with definition.ports(None, None) as other:
        assert other not in definition.OF_WORKSTATIONS
