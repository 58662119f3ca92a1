import subprocess
from pathlib import Path

from slurm_agent_tools.devcluster import folders
from slurm_agent_tools.devcluster.definition import Cluster

NEWER = Cluster(Path("/srv/try"), 21000, "ada", Path("/opt/26.05/bin"))


def test_a_login_shell_finds_another_slurm_before_the_distributions(tmp_path):
    folders._profile(NEWER, tmp_path)

    words = ["bash", "--login", "-c", "echo $PATH"]
    shown = subprocess.run(words, env={"HOME": str(tmp_path)}, capture_output=True, text=True, timeout=30, check=True)
    assert shown.stdout.startswith("/opt/26.05/bin:")


def test_a_profile_that_a_person_wrote_or_linked_stays(tmp_path):
    (tmp_path / "mine").write_text("echo hello\n")
    (tmp_path / ".profile").symlink_to(tmp_path / "mine")
    folders._profile(NEWER, tmp_path)

    assert (tmp_path / "mine").read_text() == "echo hello\n"


def test_the_distributions_own_slurm_needs_no_profile(tmp_path):
    folders._profile(Cluster(Path("/srv/try"), 21000, "ada"), tmp_path)

    assert list(tmp_path.iterdir()) == []


async def test_whom_root_makes_users_for_is_said_and_that_the_reader_needs_neither(tmp_path, monkeypatch):
    async def add(*_: object) -> None:
        pass

    said: list[str] = []
    monkeypatch.setattr(folders, "is_root", lambda: True)
    monkeypatch.setattr(folders, "_exists", lambda _: False)
    monkeypatch.setattr(folders, "_add", add)
    monkeypatch.setattr(folders, "give", lambda *_: None)
    monkeypatch.setattr(folders, "readable_by", lambda *_: False)
    (tmp_path / "home").mkdir()
    await folders.people(Cluster(tmp_path, 21000, "researcher"), ("researcher", "labmate"), said.append)

    making, mind = said
    assert making.startswith("making researcher and labmate: ordinary users whom the demo and tests work as")
    assert "your own jobs need no other user" in making
    assert "the demo works as researcher" in mind


def test_devices_that_may_not_be_made_are_plain_files_and_are_made_again(tmp_path, monkeypatch):
    def refused(path, mode, device):
        if Path(path).exists():
            raise FileExistsError(path)
        raise PermissionError(path)

    cluster = Cluster(tmp_path, 21000, "ada")
    (tmp_path / "dev").mkdir()
    monkeypatch.setattr("slurm_agent_tools.devcluster.folders.os.mknod", refused)
    monkeypatch.setattr(Path, "is_char_device", lambda _: False)

    for _ in range(2):  # each way to limit memory writes the configuration anew
        assert folders._devices(cluster) == str(tmp_path / "dev" / "fakegpu")

    assert sorted(path.name for path in (tmp_path / "dev").iterdir()) == [f"fakegpu{number}" for number in range(8)]
