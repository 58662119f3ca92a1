"""`policy check`, `policy show` and `policy log` without a cluster."""

import json
from contextlib import closing
from pathlib import Path

import pytest

from slurm_agent_tools.cli import main
from slurm_agent_tools.cli.commands import policy_cases
from slurm_agent_tools.store.ledger import Store

GOOD = "#!/bin/bash\n#SBATCH --partition=gpu --gpus=1 --mem-per-gpu=16G --time=01:00:00\npython train.py\n"
GREEDY = GOOD.replace("16G", "640G")


@pytest.fixture(autouse=True)
def project(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("SLURM_AGENT_PROJECT_ROOT", str(tmp_path))
    monkeypatch.setenv("SLURM_AGENT_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.sh").write_text(GOOD)
    (tmp_path / "greedy.sh").write_text(GREEDY)
    return tmp_path


def decisions(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_conforming_script_is_allowed_without_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["policy", "check", "--json", "good.sh"]) == 0
    (decision,) = decisions(capsys)
    assert (decision["script"], decision["verdict"]) == ("good.sh", "allow")


def test_one_line_a_script_and_exit_3_when_one_is_not_allowed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["policy", "check", "--json", "good.sh", "greedy.sh"]) == 3
    found = decisions(capsys)
    assert [decision["script"] for decision in found] == ["good.sh", "greedy.sh"]
    assert found[1]["verdict"] == "approve"
    assert "approve" in {rule["outcome"] for rule in found[1]["rules"] if rule["id"] == "memory-per-gpu"}


@pytest.mark.parametrize("content", [None, b"", b"#!/bin/bash\n\0", b"python train.py\n"])
def test_what_is_no_batch_script_is_denied(
    content: bytes | None, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if content is not None:
        (project / "odd.sh").write_bytes(content)
    assert main.main(["policy", "check", "--json", "odd.sh"]) == 3
    (decision,) = decisions(capsys)
    assert decision["verdict"] == "deny"
    assert {rule["id"] for rule in decision["rules"] if rule["outcome"] == "deny"} == {"script-exists"}


def test_a_person_reads_the_rule_and_its_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["policy", "check", "greedy.sh"]) == 3
    out = capsys.readouterr().out
    assert out.startswith("greedy.sh:\nverdict: approve")
    assert "memory-per-gpu" in out
    assert "16G" in out
    assert "`slurm-agent-tools submit_job greedy.sh --dry-run` also asks Slurm" in out


def test_show_tells_the_limits_and_the_hash(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["policy", "show", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["policy"]["limits"]["max_concurrent_jobs"] == 4
    assert shown["policy"]["limits"]["memory_per_gpu"]["free"] == 16 * 2**30
    assert len(shown["sha256"]) == 64


def test_show_for_a_person_writes_sizes_and_times_as_people_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["policy", "show"]) == 0
    out = capsys.readouterr().out
    assert "free: 16G" in out
    assert "time_limit: 02:00:00" in out


def test_a_project_policy_that_cannot_be_read_is_exit_2_and_names_it(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "policies").mkdir()
    (project / "policies" / "mine.yaml").write_text("max_concurrent_job: 2\n")
    assert main.main(["policy", "check", "--json", "good.sh"]) == 2
    assert "max_concurrent_job" in json.loads(capsys.readouterr().out)["error"]["message"]


def test_the_log_is_empty_before_anything_was_decided_and_then_shows_the_newest(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["policy", "log", "--json"]) == 0
    assert capsys.readouterr().out == ""
    entry = {"at": "2026-01-02", "event": "decided", "verdict": "deny", "tool": "submit_job", "script": "a.sh"}
    (project / "state").mkdir(exist_ok=True)
    (project / "state" / "decisions.jsonl").write_text("".join(json.dumps(entry | {"script": n}) + "\n" for n in "ab"))
    assert main.main(["policy", "log", "--json", "--last", "1"]) == 0
    assert [decision["script"] for decision in decisions(capsys)] == ["b"]
    assert main.main(["policy", "log"]) == 0
    assert "deny" in capsys.readouterr().out


# --- test, explain, schema, trust, log ----------------------------------------------------------------------------

CASES = """
cases:
  - name: a script that is there
    script: ../../good.sh
    expect: {verdict: allow}
  - name: too much
    request: {partition: gpu, gpus: 1, mem-per-gpu: 40G}
    expect: {verdict: approve, rules: [memory-per-gpu]}
  - name: with a reason
    request: {partition: gpu, gpus: 1, mem-per-gpu: 20G}
    justification: does not fit in 16G
    expect: {verdict: allow}
"""


def cases(project: Path, text: str) -> None:
    (project / "policies/tests").mkdir(parents=True, exist_ok=True)
    (project / "policies/tests/cases.yaml").write_text(text)


def test_cases_that_are_as_expected_end_with_0(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases(project, CASES)
    assert main.main(["policy", "test"]) == 0
    assert capsys.readouterr().out.startswith("3 of 3 cases are as expected.")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("verdict: approve", "verdict: allow"), "too much: is approve, expected allow"),
        (("rules: [memory-per-gpu]", "rules: [gpus]"), "too much: gpus did not speak"),
        (("../../good.sh", "../../absent.sh"), "a script that is there: is deny, expected allow"),
    ],
)
def test_a_case_that_differs_is_named_and_ends_with_1(
    change: tuple[str, str], said: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases(project, CASES.replace(*change))
    assert main.main(["policy", "test"]) == 1
    assert said in capsys.readouterr().out


@pytest.mark.parametrize("text", ["- name: x\n", "cases: 3\n", "- {name: x, script: a.sh, expect: {verdict: maybe}}\n"])
def test_a_file_that_holds_no_cases_is_an_error(text: str, project: Path) -> None:
    cases(project, text)
    assert main.main(["policy", "test"]) == 2


def test_without_cases_of_its_own_a_project_runs_the_shipped_ones(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shipped = policy_cases._shipped()
    assert {"requests.yaml", "red-team.yaml", "honest.yaml"} <= {path.name for path in shipped.glob("*.yaml")}
    (project / "shipped").mkdir()
    (project / "shipped/requests.yaml").write_bytes((shipped / "requests.yaml").read_bytes())
    monkeypatch.setattr(policy_cases, "_shipped", lambda: project / "shipped")
    (project / "policies").mkdir()
    (project / "policies/project.yaml").write_text("submissions: off\nlimits: {gpus: {free: 0}}\n")
    assert main.main(["policy", "test"]) == 0
    assert int(capsys.readouterr().out.split()[0]) > 10


def test_shipped_cases_find_the_files_that_their_scripts_run_from_any_project(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shipped = policy_cases._shipped()
    few = [
        case
        for case in policy_cases.read(shipped / "red-team.yaml")
        if "sourced" in case.name or "imports" in case.name
    ]
    assert len(few) >= 3
    monkeypatch.setattr(policy_cases, "_found", lambda folder: [shipped / "red-team.yaml"] * (folder == shipped))
    monkeypatch.setattr(policy_cases, "read", lambda _: few)
    assert main.main(["policy", "test"]) == 0, capsys.readouterr().out


def test_a_rule_is_explained_with_its_place_in_the_policy(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "policies").mkdir(exist_ok=True)
    (project / "policies/project.yaml").write_text("rules: {opaque-code: deny}\n")
    assert main.main(["policy", "explain", "opaque-code"]) == 0
    out = capsys.readouterr().out
    assert "In this policy it answers for itself, at least deny." in out
    assert main.main(["policy", "explain", "opaque"]) == 2


def test_the_schema_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["policy", "schema"]) == 0
    assert json.loads(capsys.readouterr().out)["title"] == "slurm-agent-tools policy"


def test_trust_wants_a_person_at_a_terminal(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "loose.yaml").write_text("limits: {gpus: {free: 64, justify: 64}}\n")
    assert main.main(["policy", "trust", "loose.yaml"]) == 1
    assert "needs a person at a terminal" in capsys.readouterr().err


def logged(project: Path, *entries: dict[str, object]) -> None:
    base = {
        "at": "2026-11-20T12:00:00+00:00",
        "event": "decided",
        "verdict": "allow",
        "tool": "submit_job",
        "rules": [],
    }
    (project / "state").mkdir(exist_ok=True)
    with (project / "state/decisions.jsonl").open("a") as file:
        file.writelines(json.dumps({**base, **entry}) + "\n" for entry in entries)


@pytest.mark.parametrize(
    ("words", "jobs"),
    [
        ([], [1, 2, 3]),
        (["--last", "1"], [3]),
        (["--last", "0"], []),
        (["--verdict", "deny"], [2]),
        (["--rule", "gpus"], [2]),
        (["--event", "submitted"], [3]),
        (["--job", "1"], [1]),
        (["--since", "2026-11-20T12:30:00+00:00"], [3]),
        (["--since", "36500-00:00:00"], [1, 2, 3]),  # a hundred years
    ],
)
def test_the_log_is_filtered(
    words: list[str], jobs: list[int], project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logged(
        project,
        {"job_id": 1},
        {"job_id": 2, "verdict": "deny", "rules": [{"id": "gpus", "outcome": "deny"}]},
        {"job_id": 3, "event": "submitted", "at": "2026-11-20T13:00:00+00:00"},
    )
    assert main.main(["policy", "log", "--json", *words]) == 0
    assert [entry["job_id"] for entry in decisions(capsys)] == jobs
    assert main.main(["policy", "log", *words]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(jobs)


def test_a_week_is_shown_whole_and_what_is_left_out_is_told(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logged(project, *({"job_id": number} for number in range(30)))
    assert main.main(["policy", "log", "--json", "--since", "2026-11-20T00:00:00+00:00"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 30
    assert main.main(["policy", "log", "--json"]) == 0
    shown = capsys.readouterr()
    assert [json.loads(line)["job_id"] for line in shown.out.splitlines()] == list(range(10, 30))
    assert "the newest 20 of 30" in shown.err


@pytest.mark.parametrize(
    "words", [[], ["--json"], ["--rule", "gpus"], ["--since", "2026-11-20T00:00:00+00:00"], ["--verdict", "allow"]]
)
def test_lines_that_somebody_else_wrote_do_not_end_the_log(
    words: list[str], project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "state").mkdir()
    (project / "state/decisions.jsonl").write_text(
        '{"at":"soon"}\n{"at":null,"rules":[1,{"x":2}],"event":{"a":1},"verdict":3,"tool":[]}\n'
    )
    logged(project, {"job_id": 3, "rules": [{"id": "gpus"}], "at": "2026-11-20T13:00:00"})
    assert main.main(["policy", "log", *words]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == (1 if {"--rule", "--verdict"} & set(words) else 3)


def test_a_line_says_what_a_fallback_and_a_transfer_were(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    logged(project, {"event": "fallback", "note": "lab/gpu cannot be used, so rented/a100 is taken."})
    logged(project, {"event": "synced", "summary": "2 files (1K) sent, 1 unchanged."})
    assert main.main(["policy", "log"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.endswith("lab/gpu cannot be used, so rented/a100 is taken.")
    assert second.endswith("2 files (1K) sent, 1 unchanged.")


def test_a_time_that_is_none_is_an_error() -> None:
    assert main.main(["policy", "log", "--since", "yesterday"]) == 2


def half(path: Path) -> None:
    with path.open("a") as file:
        file.write('{"job_id": 3')


def test_a_followed_log_prints_what_comes_and_never_half_a_line(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    logged(project, {"job_id": 1})
    steps = iter(
        [
            lambda: logged(project, {"job_id": 2}),
            lambda: half(project / "state/decisions.jsonl"),
            lambda: None,
        ]
    )

    def pause(_: float) -> None:
        step = next(steps, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    monkeypatch.setattr("slurm_agent_tools.cli.commands.policy_log.time.sleep", pause)
    assert main.main(["policy", "log", "--json", "--follow"]) == 130
    assert [entry["job_id"] for entry in decisions(capsys)] == [1, 2]


# --- log --verify, --begin-anew ---------------------------------------------------------------------------------------


def write(project: Path, *numbers: int) -> Path:
    """Lines as the tools write them; where the log lies."""
    with closing(Store(project / "state")) as store:
        for number in numbers:
            store.log_decision({"at": f"2026-11-2{number}T00:00:00+00:00", "event": "decided", "verdict": "deny",
                                "tool": "submit_job", "n": number})  # fmt: skip
        return store.decisions


@pytest.mark.proves("log-is-a-chain")
def test_a_whole_log_is_verified_and_where_one_is_not_its_lines_are_named(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(project, 1, 2, 3, 4)
    assert main.main(["policy", "log", "--verify"]) == 0
    assert capsys.readouterr().out == f"{path} is whole: 4 lines\n"

    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], *lines[2:-1]]))
    assert main.main(["policy", "log", "--verify"]) == 1
    first, second, last = capsys.readouterr().out.splitlines()
    assert first.startswith("line 2 does not follow the line before")
    assert second == "line 3 is missing: the last 2 of 4 lines were taken out"
    assert last == f"{path}: 2 breaks"
    assert main.main(["policy", "log", "--verify", "--json"]) == 1
    (told,) = decisions(capsys)
    assert (told["status"], told["lines"], told["in_the_ledger"]) == ("broken", 2, 4)
    assert [one["line"] for one in told["breaks"]] == [2, 3]


@pytest.mark.proves("log-is-a-chain")
def test_verifying_tells_where_the_chain_begins_and_what_cannot_be_known(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logged(project, {"job_id": 1}, {"job_id": 2})
    assert main.main(["policy", "log", "--verify"]) == 0
    assert "the ledger knows nothing of this log" in capsys.readouterr().err
    path = write(project, 3)
    with path.open("ab") as file:
        file.write(b"half a line\n")
    assert main.main(["policy", "log", "--verify"]) == 0
    shown = capsys.readouterr()
    assert shown.out == f"{path} is whole: 1 lines\n"
    assert "2 lines are older than the chain of hashes, which begins at line 3" in shown.err
    assert "cut off by a full disk or a crash: lines 4" in shown.err


@pytest.mark.proves("log-is-a-chain")
def test_verifying_writes_nothing(project: Path) -> None:
    path = write(project, 1)
    path.write_bytes(b"")
    before = {one.name: one.read_bytes() for one in path.parent.glob("*.sqlite3")}
    assert main.main(["policy", "log", "--verify"]) == 1
    assert main.main(["policy", "log", "--verify"]) == 1
    assert {one.name: one.read_bytes() for one in path.parent.glob("*.sqlite3")} == before
    assert path.read_bytes() == b""


def test_a_log_that_is_begun_anew_is_kept_and_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(project, 1, 2)
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    assert main.main(["policy", "log", "--begin-anew"]) == 0
    (kept,) = path.parent.glob("decisions-*.jsonl")
    assert str(kept) in capsys.readouterr().out
    assert main.main(["policy", "log", "--verify"]) == 0
    assert "line 2 is missing" in path.read_text()
    assert main.main(["policy", "log"]) == 0
