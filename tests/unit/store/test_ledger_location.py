"""The ledger on a network file system: the usual folder moves, a named one is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.store.ledger_location import Mount, choose, network, own_disk, parse_mounts

TABLE = r"""/dev/sda1 / ext4 rw,relatime 0 0
auto.home /home autofs rw,fd=6 0 0
login:/export/home /home nfs4 rw,vers=4.2 0 0
/dev/sdb1 /home/local xfs rw 0 0
mds@tcp:/scratch /scratch lustre rw,flock 0 0
//nas/group /mnt/my\040group cifs rw 0 0
ada@far: /mnt/far fuse.sshfs rw 0 0
/dev/sdc1 /mnt/stick fuseblk rw 0 0
overlay /merged fuse.fuse-overlayfs rw 0 0
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/", None),
        ("/homeless/ada", None),
        ("/home/ada/.local/state", "nfs4"),
        ("/home/local/ada", None),
        ("/home", "nfs4"),
        ("/scratch/ada", "lustre"),
        ("/mnt/my group/ada", "cifs"),
        ("/mnt/far/x", "fuse.sshfs"),
        ("/mnt/stick/x", None),
        ("/merged/home", None),
    ],
)
def test_the_innermost_and_last_mount_says_what_a_path_lies_on(path: str, kind: str | None):
    assert network(path, parse_mounts(TABLE)) == kind


def test_a_folder_on_a_local_disk_is_taken_as_it_is(tmp_path: Path):
    chosen = choose(tmp_path / "state", given=True)
    assert (chosen.folder, chosen.note) == (tmp_path / "state", None)


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o702])
def test_a_folder_that_everybody_can_write_is_refused(tmp_path: Path, mode: int):
    (tmp_path / "state").mkdir()
    (tmp_path / "state").chmod(mode)
    with pytest.raises(ConfigError, match="can be written by everybody"):
        choose(tmp_path / "state", given=True)
    (tmp_path / "state").chmod(0o775)
    assert choose(tmp_path / "state", given=True).folder == tmp_path / "state"


@pytest.mark.parametrize(("user", "owner", "taken"), [(7, 8, False), (7, 7, True), (7, 0, True), (0, 8, True)])
def test_a_folder_of_another_user_is_refused_but_for_root(
    tmp_path: Path, monkeypatch, user: int, owner: int, taken: bool
):
    monkeypatch.setattr(os, "getuid", lambda: user)
    monkeypatch.setattr(Path, "stat", lambda *_, **__: os.stat_result((0o40700, 0, 0, 2, owner, 0, 0, 0, 0, 0)))
    if taken:
        assert choose(tmp_path, given=False, mounts=()).folder == tmp_path
    else:
        with pytest.raises(ConfigError, match="belongs to another user"):
            choose(tmp_path, given=False, mounts=())


def test_without_a_mount_table_every_folder_is_taken(tmp_path: Path):
    assert choose(tmp_path, given=False, mounts=()).folder == tmp_path


def far(folder: Path) -> list[Mount]:
    return [Mount("/", "ext4"), Mount(str(folder), "nfs4")]


def test_a_named_folder_on_a_network_file_system_is_refused_with_what_to_do(tmp_path: Path):
    with pytest.raises(ConfigError, match=r"state_dir: .* lies on a network file system \(nfs4\)") as caught:
        choose(tmp_path / "state", given=True, mounts=far(tmp_path))
    assert "SLURM_AGENT_STATE_DIR" in caught.value.hint


def test_the_usual_folder_on_a_network_file_system_moves_to_a_private_local_one_and_says_so(tmp_path: Path):
    (tmp_path / "tmp").mkdir()
    home = tmp_path / "home"
    for _ in range(2):
        chosen = choose(home / "state", given=False, mounts=far(home), temporary=tmp_path / "tmp")
        assert chosen.folder.parent == tmp_path / "tmp"
        assert chosen.folder.stat().st_mode & 0o777 == 0o700
        assert chosen.note is not None
        assert str(home) in chosen.note
        assert "nfs4" in chosen.note


def test_where_everything_is_on_the_network_it_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match="network file system"):
        choose(tmp_path / "state", given=False, mounts=[Mount("/", "lustre")])


def test_the_lock_of_a_home_on_the_network_lies_on_this_machine(tmp_path: Path):
    (tmp_path / "tmp").mkdir()
    home, state = tmp_path / "home", tmp_path / "state"
    places = {"mounts": far(home), "temporary": tmp_path / "tmp"}
    lock = own_disk(home / "anchor", state, **places)
    assert lock == choose(home / "state", given=False, **places).folder
    assert lock.stat().st_mode & 0o777 == 0o700
    assert own_disk(state, tmp_path, **places) == state
    assert own_disk(home, state, mounts=[Mount("/", "lustre")]) == state


@pytest.mark.parametrize("kind", ["open", "link", "file"])
def test_a_folder_that_somebody_else_could_have_made_is_not_taken(tmp_path: Path, kind: str):
    (tmp_path / "tmp").mkdir()
    made = choose(tmp_path / "home", given=False, mounts=far(tmp_path / "home"), temporary=tmp_path / "tmp").folder
    if kind == "open":
        made.chmod(0o755)
    else:
        made.rmdir()
        made.symlink_to(tmp_path) if kind == "link" else made.touch()
    with pytest.raises(ConfigError, match=r"not a private folder|cannot be made"):
        choose(tmp_path / "home", given=False, mounts=far(tmp_path / "home"), temporary=tmp_path / "tmp")
