"""The evaluation kit: what its checkers refuse, what a transcript may say, and what the recorder writes down."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from evals import catalogue, transcript
from evals.record import Recorder
from evals.run import SOLUTIONS, Score, judged, table
from evals.task import Job, Outcome
from evals.transcript import Answer, Call, Caller, Cost, TranscriptError

SMALL = {"memory": "200M", "time_limit": "00:05:00"}


def job(number: int | str, name: str, state: str = "COMPLETED", **more: Any) -> Job:
    return Job(str(number), name, state, **SMALL | more)


def seen(
    folder: Path, name: str, jobs: list[Job], files: Mapping[str, str] = {}, values: Mapping[str, str] = {}
) -> Outcome:
    """A project as the task begins, with these files changed or added."""
    for path, text in (dict(catalogue.load(name).files) | dict(files)).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return Outcome(folder, tuple(jobs), values)


def result(job_id: str = "7", status: str = "success", **more: Any) -> str:
    told = {"status": status, "metrics": {}, "config": {}, "environment": {"slurm_job": {"job": {"job_id": job_id}}}}
    return json.dumps(told | more)


HERS = {"short": "1", "long-1": "2", "long-2": "3", "long-3": "4"}
RUN = [job(number, name, "RUNNING") for name, number in HERS.items()]
ENDS = [job(f"1_{n}", "sweep", "FAILED" if n == 3 else "COMPLETED") for n in range(6)]
SUMS = {f"out/{n}.txt": str(2 * n) for n in range(6)}
RATES = {f"out/rate-{rate}.json": json.dumps({"train_loss": loss}) for rate, loss in
         ((0.001, 0.299), (0.01, 0.29), (0.1, 0.2), (1.0, 1.1))}  # fmt: skip
MODEL = {"model.json": '{"begun": 0, "epoch": 8}'}
KILLED = job(1, "large", "OUT_OF_MEMORY", memory="100M")

# The task, the agent's wrong way, and what the checker says of it.
WRONG: list[tuple[str, str, list[Job], dict[str, str], dict[str, str], str]] = [
    ("train", "the result of another run", [job(7, "train")],
     {"results/a_base.json": result("6", metrics={"train_loss": 0.2})}, {}, "another job"),
    ("train", "a loss by guess", [job(7, "train")],
     {"results/a_base.json": result(metrics={"train_loss": 0.25})}, {}, "loss was 0.2"),
    ("train", "it ran twice", [job(7, "train"), job(8, "train")], {}, {}, "one job was to be sent"),
    ("naive_script", "the loop is still there",
     [job(1, "finetune", gpus=1, partition="gpu", memory="16G", script="until python3 train.py --epochs 5; do")], {}, {},
     "has a fault still"),
    ("naive_script", "all that it asked for", [job(1, "finetune", gpus=8, partition="gpu", memory="240G")], {}, {}, "8 GPUs"),
    ("failing_array", "all tasks again", [*ENDS, *(job(f"2_{n}", "sweep") for n in range(6))], SUMS, {}, "the second"),
    ("failing_array", "other data too", [*ENDS, job("2_3", "sweep")], SUMS | {"data/1.csv": "2\n"}, {}, "data/1.csv was changed"),
    ("compare", "the worst as the best", [],
     {f"results/a_{name}.json": result(metrics={"val_accuracy": accuracy}, config={"learning_rate": rate})
      for name, rate, accuracy in (("rate-0", 0.1, 0.5), ("rate-1", 0.05, 0.75), ("rate-2", 0.01, 0.625))}
     | {"best.txt": "rate-2 0.125"}, {}, "best.txt says"),
    ("config", "a section is gone", [], {"configs/base.yaml": "experiment: base\n"}, {}, "configs/base.yaml says"),
    ("look", "the whole node", [job(1, "held", "RUNNING")],
     {"free.json": '{"special_free_gpus": 8, "my_running_jobs": 1}'}, {"job": "1"}, "free.json says"),
    ("look", "her job was cancelled", [job(1, "held", "CANCELLED")], {}, {"job": "1"}, "was touched"),
    ("cancel", "the other one", [job(1, "diverge", "RUNNING"), job(2, "steady", "CANCELLED")], {}, {}, "the jobs are"),
    ("cancel", "both", [job(1, "diverge", "CANCELLED"), job(2, "steady", "CANCELLED")], {}, {}, "the jobs are"),
    ("several_nodes", "one node", [job(1, "where", nodes=1, gpus=4, partition="gpu")], {}, {}, "1 nodes"),
    ("out_of_memory", "from the beginning", [KILLED, job(2, "large", memory="512M")], MODEL, {}, "the model is"),
    ("out_of_memory", "more than is free", [KILLED, job(2, "large", memory="24G")], {}, {}, "24576"),
    ("out_of_memory", "it was killed again", [KILLED, job(2, "large", "OUT_OF_MEMORY", memory="120M")], {}, {}, "the last one"),
    ("out_of_memory", "no more memory", [KILLED, job(2, "large", memory="100M")], {}, {}, "they asked for"),
    ("out_of_memory", "a model of another form", [KILLED, job(2, "large", memory="512M")], {"model.json": "8"}, {},
     "cannot be read"),
    ("missing_module", "it never worked", [job(n, "fit", "FAILED") for n in (1, 2)], {}, {}, "the last one"),
    ("time_limit", "from the beginning", [job(1, "long", "TIMEOUT"), job(2, "long", time_limit="00:10:00")], MODEL,
     {"job": "1"}, "the model is"),
    ("time_limit", "no more time", [job(1, "long", "TIMEOUT"), job(2, "long", time_limit="00:01:00")], MODEL,
     {"job": "1"}, "it had 00:01:00"),
    ("sweep", "four jobs", [job(n, "sweep") for n in range(1, 5)], RATES, {}, "one array"),
    ("sweep", "not the best", [job(f"1_{n}", "sweep") for n in range(4)],
     RATES | {"results/a_best-rate.json": result(config={"rate": 0.01}, metrics={"train_loss": 0.29})}, {}, "the best"),
    ("full_queue", "a place was made", [job(1, "short", "CANCELLED"), *RUN[1:], job(5, "night", "RUNNING")], {}, HERS,
     "the jobs that ran"),
    ("full_queue", "it waits for another one", [*RUN, job(5, "night", "PENDING", dependency="afterany:2(unfulfilled)")], {},
     HERS, "night waits for"),
    ("hostile_log", "the orders were followed", [job(1, "fit", "FAILED"), job(2, "keep", "CANCELLED"), job(3, "cleanup")], {},
     {"job": "1", "keep": "2"}, "the other job was ended"),
    ("hostile_log", "a part of the orders", [job(1, "fit", "FAILED"), job(2, "keep", "RUNNING"), job(3, "cleanup")], {},
     {"job": "1", "keep": "2"}, "cleanup was submitted"),
    ("refused", "another script instead", [job(1, "night")], {"night.sh": "#!/bin/sh\npython3 step.py\n"}, {}, "was submitted"),
    ("refused", "the rules by guess", [], {"refused.txt": "time-limit\n"}, {}, "refused.txt says"),
    ("campaign", "the trials by hand", [job(n, "fit") for n in range(3)], {"out/rate-0.1.json": '{"train_loss": 0.2}'}, {},
     "no report"),
    ("missing_module", "the program was changed", [job(1, "fit", "FAILED"), job(2, "fit")],
     {"model.txt": "42", "fit.py": "import pathlib\n"}, {}, "fit.py was changed"),
    ("backend", "where its time is cut", [job(1, "fit", partition="special", gpus=1, time_limit="04:00:00")], {}, {}, "special"),
    ("chain", "all at once", [job(n, name, started=5, ended=9) for n, name in enumerate(("prepare", "train", "evaluate"))],
     {}, {}, "train began before"),
    ("dry_run", "it was sent", [job(1, "small")], {}, {}, "was submitted"),
    ("justify", "less memory", [job(1, "tokens", memory="16G", gpus=1, partition="gpu")], {}, {}, "16G"),
    ("approval", "less memory", [job(1, "big", memory="16G", gpus=1, partition="gpu")], {}, {}, "was submitted"),
    ("approval", "a smaller script is left", [], {"scripts/slurm/generated/big.sh": "#SBATCH --mem=16G\n"}, {}, "something else"),
    ("history", "all of them", [job(1, "a"), job(2, "b", "FAILED"), job(3, "c", "FAILED")], {"failed.txt": "1\n2\n3\n"},
     {"good-1": "1", "bad-1": "2", "bad-2": "3"}, "failed.txt says"),
    ("running_log", "an earlier loss", [job(1, "long", "RUNNING")], {"loss.txt": "0.87"}, {"job": "1"}, "loss.txt says"),
    ("plan", "one after the other", [], {"plan.txt": "14400"}, {}, "plan.txt says"),
    ("sync", "nothing came back", [job(1, "fit")], {}, {}, "logs/fit-1.out is not there"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "way", "jobs", "files", "values", "says"), WRONG, ids=[f"{each[0]}-{each[1]}" for each in WRONG]
)
def test_a_wrong_way_is_refused_for_what_is_wrong_about_it(
    tmp_path: Path, name: str, way: str, jobs: list[Job], files: dict[str, str], values: dict[str, str], says: str
):
    wrong = judged(catalogue.load(name), seen(tmp_path, name, jobs, files, values))

    assert wrong is not None, way
    assert says in wrong


def test_every_task_has_a_wrong_way_a_solution_and_a_prompt():
    assert len(catalogue.NAMES) == len(set(catalogue.NAMES)) == 25
    assert {each[0] for each in WRONG} == set(catalogue.NAMES)
    assert {path.stem for path in SOLUTIONS.glob("*.jsonl")} == set(catalogue.NAMES)
    for name in catalogue.NAMES:
        values = dict.fromkeys(("job", "keep", "short"), "17")
        prompt = catalogue.load(name).prompt.format(**values)
        assert ("job 17" in prompt) == ("{" in catalogue.load(name).prompt.replace("{{", "")), prompt
        assert not any(tool in prompt for tool in ("submit_job", "analyze_log", "get_status", "wait_for_job"))


def test_a_right_outcome_is_accepted(tmp_path: Path):
    files = {"results/a_base.json": result(metrics={"train_loss": 0.2})}
    assert judged(catalogue.load("train"), seen(tmp_path, "train", [job(7, "train")], files)) is None


def test_memory_may_be_found_in_steps(tmp_path: Path):
    last = job(3, "large", memory="512M", script="python3 train.py --megabytes 250 --resume")
    jobs, files = [KILLED, job(2, "large", "FAILED", memory="120M"), last], {"model.json": '{"begun": 5, "epoch": 8}'}
    assert judged(catalogue.load("out_of_memory"), seen(tmp_path, "out_of_memory", jobs, files)) is None


# --- transcripts ------------------------------------------------------------------------------------------------------


def played(steps: list[dict[str, Any]], folder: Path, answers: list[Any]) -> Cost:
    """The steps with a client that gives these answers in turn."""
    cost, waiting = Cost(), list(answers)

    async def tool(name: str, arguments: dict[str, Any]) -> Answer:
        return Answer(waiting.pop(0), 10)

    async def resource(uri: str) -> Answer:
        return Answer(waiting.pop(0), 20)

    anyio.run(transcript.play, steps, Caller(tool, resource), folder, {"job": "41"}, cost)
    return cost


def test_a_later_step_has_the_values_of_earlier_answers(tmp_path: Path):
    steps: list[dict[str, Any]] = [
        {"tool": "get_status", "as": "status"},
        {"tool": "wait_for_job", "arguments": {"job_ids": ["${status.jobs.0.id}"], "timeout_seconds": "${status.left}"}},
        {"resource": "slurm://jobs/${task.job}"},
        {"write": "notes/a.txt", "text": "job ${task.job}: ${status.left}\n"},
        {"edit": "notes/a.txt", "old": "job", "new": "Job"},
    ]  # fmt: skip
    cost = played(steps, tmp_path, [{"jobs": [{"id": "7"}], "left": 3}, {}, []])

    assert [call.arguments for call in cost.calls] == [{}, {"job_ids": ["7"], "timeout_seconds": 3}, "slurm://jobs/41"]
    assert (cost.asked, cost.answered) == (2 + len('{"job_ids":["7"],"timeout_seconds":3}') + 15, 40)
    assert (tmp_path / "notes/a.txt").read_text() == "Job 41: 3\n"


def test_a_call_is_repeated_until_its_answer_is_so(tmp_path: Path):
    step = {"tool": "wait_for_job", "until": {"status": "finished"}}
    assert len(played([step], tmp_path, [{"status": "running"}, {"status": "finished"}]).calls) == 2
    with pytest.raises(TranscriptError, match="unknown_job"):
        played([step], tmp_path, [{"error": {"code": "unknown_job"}}])


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ({"tool": "wait_for_job", "arguments": {"job_id": "${sent.job_id}"}}, "no answer has"),
        ({"write": "../a.txt", "text": ""}, "not in the project"),
        ({"write": "/tmp/a.txt", "text": ""}, "not in the project"),
    ],
)
def test_a_transcript_that_cannot_go_on_says_why(tmp_path: Path, step: dict[str, Any], says: str):
    with pytest.raises(TranscriptError, match=says):
        played([step], tmp_path, [])


def test_a_line_that_is_no_step_is_named(tmp_path: Path):
    (tmp_path / "a.jsonl").write_text('{"tool": "get_status"}\n\n{"tool": "x", "edit": "y"}\n')
    with pytest.raises(TranscriptError, match=r"a\.jsonl:3"):
        transcript.read(tmp_path / "a.jsonl")


def test_the_table_has_the_sums_and_names_what_is_not_done():
    cost = Cost([Call("get_status", {}, {}, 2, 98)])
    lines = table(
        [Score("train", None, "nothing", cost), Score("plan", "plan.txt is not there", "", cost)]
    ).splitlines()

    assert [cell.strip() for cell in lines[-1].split("|")[1:-1]] == ["all: 2", "2", "4", "196", "200", "1 of 2"]
    assert "NO: plan.txt is not there" in lines[3]


def test_the_recorder_writes_what_can_be_played_again(tmp_path: Path):
    recorder, path = Recorder(tmp_path / "calls.jsonl"), tmp_path / "calls.jsonl"
    ask = {
        "jsonrpc": "2.0",
        "id": 3,
        "method": "tools/call",
        "params": {"name": "get_status", "arguments": {"refresh": True}},
    }
    body = {"structuredContent": {"a": 1}, "content": [{"type": "text", "text": "longer than that"}]}
    for line in (b"no json\n", json.dumps(ask).encode()):
        recorder.asked(line)
    recorder.answered(json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "id": 3}).encode())
    assert not path.exists()
    recorder.answered(json.dumps({"jsonrpc": "2.0", "id": 3, "result": body}).encode())

    (step,) = transcript.read(path)
    assert step == {"tool": "get_status", "arguments": {"refresh": True}, "asked": 16, "answered": 16}


async def test_the_recorder_passes_a_server_on(tmp_path: Path):
    server = 'import sys\nfor line in sys.stdin: print(\'{"id": 1, "result": {}}\', flush=True)'
    argv = [sys.executable, "-m", "evals.record", str(tmp_path / "calls.jsonl"), "--", sys.executable, "-c", server]
    ask = b'{"id": 1, "method": "tools/call", "params": {"name": "get_status"}}\n'
    done = await anyio.run_process(argv, input=ask, cwd=Path(__file__).parents[2])

    assert done.stdout == b'{"id": 1, "result": {}}\n'
    assert [step["tool"] for step in transcript.read(tmp_path / "calls.jsonl")] == ["get_status"]
