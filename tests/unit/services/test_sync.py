"""sync_files over a real SSH server in the test's own process: what goes there, what comes back, what never does."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.services.two_sides import Sides, two_sides
from tests.unit.transport.sshserver import Node

from slurm_agent_tools.backends import sync_transfer
from slurm_agent_tools.errors import ConfigError, InputError
from slurm_agent_tools.models.toolset_arguments import SyncFiles
from slurm_agent_tools.services.sync import LocalLook, look_ahead
from slurm_agent_tools.slurm.answer_cache import ConcurrentQuestion

KEY = "-----BEGIN OPENSSH " + "PRIVATE KEY-----\n" + ("b3BlbnNzaC1rZXktdjEAAAA" * 3 + "\n") * 4
HOSTILE = ["-rf", "two\nlines", "sp ace", "ünï", "$(touch x)", "'quo\"te", "a\\b", "--", "*", "deep/-n/\n"]


@pytest.fixture(params=["rsync", "sftp"])
async def sides(
    tmp_path: Path, node: Node, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Sides]:
    monkeypatch.setattr(sync_transfer, "_worth_rsync", lambda files: bool(files) and request.param == "rsync")
    async with two_sides(tmp_path, node) as made:
        yield made


# --- There --------------------------------------------------------------------------------------------------------


@pytest.mark.proves("sync-moves-what-differs")
async def test_tracked_files_go_there_and_then_only_what_changed(sides: Sides, request: pytest.FixtureRequest) -> None:
    names = [f"src/part{number % 3}/file{number}.py" for number in range(30)]
    for name in names:
        sides.write(name, name)
    sides.write("run.sh", "#!/bin/sh\n").chmod(0o755)
    sides.write("untracked.txt")
    sides.track("src", "run.sh")
    first = await sides.sync("push")
    assert (first.status, first.sent, first.unchanged, first.differs) == ("done", 31, 0, [])
    assert sides.files() == {name: name.encode() for name in names} | {"run.sh": b"#!/bin/sh\n"}
    assert os.access(sides.there / "run.sh", os.X_OK)
    assert not os.access(sides.there / names[0], os.X_OK)
    assert sides.told[-1][:2] == (first.bytes, first.bytes)
    assert any(name == "rsync" for *_, name in sides.told) is (request.node.callspec.params["sides"] == "rsync")

    sides.write(names[7], "changed")
    assert (await sides.sync("status")).differs == [names[7]]
    again = await sides.sync("push")
    assert (again.sent, again.unchanged, again.bytes) == (1, 30, 7)
    assert sides.files()[names[7]] == b"changed"
    assert (await sides.sync("status")).differs == []


@pytest.mark.parametrize(("age", "status", "sent"), [(0, "partial", 0), (60, "done", 1)])
async def test_what_was_looked_at_before_the_login_is_looked_at_again_unless_it_is_fresh(
    sides: Sides, age: float, status: str, sent: int
) -> None:
    sides.write("a", "early\n")
    sides.track()
    ask = SyncFiles(direction="push")

    async def early() -> LocalLook:
        found = await look_ahead(str(sides.here.resolve()), ask)
        sides.write("a", "later\n")  # while a person types a code
        return replace(found, at=found.at - age)

    reply = await sides.box.call("sync_files", ask, early=ConcurrentQuestion(early))
    assert (reply.status, reply.sent) == (status, sent)
    assert sides.files() in [{}, {"a": b"later\n"}]
    assert ("changed while it was read" in reply.summary) is (status == "partial")


async def test_a_file_that_became_executable_goes_there_again(sides: Sides) -> None:
    path = sides.write("run.sh", "#!/bin/sh\n")
    sides.track()
    await sides.sync("push")
    path.chmod(0o755)
    assert (await sides.sync("push")).sent == 1
    assert os.access(sides.there / "run.sh", os.X_OK)


@pytest.mark.proves("sync-stays-in-its-folders")
async def test_names_of_every_kind_arrive_as_they_are(sides: Sides) -> None:
    for number, name in enumerate(HOSTILE):
        sides.write(name, str(number))
    sides.track()
    assert (await sides.sync("push")).sent == len(HOSTILE)
    assert sides.files() == {name: str(number).encode() for number, name in enumerate(HOSTILE)}
    sides.write(HOSTILE[1], "changed")
    assert (await sides.sync("push")).sent == 1
    (sides.here / "--").unlink()
    assert (await sides.sync("push", delete=["--"])).deleted == ["--"]
    assert "--" not in sides.files()


async def test_a_dry_run_says_what_would_go_there_and_sends_nothing(sides: Sides) -> None:
    sides.write("a", "12345")
    sides.track()
    reply = await sides.sync("push", dry_run=True)
    assert (reply.status, reply.sent, reply.bytes, reply.differs) == ("done", 1, 5, ["a"])
    assert "nothing was" in reply.summary
    assert sides.files() == {}


async def test_the_rules_file_adds_patterns_and_leaves_names_out(sides: Sides) -> None:
    for name in ("train.py", "notes.txt", "data/vocab.txt", "data/raw/big.bin", "data/other.bin"):
        sides.write(name)
    sides.track("train.py", "notes.txt")
    sides.write(".slurm-agent-sync", "# what goes there too\n\ndata/*.txt\ndata/raw\n!notes.txt\n")
    await sides.sync("push")
    assert sorted(sides.files()) == ["data/raw/big.bin", "data/vocab.txt", "train.py"]
    reply = await sides.sync("push", paths=["data"])
    assert (reply.sent, reply.unchanged) == (0, 2)
    with pytest.raises(InputError, match="names nothing"):
        await sides.sync("push", paths=["data/other.bin"])


@pytest.mark.parametrize("line", ["/etc/passwd", "../other", "!a/../../b", "pull: /x"])
async def test_a_rules_file_that_leaves_the_project_is_an_error_with_its_line(sides: Sides, line: str) -> None:
    sides.write(".slurm-agent-sync", f"fine\n{line}\n")
    with pytest.raises(ConfigError, match="line 2"):
        await sides.sync("push")
    with pytest.raises(InputError, match="leaves the project"):
        await sides.sync("pull", paths=[line.removeprefix("!").removeprefix("pull: ")])


@pytest.mark.proves("sync-refuses-secrets")
@pytest.mark.parametrize(
    ("name", "text"),
    [(".env", "A=1"), ("conf/.env.production", "A=1"), ("id_ed25519", "x"), (".netrc", "x"), ("prod.env", "x"),
     ("notes.txt", KEY), ("big.txt", "x" * 9_000_000), (".aws/credentials", "x"), ("a/.ssh/backup", "x"),
     ("deploy.yaml", "token: gh" + "p_0123456789abcdefghijABCDEFGHIJ456789")],
)  # fmt: skip
async def test_a_secret_stops_all_of_it_and_is_named(sides: Sides, name: str, text: str) -> None:
    if name == "big.txt":
        text = KEY + text
    sides.write("train.py")
    sides.write(name, text)
    sides.track()
    for dry in (True, False):
        reply = await sides.sync("push", dry_run=dry)
        assert (reply.status, reply.blocker, reply.human_action_required) == ("blocked", "policy", False)
        assert [kept.path for kept in reply.kept] == [name]
        assert name in (reply.reason or "")
    assert sides.files() == {}
    sides.write(".slurm-agent-sync", f"!{name}\n")
    assert (await sides.sync("push")).status == "done"
    assert list(sides.files()) == ["train.py"]


@pytest.mark.parametrize("name", [".env.example", "id_ed25519.pub", "environment.yml", "key.py", "kube/config"])
async def test_what_only_sounds_like_a_secret_goes_there(sides: Sides, name: str) -> None:
    sides.write(name, 'if "-----BEGIN RSA ' + 'PRIVATE KEY-----" in text:\n    pass\n')
    sides.track()
    assert (await sides.sync("push")).sent == 1


@pytest.mark.proves("sync-stays-in-its-folders")
async def test_links_inside_go_there_as_links_and_those_that_leave_are_refused_by_name(sides: Sides) -> None:
    sides.write("runs/1/a", "one")
    (sides.here / "latest").symlink_to("runs/1")
    (sides.here / "runs/same").symlink_to("1/a")
    sides.track()
    assert (await sides.sync("push")).sent == 3
    assert str((sides.there / "latest").readlink()) == "runs/1"
    assert str((sides.there / "runs/same").readlink()) == "1/a"
    assert (await sides.sync("push")).unchanged == 3
    for name, leads in (("out", "../secret"), ("whole", str(sides.here / "runs")), ("runs/up", "../../x")):
        (sides.here / name).symlink_to(leads)
        sides.track()
        reply = await sides.sync("push")
        assert (reply.status, [kept.path for kept in reply.kept]) == ("blocked", [name])
        assert "leads out of the project" in (reply.reason or "")
        (sides.here / name).unlink()


@pytest.mark.proves("sync-stays-in-its-folders")
async def test_a_linked_folder_there_is_no_way_out_of_its_root(sides: Sides, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "old").write_text("old")
    (sides.there / "src").symlink_to(outside)
    sides.write("src/a.py")
    sides.track()
    reply = await sides.sync("push")
    assert reply.status == "blocked"
    assert "src is a link there" in (reply.reason or "")
    with pytest.raises(InputError, match="behind a link"):
        await sides.sync("push", paths=["src"], delete=["src/old"])
    assert [path.name for path in outside.iterdir()] == ["old"]


async def test_a_link_or_folder_in_the_place_of_a_file_there_is_no_trap(sides: Sides, tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("old")
    (sides.there / "a").symlink_to(outside)
    sides.write("a", "new")
    sides.track()
    assert (await sides.sync("push")).sent == 1  # the link is replaced, not written through
    assert (outside.read_text(), sides.files()["a"]) == ("old", b"new")
    (sides.there / "b").mkdir()
    sides.write("b")
    sides.track()
    assert "a folder has this name there" in str((await sides.sync("push")).reason)


async def test_a_pipe_there_is_never_opened(sides: Sides) -> None:
    os.mkfifo(sides.there / "a")
    sides.write("a")
    sides.track()
    reply = await sides.sync("push")
    assert (reply.status, [kept.path for kept in reply.kept]) == ("blocked", ["a"])
    assert "special file" in (reply.reason or "")


async def test_a_linked_folder_here_is_not_followed(sides: Sides, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    (sides.here / "data").symlink_to(outside)
    sides.write(".slurm-agent-sync", "data/**\nmore/*\n")
    sides.write("more/fine")
    await sides.sync("push")
    assert sorted(sides.files()) == ["more/fine"]


async def test_only_named_files_are_deleted_and_only_there(sides: Sides) -> None:
    for name in ("a", "b", "deep/c"):
        sides.write(name)
    sides.track()
    await sides.sync("push")
    for name in ("b", "deep/c"):
        (sides.here / name).unlink()
    assert (await sides.sync("status")).differs == ["b", "deep/c"]
    assert (await sides.sync("push")).differs == ["b", "deep/c"]
    assert sorted(sides.files()) == ["a", "b", "deep/c"]
    for wrong in ("a", "deep", "*", ".git/config", "../there/b", "."):
        with pytest.raises(InputError):
            await sides.sync("push", delete=[wrong])
    planned = await sides.sync("push", delete=["deep/c", "never"], dry_run=True)
    assert (planned.deleted, sorted(sides.files())) == (["deep/c"], ["a", "b", "deep/c"])
    reply = await sides.sync("push", delete=["deep/c", "never"])
    assert (reply.deleted, sorted(sides.files())) == (["deep/c"], ["a", "b"])
    assert reply.summary.endswith("Deleted there: deep/c. Was not there: never.")
    for other in ("pull", "status"):
        with pytest.raises(InputError, match="is for push"):
            await sides.sync(other, delete=["b"])


@pytest.mark.parametrize("direction", ["push", "pull"])
async def test_more_than_the_policy_allows_is_refused(sides: Sides, direction: str) -> None:
    sides.write("logs/a", b"x" * 600, there=direction == "pull")
    sides.write("logs/b", b"x" * 600, there=direction == "pull")
    if direction == "push":
        sides.track()
    sides.policy(sizes=sides.box.context.policy.policy.sizes.model_copy(update={"sync_bytes": 1000}))
    reply = await sides.sync(direction)
    assert (reply.status, reply.blocker) == ("blocked", "policy")
    assert "sizes.sync_bytes" in (reply.reason or "")
    assert (await sides.sync(direction, paths=["logs/a"])).status == "done"


async def test_without_git_only_what_the_rules_name_is_sent(sides: Sides) -> None:
    (sides.here / ".git").rename(sides.here / "gone")
    sides.write("a")
    with pytest.raises(InputError, match="git"):
        await sides.sync("push")
    sides.write(".slurm-agent-sync", "a\n")
    assert (await sides.sync("push")).sent == 1


async def test_a_cluster_that_shares_the_project_needs_no_sync(sides: Sides) -> None:
    sides.change(cluster="local")
    with pytest.raises(InputError, match="nothing is brought over"):
        await sides.sync("push")
