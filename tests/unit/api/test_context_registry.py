"""Which cluster a call means, and what still works when a cluster cannot be reached."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import anyio
import pytest
from tests.watchdog import SECONDS

from slurm_agent_tools.api.context_registry import OpenedContexts, chosen_cluster
from slurm_agent_tools.api.toolbox import Toolbox
from slurm_agent_tools.errors import ConfigError, InputError, SlurmUnreachable
from slurm_agent_tools.models.arguments import GetStatus, SubmitJob, ValidateConfig
from slurm_agent_tools.settings import ClusterSettings, Settings
from slurm_agent_tools.transport.base import LoginEnvironment, Stat
from slurm_agent_tools.transport.local import LocalFiles, LocalTransport

FAR = ClusterSettings(host="login.example.org", remote_root="work/project")


def settings(folder: Path, **clusters: ClusterSettings) -> Settings:
    (folder / "project").mkdir(exist_ok=True)
    return Settings(project_root=folder / "project", state_dir=folder / "state", clusters=clusters)


def test_without_clusters_a_call_means_this_machine(tmp_path: Path):
    assert chosen_cluster(settings(tmp_path), None) == "local"


def test_the_only_cluster_is_the_one_that_is_meant(tmp_path: Path):
    assert chosen_cluster(settings(tmp_path, far=FAR), None) == "far"


def test_of_several_the_one_of_the_settings_is_meant_or_none(tmp_path: Path):
    several = settings(tmp_path, far=FAR, near=ClusterSettings())
    assert chosen_cluster(several, None) is None
    assert chosen_cluster(several.model_copy(update={"cluster": "near"}), None) == "near"
    assert chosen_cluster(several.model_copy(update={"cluster": "near"}), "far") == "far"


def test_this_machine_can_always_be_named(tmp_path: Path):
    assert chosen_cluster(settings(tmp_path, far=FAR), "local") == "local"


async def test_a_cluster_that_is_not_configured_is_named_with_those_that_are(tmp_path: Path):
    registry = OpenedContexts(settings(tmp_path, far=FAR))
    with pytest.raises(InputError, match=r"cluster: .* is no cluster") as caught:
        await registry.at("fra")
    assert "far, local" in caught.value.hint
    await registry.close()


async def test_where_several_are_configured_a_call_that_names_none_is_told_which(tmp_path: Path):
    registry = OpenedContexts(settings(tmp_path, far=FAR, near=ClusterSettings()))
    with pytest.raises(InputError, match="several are configured") as caught:
        await registry.at(None)
    assert "far, local, near" in caught.value.hint
    await registry.close()


def test_a_usual_cluster_that_does_not_exist_is_an_error_at_once(tmp_path: Path):
    with pytest.raises(ConfigError, match="cluster"):
        OpenedContexts(settings(tmp_path, far=FAR).model_copy(update={"cluster": "fra"}))


def test_a_host_without_a_folder_there_is_refused():
    with pytest.raises(ValueError, match="remote_root"):
        ClusterSettings(host="login")


async def test_each_cluster_has_its_own_records_and_all_share_one_ledger(tmp_path: Path):
    conf = {name: ClusterSettings.model_validate({"slurm": {"conf": tmp_path / name}}) for name in ("one", "two")}
    registry = OpenedContexts(settings(tmp_path, **conf))
    one, two = await registry.at("one"), await registry.at("two")
    assert (one.owner.cluster, two.owner.cluster) == (str(tmp_path / "one"), str(tmp_path / "two"))
    assert one.store is two.store
    assert one.slurm is not two.slurm
    assert (await registry.at("one")).slurm is one.slurm
    await registry.close()


class Elsewhere(LocalTransport):
    """A place whose first `failures` looks find nobody, and that has a site policy when it answers."""

    def __init__(self, made: Settings, root: Path, failures: int) -> None:
        super().__init__(made, made.slurm)
        self.root, self.failures = root, failures

    @property
    def key(self) -> str:
        return "ssh:ada@login:22"

    async def login_environment(self) -> LoginEnvironment:
        if self.failures:
            self.failures -= 1
            raise SlurmUnreachable("login does not answer", hint="Look at the network.")
        return LoginEnvironment("ada", str(self.root), {"LANG": "C"})


@pytest.fixture
def far(tmp_path: Path) -> OpenedContexts:
    made = settings(tmp_path, far=FAR)
    (tmp_path / "there").mkdir()
    registry = OpenedContexts(made)
    registry._places["far"] = Elsewhere(made, tmp_path / "there", failures=1)
    return registry


@pytest.mark.proves("clusters-by-name")
async def test_while_a_cluster_is_away_the_rest_goes_on_and_it_is_tried_again(far: OpenedContexts):
    away = await far.at(None)
    with pytest.raises(SlurmUnreachable, match="login does not answer"):
        await away.slurm.queue()
    assert away.owner.cluster == "ssh:ada@login:22"
    back = await far.at(None)
    assert (back.slurm.user, back.there.root) == ("ada", str(far.place("far").root))
    assert back.here.root.endswith("/project")
    await far.close()


async def test_a_status_of_a_cluster_that_is_away_says_so_in_its_sections(far: OpenedContexts):
    tools = Toolbox(far)
    reply = await tools.call("get_status", GetStatus())
    assert reply.status == "partial"
    assert not reply.cluster.reachable
    assert "login does not answer" in reply.summary
    await tools.close()


async def test_a_submission_to_a_cluster_that_is_away_leaves_a_script_for_a_person(far: OpenedContexts, tmp_path: Path):
    (tmp_path / "project/job.sh").write_text("#!/bin/bash\n#SBATCH --mem=1G --gpus=1 --time=10\npython --version\n")
    tools = Toolbox(far)
    reply = await tools.call("submit_job", SubmitJob(script="job.sh"))
    assert (reply.status, reply.blocker) == ("blocked", "cluster_unreachable")
    (script,) = reply.artifacts
    assert (tmp_path / "project" / script).is_file()
    copy, send, look = reply.manual_commands
    assert copy.startswith("ssh login.example.org 'mkdir -p work/project/scripts/slurm/generated && cat > ")
    assert copy.endswith(f" < {script}")
    assert send.startswith("ssh login.example.org 'cd work/project && sbatch ")
    assert look == "ssh login.example.org 'squeue --me'"
    await tools.close()


async def test_a_cluster_that_is_slow_to_answer_holds_up_no_other(tmp_path: Path):
    made = settings(tmp_path, far=FAR, near=ClusterSettings())
    registry = OpenedContexts(made)
    waiting = anyio.Event()

    class Slow(Elsewhere):
        async def login_environment(self) -> LoginEnvironment:
            waiting.set()
            await anyio.sleep_forever()
            raise AssertionError

    registry._places["far"] = Slow(made, tmp_path, 0)
    async with anyio.create_task_group() as group:
        group.start_soon(registry.at, "far")
        await waiting.wait()
        with anyio.fail_after(SECONDS):
            assert (await registry.at("near")).cluster == "near"
        group.cancel_scope.cancel()
    await registry.close()


async def test_a_script_is_read_here_and_what_it_runs_where_it_runs(far: OpenedContexts, tmp_path: Path):
    await far.at(None)
    (tmp_path / "project/job.sh").write_text("#!/bin/bash\n#SBATCH --mem=1G --gpus=1 --time=10\npython train.py\n")
    (tmp_path / "there/train.py").write_text("import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'\n")
    reply = await Toolbox(far).call("validate_config", ValidateConfig(config_path="job.sh"))
    assert reply.status == "invalid"
    assert "cuda-visible-devices" in [error.path for error in reply.errors]
    await far.close()


async def test_a_script_that_is_only_on_the_cluster_is_read_there(far: OpenedContexts, tmp_path: Path):
    await far.at(None)
    (tmp_path / "there/job.sh").write_text("#!/bin/bash\n#SBATCH --mem=64G --gpus=1 --time=10\npython --version\n")
    reply = await Toolbox(far).call("validate_config", ValidateConfig(config_path="job.sh"))
    assert "memory-per-gpu" in [error.path for error in reply.errors]
    await far.close()


class Sited(LocalFiles):
    """The files of a login node: a folder as its /etc, which belongs to root or to whom `uids` and `modes` say."""

    def __init__(self, etc: Path) -> None:
        self.etc, self.uids, self.modes = etc, dict[str, int | None](), dict[str, int]()

    def _there(self, path: str) -> str:
        return str(self.etc) + path.removeprefix("/etc") if path.startswith("/etc/") else path

    async def stat(self, path: str) -> Stat | None:
        found = await super().stat(self._there(path))
        mode = self.modes.get(path, 0o644)
        return None if found is None else replace(found, uid=self.uids.get(path, 0), mode=mode)

    async def read(self, path: str, *, offset: int = 0, size: int | None = None) -> bytes | None:
        return await super().read(self._there(path), offset=offset, size=size)


@pytest.fixture
def sited(far: OpenedContexts, tmp_path: Path) -> Sited:
    (tmp_path / "etc/slurm-agent-tools").mkdir(parents=True)
    (tmp_path / "etc/slurm-agent-tools/policy.yaml").write_text(
        "name: lab\nversion: '7'\nlimits:\n  max_concurrent_jobs: 2\n"
    )
    place = far.place("far")
    place.files, place.failures = Sited(tmp_path / "etc"), 0
    return place.files


@pytest.mark.parametrize(
    ("path", "uid", "mode"),
    [
        ("/etc/slurm-agent-tools/policy.yaml", 1000, 0o644),
        ("/etc/slurm-agent-tools/policy.yaml", None, 0o644),
        ("/etc/slurm-agent-tools/policy.yaml", 0, 0o664),
        ("/etc/slurm-agent-tools", 1000, 0o755),
        ("/etc/slurm-agent-tools", 0, 0o757),
    ],
)
async def test_a_site_policy_elsewhere_must_be_roots_there(
    far: OpenedContexts, sited: Sited, path: str, uid: int | None, mode: int
):
    sited.uids[path], sited.modes[path] = uid, mode
    with pytest.raises(ConfigError, match="changed by others than root") as caught:
        await far.at(None)
    assert caught.value.value == "ssh:ada@login:22:/etc/slurm-agent-tools/policy.yaml"
    sited.uids, sited.modes = {}, {}
    assert (await far.at(None)).policy.policy.limits.max_concurrent_jobs == 2
    sited.uids[path], sited.modes[path] = uid, mode
    far._site_read["far"] -= 61
    with pytest.raises(ConfigError):
        await far.at(None)
    await far.close()


async def test_the_site_policy_of_a_cluster_decides_there(far: OpenedContexts, sited: Sited):
    site = sited.etc / "slurm-agent-tools/policy.yaml"
    context = await far.at(None)
    assert context.policy.policy.limits.max_concurrent_jobs == 2
    assert "ssh:ada@login:22:/etc/slurm-agent-tools/policy.yaml" in str(context.policy.layers)
    site.write_text(site.read_text().replace("max_concurrent_jobs: 2", "max_concurrent_jobs: 1"))
    assert (await far.at(None)).policy.policy.limits.max_concurrent_jobs == 2
    far._site_read["far"] -= 61
    assert (await far.at(None)).policy.policy.limits.max_concurrent_jobs == 1
    await far.close()
