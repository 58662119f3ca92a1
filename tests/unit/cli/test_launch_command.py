"""The command launch: a SkyPilot task starts after a person's yes to exactly it, its price and its end."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.unit.cli.person import Person

from slurm_agent_tools.cli import main
from slurm_agent_tools.cli.commands import approve_command, launch_command
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.store.ledger import Store

TASK: dict[str, Any] = {
    "name": "train-a1b2c3",
    "workdir": ".",
    "num_nodes": 2,
    "resources": {
        "infra": "aws/us-east-1",
        "accelerators": "A100:1",
        "cpus": "8+",
        "memory": "16+",
        "use_spot": False,
        "max_hourly_cost": 4.5,
        "autostop": {"idle_minutes": 10, "down": True, "wait_for": "jobs"},
    },
    "run": "timeout --kill-after=60 7200 bash -euo pipefail -c '\npython train.py\n'\n",
}

SKY = """#!/bin/sh
# Stands in for SkyPilot: notes what it was called with, and answers as it was told.
echo "$@" >> {folder}/calls
for last; do :; done
cat "$last" >> {folder}/read
cat {folder}/says
exit "$(cat {folder}/code)"
"""


class Sky:
    """A program `sky` on the PATH that only records."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        folder.mkdir()
        (folder / "sky").write_text(SKY.format(folder=folder))
        (folder / "sky").chmod(0o755)
        self.answers("A100:1  2x  $4.10", 0)
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")

    def answers(self, says: str, code: int) -> None:
        (self.folder / "says").write_text(says)
        (self.folder / "code").write_text(str(code))

    @property
    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return [line.rpartition(" ")[0] for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def sky(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Sky:
    return Sky(tmp_path_factory.mktemp("programs") / "bin", monkeypatch)


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Iterator[Person]:
    made, real = Person(monkeypatch), os.open
    monkeypatch.setattr(
        os, "open", lambda path, *more, **names: real(made.name if path == "/dev/tty" else path, *more, **names)
    )
    yield made
    made.leaves()


class Registry:
    """What each command opens: this context, with a ledger of its own, as every process has one."""

    def __init__(self, context: ClusterContext) -> None:
        self.context = context

    async def at(self, cluster: str | None) -> ClusterContext:
        self.context = replace(self.context, store=Store(self.context.settings.state_dir, clock=self.context.clock))
        return await self.context.current()

    async def close(self) -> None:
        self.context.store.close()


def opens(context: ClusterContext, monkeypatch: pytest.MonkeyPatch, **policy: Any) -> None:
    changed = context.policy.policy.model_copy(update=policy)
    made = replace(context, policy=replace(context.policy, policy=changed))
    for command in (launch_command, approve_command):
        monkeypatch.setattr(command, "OpenedContexts", lambda _: Registry(made))


@pytest.fixture(autouse=True)
def _opened(context: ClusterContext, monkeypatch: pytest.MonkeyPatch) -> None:
    opens(context, monkeypatch)


def written(context: ClusterContext, *, resources: dict[str, Any] | None = None, **more: Any) -> str:
    task = TASK | more | {"resources": TASK["resources"] | (resources or {})}
    task["resources"] = {key: value for key, value in task["resources"].items() if value is not None}
    task = {key: value for key, value in task.items() if value is not None}
    Path(context.project, "train.yaml").write_text(yaml.safe_dump(task, sort_keys=False))
    return "train.yaml"


def launched(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = main.main(["launch", "train.yaml", "--json", *words])
    return code, json.loads(capsys.readouterr().out)


def approve(context: ClusterContext, name: str) -> None:
    """As `approve` writes a yes at a terminal down."""
    store = Store(context.settings.state_dir)
    item = store.approvals.find(context.owner, name)
    assert item is not None
    assert store.approvals.grant(item, granted=context.clock.now(), granted_by="alice", channel="terminal")
    store.close()


@pytest.mark.proves("launch-needs-a-person")
def test_a_task_is_started_once_after_a_persons_yes_and_asks_again_afterwards(context, sky, capsys):
    written(context)
    code, answer = launched(capsys)
    assert (code, answer["status"], answer["blocker"]) == (3, "blocked", "approval")
    assert (answer["price_per_hour"], answer["price_at_most"], answer["autostop_minutes"]) == (9.0, 19.5, 10)
    asked = answer["approval_id"]
    assert answer["manual_commands"] == [f"slurm-agent-tools approve {asked}", "slurm-agent-tools launch train.yaml"]
    assert sky.calls == ["launch --dryrun -y -c train-a1b2c3"]

    approve(context, asked)
    code, answer = launched(capsys)
    assert (code, answer["status"]) == (0, "launched")
    assert "9.00 USD an hour" in answer["summary"]
    assert sky.calls[1:] == ["launch --dryrun -y -c train-a1b2c3", "launch -y --detach-run -c train-a1b2c3"]
    assert (sky.folder / "read").read_text() == 3 * Path(context.project, "train.yaml").read_text()

    code, answer = launched(capsys)
    assert (code, answer["blocker"]) == (3, "approval")
    assert answer["approval_id"] != asked
    assert len(sky.calls) == 4


def test_the_question_shows_price_end_and_every_line(context, sky, capsys):
    written(context)
    _, answer = launched(capsys)
    assert main.main(["approve", answer["approval_id"], "--show"]) == 0

    shown = capsys.readouterr().out.replace("\n      + ", "")
    for told in (
        "price per hour: at most 9.00 USD: 2 machines at up to 4.5 USD",
        "price in all: at most about 19.50 USD: 1 x 02:00:00",
        "autostop: 10 idle minutes",
        "time limit: 02:00:00",
        "where: aws/us-east-1",
        "GPUs of each machine: 1 A100",
        "task: train.yaml",
        "starts: sky launch -c train-a1b2c3",
        "max_hourly_cost: 4.5",
    ):
        assert told in shown
    assert "asked by: slurm-agent-tools launch" in shown


def test_a_person_at_the_terminal_says_yes_there_and_it_starts(context, sky, person, capsys):
    written(context)
    person.types("yes")
    assert main.main(["launch", "train.yaml"]) == 0

    assert sky.calls[-1] == "launch -y --detach-run -c train-a1b2c3"
    assert "at most 9.00 USD" in person.sees()
    assert "$4.10" in capsys.readouterr().err, "what sky estimates is there before the question"


def test_a_no_at_the_terminal_starts_nothing(context, sky, person):
    written(context)
    person.types("no")

    assert main.main(["launch", "train.yaml"]) == 3
    assert sky.calls == ["launch --dryrun -y -c train-a1b2c3"]


def test_a_declined_task_is_not_asked_about_again(context, sky, person, capsys):
    written(context)
    _, answer = launched(capsys)
    person.types("no")
    assert main.main(["approve", answer["approval_id"], "--decline"]) == 0
    capsys.readouterr()

    code, answer = launched(capsys)
    assert (code, answer["blocker"]) == (3, "approval")
    assert "declined" in answer["reason"]
    assert "approval_id" not in answer or answer["approval_id"] is None


@pytest.mark.parametrize("change", ["price", "run", "file"])
def test_a_yes_does_not_count_for_a_task_that_changed_meanwhile(context, sky, capsys, change):
    program = Path(context.project, "train.py")
    program.write_text("print(1)\n")
    written(context)
    _, answer = launched(capsys)
    approve(context, answer["approval_id"])
    if change == "price":
        written(context, resources={"max_hourly_cost": 4.6})
    elif change == "run":
        written(context, run=TASK["run"].replace("train.py", "train.py --lr 3"))
    else:
        program.write_text("print(2)\n")

    code, again = launched(capsys)
    assert (code, again["blocker"]) == (3, "approval")
    assert again["approval_id"] != answer["approval_id"]
    with_old = main.main(["approve", answer["approval_id"]])
    assert with_old == 2
    assert "is not what would run now" in capsys.readouterr().err


def test_where_the_policy_counts_no_terminal_a_yes_there_is_none(context, sky, capsys, monkeypatch):
    written(context)
    _, answer = launched(capsys)
    approve(context, answer["approval_id"])
    opens(context, monkeypatch, approval_channels=("signed",))
    code, answer = launched(capsys)
    assert (code, answer["status"]) == (3, "blocked")
    assert "--sign KEY" in answer["manual_commands"][0]


def test_without_sky_the_answer_says_how_to_get_it(context, monkeypatch, capsys):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    written(context)
    code, answer = launched(capsys)

    assert (code, answer["blocker"], answer["human_action_required"]) == (3, "tool_unavailable", True)
    assert "pip install skypilot" in answer["reason"]


def test_without_credentials_the_answer_holds_skys_own_words(context, sky, capsys):
    sky.answers("No cloud access is set up. Run: sky check\x1b[2J", 1)
    written(context)
    code, answer = launched(capsys)

    assert (code, answer["blocker"]) == (3, "tool_unavailable")
    assert "No cloud access is set up" in answer["reason"]
    assert "\x1b" not in answer["reason"]
    assert "sky check" in answer["manual_commands"]


def test_a_sky_that_cannot_be_started_is_no_machine_and_no_trace_of_the_task_is_left(context, sky, capsys):
    written(context)
    _, asked = launched(capsys)
    assert [*(Path(context.settings.state_dir) / "launches").iterdir()] == []
    broken = "#!/nowhere/python\n"
    approve(context, asked["approval_id"])
    (sky.folder / "sky").write_text('#!/bin/sh\nrm "$0"\nprintf "#!/nowhere/python\\n" > "$0"\nchmod +x "$0"\n')
    code, answer = launched(capsys)
    assert (code, "Nothing was started" in answer["error"]["message"]) == (1, True)
    (sky.folder / "sky").write_text(broken)
    code, answer = launched(capsys)
    assert (code, answer["blocker"]) == (3, "tool_unavailable")
    assert "cannot be started" in answer["reason"]


def test_a_launch_that_fails_is_an_error_that_says_how_to_look(context, sky, capsys):
    written(context)
    _, answer = launched(capsys)
    approve(context, answer["approval_id"])
    (sky.folder / "sky").write_text("#!/bin/sh\ncase $2 in --dryrun) exit 0;; esac\necho broke; exit 7\n")
    code, answer = launched(capsys)

    assert code == 1
    assert "ended with 7: broke" in answer["error"]["message"]
    assert "sky down train-a1b2c3" in answer["error"]["hint"]


def test_a_dry_run_asks_nobody_and_starts_nothing(context, sky, capsys):
    written(context)
    code, answer = launched(capsys, "--dry-run")

    assert (code, answer["status"], answer["output"]) == (0, "dry_run", "A100:1  2x  $4.10")
    assert sky.calls == ["launch --dryrun -y -c train-a1b2c3"]


@pytest.mark.proves("exports-are-judged")
@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"resources": {"memory": "20+"}}, "memory-per-gpu"),
        ({"resources": {"accelerators": "A100:3", "memory": "24+"}}, "gpus"),
        ({"run": "timeout 30h python train.py"}, "time-limit"),
        ({"run": "timeout 1h bash -c 'until python train.py; do sleep 1; done'"}, "auto-retry"),
        ({"run": "timeout 1h env CUDA_VISIBLE_DEVICES=0 python train.py"}, "cuda-visible-devices"),
        ({"envs": {"CUDA_VISIBLE_DEVICES": "0"}}, "cuda-visible-devices"),
        ({"run": "timeout 1h sky launch -y other.yaml"}, "direct-submission"),
        ({"run": "timeout 1h sbatch other.sh"}, "direct-submission"),
        ({"run": "timeout 1h python train.py --gpus 0,1"}, "device-index"),
    ],
)
def test_what_the_policy_refuses_on_slurm_is_not_launched(context, sky, capsys, change, rule):
    written(context, **change)
    code, answer = launched(capsys)

    assert (code, answer["blocker"]) == (3, "policy"), answer
    spoken = [one["id"] for one in answer["decision"]["rules"] if one["outcome"] in {"deny", "justify"}]
    assert rule in spoken
    assert sky.calls == []


def test_a_reason_counts_and_is_part_of_what_is_approved(context, sky, capsys):
    written(context, resources={"memory": "20+"})
    _, answer = launched(capsys, "--justification", "the model needs 19 GB of host memory")
    assert answer["blocker"] == "approval"
    main.main(["approve", answer["approval_id"], "--show"])

    assert "reason given: the model needs 19 GB" in capsys.readouterr().out


def test_nothing_starts_while_submissions_are_switched_off(context, sky, capsys, monkeypatch):
    opens(context, monkeypatch, submissions="off")
    written(context)
    code, answer = launched(capsys)
    assert (code, answer["blocker"]) == (3, "policy")
    assert "switched all submissions off" in answer["reason"]


def test_what_the_policy_wants_a_person_for_stands_in_the_question(context, sky, capsys):
    written(context, resources={"accelerators": "A100:8", "memory": "96+"})
    _, answer = launched(capsys)
    assert answer["blocker"] == "approval"
    main.main(["approve", answer["approval_id"], "--show"])

    assert "\n  gpus: " in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "- 1\n", "a: [", "a: 1\n---\nb: 2\n", "\xff"])
def test_a_file_that_is_no_task_is_an_error(context, sky, capsys, text):
    Path(context.project, "train.yaml").write_bytes(text.encode("latin-1"))

    assert launched(capsys)[0] == 2


def test_a_yes_to_a_task_is_none_to_a_submission_and_the_other_way_round(context, sky, capsys):
    written(context)
    _, answer = launched(capsys)
    approve(context, answer["approval_id"])
    store = Store(context.settings.state_dir, clock=context.clock)
    (item,) = store.approvals.open(context.owner)
    assert json.loads(item.request or "") == {"task": "train.yaml", "justification": None}
    store.approvals.update(item, request=json.dumps({"script": "train.yaml"}))
    store.close()

    assert main.main(["approve", answer["approval_id"]]) == 2, "it does not show what a submission would run"
    assert "does not start with #!" in capsys.readouterr().err
