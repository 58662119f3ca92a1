"""Where the records of each cluster lie, how it is reached, and what of its site's policy is kept."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.unit.api import test_context_registry
from tests.unit.api.test_context_registry import FAR, settings

from slurm_agent_tools.api.context_registry import (
    OpenedContexts,
    UnreachableTransport,
    chosen_cluster,
    ledger_folder,
    open_store,
    open_transport,
)
from slurm_agent_tools.errors import ConfigError, InputError, SlurmUnreachable
from slurm_agent_tools.settings import ClusterSettings, SlurmSettings
from slurm_agent_tools.transport.local import LocalTransport
from slurm_agent_tools.transport.ssh.remote import SshTransport

far = test_context_registry.far
sited = test_context_registry.sited


def test_a_cluster_with_a_host_is_reached_over_ssh_and_any_other_here(tmp_path: Path):
    made = settings(tmp_path, far=FAR, near=ClusterSettings())
    assert isinstance(open_transport(made, "far"), SshTransport)
    assert isinstance(open_transport(made, "near"), LocalTransport)
    assert isinstance(open_transport(made, "local"), LocalTransport)


def test_a_place_is_opened_once(tmp_path: Path):
    registry = OpenedContexts(settings(tmp_path, far=FAR))
    assert registry.place("far") is registry.place("far")
    assert registry.place("far") is not registry.place("local")


async def test_each_cluster_keeps_what_its_partitions_rest_on_in_a_file_of_its_own(tmp_path: Path):
    conf = {name: ClusterSettings.model_validate({"slurm": {"conf": tmp_path / name}}) for name in ("one", "two")}
    registry = OpenedContexts(settings(tmp_path, **conf))
    contexts = [await registry.at(name) for name in ("one", "two")]
    files = [context.slurm._backdrop._path for context in contexts]
    assert len(set(files)) == 2
    assert all(file.parent == contexts[0].store.folder for file in files)
    assert all(re.fullmatch(r"seen-[0-9a-f]{16}\.json", file.name) for file in files)
    await registry.close()


async def test_a_cluster_has_its_own_settings_of_slurm(tmp_path: Path):
    own = ClusterSettings(slurm=SlurmSettings(cache_seconds=3))
    registry = OpenedContexts(settings(tmp_path, one=own, two=ClusterSettings()))
    assert (await registry.at("one")).slurm.settings.cache_seconds == 3
    assert (await registry.at("local")).slurm.settings == registry.settings.slurm
    assert [(await registry.at(name)).cluster for name in ("one", "local")] == ["one", "local"]
    await registry.close()


def test_a_state_folder_that_was_given_is_the_one_that_is_used(tmp_path: Path):
    made = settings(tmp_path)
    assert ledger_folder(made).folder == made.state_dir
    store = open_store(made)
    assert store.folder == made.state_dir
    store.close()


def test_a_cluster_that_is_not_there_is_bad_input_of_a_call_and_a_bad_setting_of_a_project(tmp_path: Path):
    made = settings(tmp_path, far=FAR)
    with pytest.raises(InputError) as call:
        chosen_cluster(made, "fra")
    with pytest.raises(ConfigError) as setting:
        chosen_cluster(made.model_copy(update={"cluster": "fra"}), None)
    for caught in (call, setting):
        assert (caught.value.field, caught.value.value) == ("cluster", "fra")
        assert caught.value.hint.startswith("Known clusters: far, local. `local` is this machine's Slurm")


def test_a_workstation_that_was_never_brought_up_is_told_with_the_command_that_does_it(tmp_path: Path):
    with pytest.raises(InputError, match="never brought up") as caught:
        chosen_cluster(settings(tmp_path, far=FAR), "workstation")
    assert caught.value.hint.endswith("slurm-agent-tools workstation up")


async def test_a_cluster_that_cannot_be_reached_runs_nothing_and_has_the_files_that_are_here(tmp_path: Path):
    away = UnreachableTransport("key", SlurmUnreachable("login is away", hint="Look at it."), str(tmp_path))
    with pytest.raises(SlurmUnreachable) as caught:
        await away.runner.run(["squeue", "--me"])
    assert (caught.value.message, caught.value.hint) == ("squeue was not run: login is away", "Look at it.")
    environment = await away.login_environment()
    assert (environment.user, environment.root, environment.environ) == ("", str(tmp_path), {})
    (tmp_path / "a").write_text("x")
    assert await away.files.read(str(tmp_path / "a")) == b"x"


@pytest.mark.parametrize(("seconds", "limit"), [(0, 2), (61, 1)])
async def test_the_site_policy_of_a_cluster_is_read_again_after_a_minute(far, sited, seconds: int, limit: int):
    site = sited.etc / "slurm-agent-tools/policy.yaml"
    await far.at(None)
    site.write_text(site.read_text().replace("max_concurrent_jobs: 2", "max_concurrent_jobs: 1"))
    far._site_read["far"] -= seconds
    assert (await far.at(None)).policy.policy.limits.max_concurrent_jobs == limit
    assert far._contexts["far"].cluster == "far"
    await far.close()


async def test_a_cluster_that_goes_away_keeps_the_site_policy_that_was_read(
    far, sited, monkeypatch: pytest.MonkeyPatch
):
    before = await far.at(None)

    async def away(path: str) -> None:
        raise SlurmUnreachable("login is away")

    monkeypatch.setattr(sited, "stat", away)
    far._site_read["far"] -= 61
    again = await far.at(None)
    assert again.policy.policy.limits.max_concurrent_jobs == before.policy.policy.limits.max_concurrent_jobs == 2
    await far.close()
