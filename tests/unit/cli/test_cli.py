"""The command line over a toolbox that only records: words, documents and exit codes."""

import json
import runpy
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from slurm_agent_tools.api import brief, catalogue, serialize
from slurm_agent_tools.cli import main
from slurm_agent_tools.cli.commands import tool_command
from slurm_agent_tools.cli.commands.tool_command import read
from slurm_agent_tools.cli.commands.tool_options import POSITIONAL, options
from slurm_agent_tools.errors import ConfigError, SlurmUnreachable, UnknownJob
from slurm_agent_tools.models import arguments, diagnosis_answer, report, result, shapes, submission_answer
from slurm_agent_tools.models import decision as decision_module
from slurm_agent_tools.settings import Settings

NOW = "2026-01-02T03:04:05Z"
JOB = {"job_id": "7", "name": "train\x1b[31m", "state": "RUNNING"}


class FakeToolbox:
    """What the fake toolbox answers and was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, arguments.ToolArguments]] = []
        self.answer: shapes.Reply | Exception = wait_reply("finished")
        self.closed = 0

    def open(self, _: Settings) -> "FakeToolbox":
        return self

    async def call(self, name: str, ask: arguments.ToolArguments, **_: Any) -> shapes.Reply:
        self.asked.append((name, ask))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    async def close(self) -> None:
        self.closed += 1


def wait_reply(status: str) -> report.WaitReply:
    return report.WaitReply.model_validate({"status": status, "summary": "It is so.", "as_of": NOW, "job": JOB})


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeToolbox:
    fake = FakeToolbox()
    monkeypatch.setattr(tool_command, "Toolbox", fake)
    monkeypatch.setenv("SLURM_AGENT_PROJECT_ROOT", str(tmp_path))
    monkeypatch.setenv("SLURM_AGENT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return fake


Capture = pytest.CaptureFixture[str]


def error_of(capsys: Capture) -> dict[str, str]:
    out = capsys.readouterr().out
    return json.loads(out)["error"]


@pytest.mark.parametrize(
    ("name", "words", "expected"),
    [
        ("submit_job", ["--script", "a.sh", "--job-name", "n"], {"script": "a.sh", "job_name": "n"}),
        ("submit_job", ["a.sh", "--args", "x", "two words"], {"script": "a.sh", "args": ["x", "two words"]}),
        ("submit_job", ["a.sh", "--args", "--lr", "0.1", "--dry-run"], {"args": ["--lr", "0.1"], "dry_run": "true"}),
        ("submit_job", ["a.sh", "--args=--dry-run", "--args=x"], {"args": ["--dry-run", "x"]}),
        ("submit_job", ["--dry-run", "a.sh", "--", "--dry-run", "--", "x"], {"args": ["--dry-run", "--", "x"]}),
        ("submit_job", ["a.sh", "--dry-run=false", "--job-name=--"], {"dry_run": "false", "job_name": "--"}),
        ("submit_job", ["--job-name", "--dry-run-7", "a.sh"], {"job_name": "--dry-run-7", "script": "a.sh"}),
        ("submit_job", ["--time-limit=01:00:00", "--script=a.sh"], {"time_limit": "01:00:00", "script": "a.sh"}),
        ("submit_job", ["--job_name", "n", "a.sh"], {"job_name": "n"}),
        ("wait_for_job", ["--job-id", "7", "--timeout", "5"], {"job_id": "7", "timeout_seconds": "5"}),
        ("wait_for_job", ["7", "--no-wait"], {"job_id": "7", "timeout_seconds": "0"}),
        ("wait_for_job", ["--job-id", "-1"], {"job_id": "-1"}),
        ("wait_for_job", ["-1"], {"job_id": "-1"}),
        ("wait_for_job", ["--user=x"], {"job_id": "--user=x"}),
        ("wait_for_job", ["--job-id", "--user=x"], {"job_id": "--user=x"}),
        ("analyze_log", ["--recent-errors"], {"recent_errors": "5"}),
        ("analyze_log", ["--recent-errors", "3", "--mode", "full"], {"recent_errors": "3", "mode": "full"}),
        ("analyze_log", ["--path", "log.txt"], {"path": "log.txt"}),
        ("get_status", ["--section", "gpu", "--section", "jobs", "--no-cache"], {"sections": ["gpu", "jobs"]}),
        ("get_status", ["--sections", "gpu,jobs", "--detailed"], {"sections": ["gpu", "jobs"], "detailed": "true"}),
        ("get_status", ["gpu", "queue"], {"sections": ["gpu", "queue"]}),
        ("validate_config", ["--config", "c.yaml", "--strict"], {"config_path": "c.yaml", "strict": "true"}),
        ("compare_results", ["--baseline", "a", "--target", "b"], {"baseline": "a", "target": "b"}),
        ("compare_results", ["a", "b"], {"baseline": "a", "target": "b"}),
        ("save_result", ["--metrics", "loss=0.1", "best=true", "tag=x"], {"metrics": {"loss": 0.1, "best": True, "tag": "x"}}),
        ("save_result", ["--metrics", '{"loss": 0.1}', "--name", "n"], {"metrics": {"loss": 0.1}, "name": "n"}),
        ("save_result", ["n", "--config", "c.yaml"], {"config": "c.yaml"}),
        ("generate_script", ["--setup", "a, b", "c", "--gpus", "2"], {"setup": ["a, b", "c"], "gpus": "2"}),
        ("generate_script", ["--checkpoint", "ckpt"], {"checkpoint": {"dir": "ckpt"}}),
        ("generate_script", ["--checkpoint", "dir=a", "resume_from=b"], {"checkpoint": {"dir": "a", "resume_from": "b"}}),
    ],
)  # fmt: skip
def test_words_become_arguments(name: str, words: list[str], expected: dict[str, object]) -> None:
    given = read(serialize.BY_NAME[name], words)
    assert {key: given.get(key) for key in expected} == expected


def test_every_field_of_every_tool_has_an_option_and_every_positional_is_a_field() -> None:
    for tool in catalogue.TOOLS:
        fields = {option.field for option in options(tool).values()}
        assert set(tool.ask.model_fields) <= fields
        assert set(POSITIONAL.get(tool.name, ())) <= set(tool.ask.model_fields)


def test_metrics_may_come_from_a_json_file(tmp_path: Path) -> None:
    path = tmp_path / "metrics.json"
    path.write_text('{"loss": 0.25}')
    assert read(serialize.BY_NAME["save_result"], ["--metrics", str(path)]) == {"metrics": {"loss": 0.25}}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["submit_job"], "script is required"),
        (["submit_job", "a.sh", "b.sh"], "one word too many"),
        (["submit_job", "a.sh", "--script", "b.sh", "c.sh"], "c.sh"),
        (["submit_job", "--script", "b.sh", "c.sh"], "given twice"),
        (["submit_job", "c.sh", "--script", "b.sh"], "given twice"),
        (["submit_job", "a.sh", "--sript", "b.sh"], "--sript"),
        (["submit_job", "a.sh", "--job-name"], "job_name: --job-name needs a value"),
        (["submit_job", "a.sh", "--partitoin=gpu"], "--partitoin=gpu"),
        (["wait_for_job", "--job-id", "--json"], "job_id: --job-id needs a value"),
        (["wait_for_job", "7", "--timeout", "soon"], "timeout_seconds"),
        (["analyze_log", "--recent-errors", "0"], "recent_errors"),
        (["get_status", "--section", "cheese"], "sections.0"),
        (["save_result", "n", "--status", "success", "--metrics", "no/such/file"], "metrics"),
        (["save_result", "n", "--status", "success", "--metrics", "{loss}"], "metrics"),
        (["frobnicate"], "frobnicate"),
        (["policy", "check"], "required"),
        (["serve", "--nothing"], "--nothing"),
    ],
)
def test_bad_words_exit_2_with_one_document_that_names_them(
    words: list[str], said: str, context: FakeToolbox, capsys: Capture
) -> None:
    assert main.main([*words, "--json"]) == 2
    error = error_of(capsys)
    assert error["code"] == "invalid_input"
    assert said in error["message"]
    assert context.asked == []


@pytest.mark.parametrize(
    ("status", "code"), [("finished", 0), ("running", 4), ("pending", 4), ("unknown", 4)]
)  # fmt: skip
def test_a_wait_exits_0_when_the_job_ended_and_4_before(
    status: str, code: int, context: FakeToolbox, capsys: Capture
) -> None:
    context.answer = wait_reply(status)
    assert main.tool_main("wait_for_job", ["7", "--detail", "full"]) == code
    assert json.loads(capsys.readouterr().out) == serialize.document(context.answer)
    assert context.closed == 1


@pytest.mark.proves("answers-are-brief")
def test_an_answer_is_brief_where_nothing_else_is_asked_and_the_same_when_asked_again(
    context: FakeToolbox, capsys: Capture
) -> None:
    context.answer = wait_reply("running")
    for _ in range(2):
        main.tool_main("wait_for_job", ["7"])
        assert json.loads(capsys.readouterr().out) == brief.brief(context.answer)


@pytest.mark.proves("answers-are-brief")
def test_several_jobs_are_named_behind_one_option(context: FakeToolbox, capsys: Capture) -> None:
    context.answer = wait_reply("finished")
    assert main.tool_main("wait_for_job", ["--job-ids", "7", "8+1", "--until=all", "--timeout=9"]) == 0
    capsys.readouterr()
    (asked,) = context.asked
    assert asked == ("wait_for_job", arguments.WaitForJob(job_ids=["7", "8+1"], until="all", timeout_seconds=9))


REPLY = {"summary": "So.", "as_of": NOW}


@pytest.mark.parametrize(
    ("tool", "words", "reply", "code"),
    [
        ("submit_job", ["a.sh"], submission_answer.SubmitReply(status="submitted", **REPLY), 0),
        ("submit_job", ["a.sh"], submission_answer.SubmitReply(status="blocked", **REPLY), 3),
        ("submit_job", ["a.sh"], submission_answer.SubmitReply(status="unconfirmed", **REPLY), 4),
        ("analyze_log", ["7"], diagnosis_answer.AnalyzeReply(status="no_log", **REPLY), 1),
        ("validate_config", ["c.yaml"], submission_answer.ValidateReply(status="invalid", **REPLY), 2),
        ("cancel_job", ["7", "--reason", "r"], submission_answer.CancelReply(status="already_finished", **REPLY), 0),
    ],
)
def test_each_status_has_its_documented_exit_code(
    tool: str, words: list[str], reply: shapes.Reply, code: int, context: FakeToolbox
) -> None:
    context.answer = reply
    assert main.main([tool, *words]) == code


@pytest.mark.parametrize(
    ("error", "code", "name"),
    [
        (UnknownJob("job_id", "7", "Slurm knows no such job"), 2, "unknown_job"),
        (ConfigError("policy", "x", "is bad"), 2, "invalid_config"),
        (SlurmUnreachable("no answer", hint="Wait."), 1, "cluster_unreachable"),
        (RuntimeError("secret detail"), 1, "internal"),
    ],
)
def test_a_failure_is_one_document_on_standard_output(
    error: Exception, code: int, name: str, context: FakeToolbox, capsys: Capture
) -> None:
    context.answer = error
    assert main.tool_main("wait_for_job", ["7"]) == code
    out = capsys.readouterr().out
    assert json.loads(out)["error"]["code"] == name
    assert "secret detail" not in out
    assert context.closed == 1


def test_a_failure_for_a_person_goes_to_standard_error(context: FakeToolbox, capsys: Capture) -> None:
    context.answer = SlurmUnreachable("no answer", hint="Wait.")
    assert main.main(["wait_for_job", "7"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.splitlines() == ["error (cluster_unreachable): no answer", "Wait."]


def test_the_text_for_a_person_holds_the_facts_and_no_control_characters(context: FakeToolbox, capsys: Capture) -> None:
    assert main.main(["wait-for-job", "7"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("finished: It is so.\n")
    assert "state: RUNNING" in out
    assert "\x1b" not in out


def test_the_refusal_for_a_person_shows_the_remedy(context: FakeToolbox, capsys: Capture) -> None:
    rule = decision_module.RuleDecision(
        id="memory-per-gpu", outcome="deny", message="too much", remedy="#SBATCH --mem=16G"
    )
    passed = decision_module.RuleDecision(id="gpus", outcome="pass", message="fine")
    decision = decision_module.DecisionShown(
        id="d", verdict="deny", policy=decision_module.PolicyUsed(version="1", sha256="0" * 64), rules=[passed, rule]
    )
    context.answer = submission_answer.SubmitReply(
        status="blocked", decision=decision, manual_commands=["squeue --me"], **REPLY
    )
    assert main.main(["submit_job", "a.sh"]) == 3
    out = capsys.readouterr().out
    assert "deny memory-per-gpu: too much" in out
    assert "#SBATCH --mem=16G" in out
    assert "squeue --me" in out
    assert "fine" not in out


def test_arguments_of_all_kinds_reach_the_toolbox_checked(context: FakeToolbox) -> None:
    assert (
        main.main(["save_result", "n", "--status", "success", "--metrics", "loss=0.5", "--dry-run", "--job-id", "7"])
        == 0
    )
    assert context.asked == [
        (
            "save_result",
            result.SaveResult(name="n", status="success", metrics={"loss": 0.5}, dry_run=True, job_id="7"),
        )
    ]


def test_help_lists_the_tools(capsys: Capture) -> None:
    assert main.main(["--help"]) == 0
    assert "submit_job" in capsys.readouterr().out


def test_a_toolset_that_is_switched_off_is_not_offered(
    context: FakeToolbox, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    tools = {
        name: replace(tool, toolset="files") for name, tool in serialize.BY_NAME.items() if name == "compare_results"
    }
    monkeypatch.setattr(serialize, "BY_NAME", dict(serialize.BY_NAME) | tools)
    monkeypatch.setattr(catalogue, "TOOLS", tuple(serialize.BY_NAME.values()))
    monkeypatch.setenv("SLURM_AGENT_TOOLSETS", '["core"]')
    assert main.main(["compare_results", "a", "b", "--json"]) == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert "toolset files" in error["message"]
    assert context.asked == []
    main.main(["--help"])
    assert "compare_results" not in capsys.readouterr().out


def test_help_is_given_also_where_the_settings_are_wrong(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setenv("SLURM_AGENT_TOOLSETS", '["cheese"]')
    assert main.main(["--help"]) == 0
    assert all(tool.name in capsys.readouterr().out for tool in catalogue.TOOLS[:1])


@pytest.mark.parametrize("tool", [tool.name for tool in catalogue.TOOLS])
def test_every_tool_has_help_and_a_module_of_its_own(
    tool: str, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """As `python -m` does it, but for the process, of which the next but one is."""

    def ends(act: Callable[[], int]) -> NoReturn:
        raise SystemExit(act())

    monkeypatch.setattr(main, "whole", ends)
    monkeypatch.setattr(sys, "argv", ["-m", "--help"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(f"tools.agent_tools.{tool}", run_name="__main__", alter_sys=True)
    said = capsys.readouterr().out
    assert ended.value.code == 0
    for field in serialize.BY_NAME[tool].ask.model_fields:
        assert "--" + field.replace("_", "-") in said


def test_the_help_names_the_choices(capsys: Capture) -> None:
    for tool, said in (
        ("submit_job", "--priority {low,normal,high}"),
        ("analyze_log", "--mode {auto,error,metrics,full}"),
        ("save_result", "--status {success,failed,cancelled}"),
        ("get_status", "--sections {jobs,gpu,"),
        ("wait_for_job", "--timeout-seconds N"),
    ):
        assert main.main([tool, "--help"]) == 0
        assert said in capsys.readouterr().out


def test_a_module_prints_json_by_default_also_for_bad_words(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.agent_tools.submit_job", "--nonsense"],
        cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["code"] == "invalid_input"


def test_the_command_line_does_not_import_the_mcp_sdk() -> None:
    program = "import sys, slurm_agent_tools.cli.main, slurm_agent_tools.cli.commands.tool_command; sys.exit('mcp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], timeout=30, check=False).returncode == 0


def served(tmp_path: Path, settings: str) -> "subprocess.CompletedProcess[str]":
    (tmp_path / "slurm-agent.toml").write_text(settings)
    return subprocess.run(
        [sys.executable, "-m", "slurm_agent_tools", "serve"],
        cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "SLURM_CONF": "/etc/slurm/slurm.conf"},
    )  # fmt: skip


def test_serve_ends_with_its_client_and_says_nothing_of_its_own(tmp_path: Path) -> None:
    done = served(tmp_path, "")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_serve_tells_a_bad_setting_on_standard_error_alone(tmp_path: Path) -> None:
    done = served(tmp_path, 'tool_prefix = "x"\n')
    assert done.returncode == 2
    assert done.stdout == ""
    assert "tool_prefix" in done.stderr
