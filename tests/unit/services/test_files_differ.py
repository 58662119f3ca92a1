"""A submission over SSH compares the script and the files that it runs on both sides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.services import contexts as registry
from tests.unit.services.fakes import fake_toolbox

from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.models.arguments import GetStatus, SubmitJob
from slurm_agent_tools.models.submission_answer import SubmitReply
from slurm_agent_tools.settings import ClusterSettings
from slurm_agent_tools.transport.base import Completed, LoginEnvironment
from slurm_agent_tools.transport.local import LocalFiles, LocalRunner

SCRIPT = "#!/bin/bash\n#SBATCH --partition=cpu\n#SBATCH --mem=200M\n#SBATCH --time=5\nbash steps.sh\npython train.py\n"
FILES = {"job.sh": SCRIPT, "steps.sh": "echo step\n", "train.py": "print(1)\n", "notes.txt": "mine\n"}

pytestmark = pytest.mark.proves("files-differ-is-refused")


class Place:
    """The fake Slurm, and the programs of this machine for files of another folder."""

    key = "ssh:alice@far:22"

    def __init__(self, slurm: FakeSlurm, programs: LocalRunner, root: Path) -> None:
        self.slurm, self.programs, self.files, self.runner, self.root = slurm, programs, LocalFiles(), self, str(root)
        self.asked: list[str] = []

    async def run(self, argv: Sequence[str], **more: Any) -> Completed:
        self.asked.append(argv[0])
        return await (self.programs if argv[0] == "xargs" else self.slurm).run(argv, **more)

    async def login_environment(self) -> LoginEnvironment:
        return LoginEnvironment(self.slurm.user, self.root, {})

    async def close(self) -> None:
        pass


@pytest.fixture
def there(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "there"
    folder.mkdir()
    return folder


@pytest.fixture
def tools(tmp_path: Path, there: Path) -> Iterator[registry.TestedToolbox]:
    slurm = FakeSlurm()
    box = fake_toolbox(tmp_path, slurm)
    slurm.place(there)
    far = ClusterSettings(host="far", remote_root=str(there))
    settings = box.context.settings.model_copy(update={"clusters": {"far": far}})
    place = Place(slurm, LocalRunner(settings), there)
    box.context.slurm._runner = place  # type: ignore[attr-defined]
    context = replace(
        box.context, settings=settings, cluster="far", transport=place,
        environment=LoginEnvironment(slurm.user, str(there), {}),
    )  # fmt: skip
    box.context, box.registry = context, registry.OneContext(context)
    for folder in (Path(context.project), there):
        for name, text in FILES.items():
            (folder / name).write_text(text)
    yield box
    box.context.store.close()


async def submitted(tools: registry.TestedToolbox, **more: Any) -> SubmitReply:
    await tools.call("get_status", GetStatus())
    reply = await tools.call("submit_job", SubmitJob(script="job.sh", **more))
    assert isinstance(reply, SubmitReply)
    return reply


async def test_a_job_whose_files_are_the_same_is_submitted_after_one_command_more(tools: registry.TestedToolbox):
    reply = await submitted(tools)
    assert reply.status == "submitted"
    place = tools.context.transport
    assert isinstance(place, Place)
    assert place.asked.count("xargs") == 1


@pytest.mark.parametrize("name", ["job.sh", "steps.sh", "train.py"])
@pytest.mark.parametrize("side", ["here", "there"])
async def test_one_changed_byte_on_either_side_is_refused_by_the_files_name(
    tools: registry.TestedToolbox, there: Path, name: str, side: str
):
    path = (Path(tools.context.project) if side == "here" else there) / name
    path.write_text(FILES[name].replace("\n", "\n\n", 1) if name == "job.sh" else FILES[name] + " ")
    for dry_run in (True, False):
        reply = await submitted(tools, dry_run=dry_run)
        assert (reply.status, reply.blocker, reply.human_action_required) == ("blocked", "policy", False)
        assert reply.decision is not None
        (rule,) = [rule for rule in reply.decision.rules if rule.id == "files-differ"]
        assert (rule.outcome, rule.message.split(" ")[0]) == ("deny", name)
        assert (rule.observed, rule.limit) == (1, 0)
        assert "Push first" in str(rule.remedy)
        assert "files-differ" in (reply.reason or "")
        assert reply.artifacts == []


async def test_a_file_that_is_not_there_yet_is_refused_but_the_script_is_sent_with_the_job(
    tools: registry.TestedToolbox, there: Path
):
    (there / "job.sh").unlink()
    assert (await submitted(tools)).status == "submitted"
    (there / "train.py").unlink()
    reply = await submitted(tools)
    assert reply.status == "blocked"
    assert "train.py is not the same" in (reply.reason or "")


async def test_files_that_the_job_does_not_run_and_those_that_are_only_there_count_for_nothing(
    tools: registry.TestedToolbox, there: Path
):
    (there / "notes.txt").write_text("theirs")
    for name in ("steps.sh", "train.py"):
        (Path(tools.context.project) / name).unlink()
    assert (await submitted(tools)).status == "submitted"


async def test_the_policy_makes_it_a_warning(tools: registry.TestedToolbox, there: Path):
    loaded = tools.context.policy
    policy = replace(loaded, policy=loaded.policy.model_copy(update={"files_differ": "warn"}))
    tools.context = replace(tools.context, policy=policy)
    tools.registry = registry.OneContext(tools.context)
    (there / "train.py").write_text("print(2)\n")
    reply = await submitted(tools)
    assert reply.status == "submitted"
    assert reply.decision is not None
    assert [rule.outcome for rule in reply.decision.rules if rule.id == "files-differ"] == ["warn"]


async def test_where_the_project_is_shared_nothing_is_compared(tools: registry.TestedToolbox):
    tools.context = replace(tools.context, cluster="local")
    tools.registry = registry.OneContext(tools.context)
    assert (await submitted(tools)).status == "submitted"
    place = tools.context.transport
    assert isinstance(place, Place)
    assert "xargs" not in place.asked
