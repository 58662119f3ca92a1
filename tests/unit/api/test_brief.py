"""Brief answers: what they leave out, what a repeated wait tells, and what real ones take in bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest
from benchmarks import everyday
from benchmarks.everyday import Agent, Told

from slurm_agent_tools.api import brief, schemas
from slurm_agent_tools.models.arguments import GetStatus, WaitForJob
from slurm_agent_tools.models.decision import DecisionShown, PolicyUsed, RuleDecision
from slurm_agent_tools.models.diagnosis_answer import AnalyzeReply, Diagnosis
from slurm_agent_tools.models.report import WaitReply
from slurm_agent_tools.models.request import Evidence
from slurm_agent_tools.models.shapes import Alert, BriefShown, EvidenceLine, JobShown, Reply, ResourcesShown
from slurm_agent_tools.models.submission_answer import Complaint, SubmitReply, ValidateReply

pytestmark = pytest.mark.proves("answers-are-brief")
NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
SHA = "0" * 64


def short(reply: Reply) -> dict[str, Any]:
    return brief.brief(reply)


# --- what is left out ---------------------------------------------------------------------------------------------------


def fields_of(model: type[Reply]) -> dict[str, set[str]]:
    """The fields of every shape in an answer, by the shape's name."""
    whole = model.model_json_schema(mode="serialization")
    return {name: set(node.get("properties", ())) for name, node in whole["$defs"].items()} | {
        model.__name__: set(whole["properties"])
    }


SHOWN = {name: fields for reply in schemas.replies().values() for name, fields in fields_of(reply).items()}


def test_every_field_that_only_the_full_answer_has_is_a_field_of_its_shape():
    for name, fields in brief.ONLY_FULL.items():
        assert fields <= SHOWN[name], name
    assert {*brief.ONLY_WHEN, *brief.USUAL} <= set().union(*SHOWN.values())


def wait(**more: Any) -> WaitReply:
    job = JobShown(job_id="7", name="train", state="RUNNING", user="alice", submitted=NOW, sources=["squeue"])
    return WaitReply(**{"status": "running", "summary": "It is RUNNING.", "as_of": NOW, "job": job} | more)


def test_what_is_not_known_is_left_out_and_times_are_whole_seconds():
    assert short(wait()) == {
        "status": "running", "summary": "It is RUNNING.", "as_of": "2026-01-02T03:04:05Z",
        "job": {"job_id": "7", "name": "train", "state": "RUNNING"}, "data_only": ["job"],
    }  # fmt: skip


def test_what_holds_what_it_nearly_always_holds_is_left_out_and_anything_else_is_told():
    job = JobShown(job_id="7", name="train", state="FAILED", restarts=0, managed=True, exit_code=0, ended=NOW)
    told = short(wait(status="finished", job=job))["job"]
    assert set(told) == {"job_id", "name", "state", "exit_code", "ended"}
    told = short(wait(status="finished", job=job.model_copy(update={"restarts": 1, "managed": False})))["job"]
    assert (told["restarts"], told["managed"]) == (1, False)


def rule(name: str, outcome: Any, **more: Any) -> RuleDecision:
    return RuleDecision(id=name, outcome=outcome, message=f"What {name} says of it.", **more)


def decision(*rules: RuleDecision, verdict: Any = "deny") -> DecisionShown:
    ref = PolicyUsed(version="1", sha256=SHA, layers=("shipped",))
    return DecisionShown(id="d", verdict=verdict, policy=ref, rules=list(rules))


RULES = (
    rule("gpus", "pass"),
    rule("path", "pass"),
    rule("budget", "not_evaluated"),
    rule("time-limit", "warn", observed="9:00", limit=3),
    rule("memory-per-gpu", "deny", observed=8, remedy="Replace line 4 (`#SBATCH --mem=8T`) by:\n#SBATCH --mem=8G",
         evidence=(Evidence("a.sh", 4, "#SBATCH --mem=8T"),)),
)  # fmt: skip


def refused(*rules: RuleDecision, **more: Any) -> dict[str, Any]:
    reason = "\n".join(f"{one.id} (denied): {one.message}\n{one.remedy}" for one in rules if one.outcome == "deny")
    told = {"status": "blocked", "summary": f"a was not submitted: {reason}", "as_of": NOW, "blocker": "policy"}
    return short(SubmitReply(**told | {"reason": reason, "decision": decision(*rules)} | more))


def test_rules_that_passed_are_counted_and_the_others_are_told_once():
    told = refused(*RULES)
    assert told["decision"] == {
        "id": "d", "verdict": "deny", "policy": {"version": "1", "sha256": SHA}, "rules_passed": 2,
        "rules": [
            {"id": "time-limit", "outcome": "warn", "message": "What time-limit says of it.", "observed": "9:00", "limit": 3},
            {"id": "memory-per-gpu", "outcome": "deny", "message": "What memory-per-gpu says of it.",
             "remedy": "Replace line 4 (`#SBATCH --mem=8T`) by:\n#SBATCH --mem=8G"},
        ],
    }  # fmt: skip
    assert told["reason"] == "denied by memory-per-gpu"
    assert told["summary"] == "a was not submitted: denied by memory-per-gpu. What to change stands with each rule."


def test_a_decision_that_allows_says_so_and_how_many_rules_passed():
    reply = SubmitReply(status="submitted", summary="Sent.", as_of=NOW, decision=decision(*RULES[:3], verdict="allow"))
    assert short(reply)["decision"] == {"id": "d", "verdict": "allow", "rules": [], "rules_passed": 2}


def test_a_line_that_no_remedy_quotes_stays_with_its_rule():
    found = Evidence("a.sh", 9, "sbatch next.sh")
    told = refused(rule("direct-submission", "deny", remedy="Leave it out.", evidence=(found,)))
    assert told["decision"]["rules"][0]["evidence"] == [{"file": "a.sh", "line": 9, "text": "sbatch next.sh"}]


def test_a_reason_that_is_no_rules_stays_as_it_is():
    told = refused(blocker="cluster_unreachable", reason="No controller answers.", decision=None)
    assert told["reason"] == "No controller answers."


def test_a_rule_that_is_among_the_errors_is_only_named_in_the_decision():
    wrong = Complaint(path="memory-per-gpu", message=RULES[4].message, remedy="Ask for 8G.")
    told = short(
        ValidateReply(status="invalid", summary="No.", as_of=NOW, errors=[wrong], decision=decision(*RULES))
    )  # fmt: skip
    assert told["errors"] == [wrong.model_dump(exclude_none=True)]
    assert told["decision"]["rules"][1] == {"id": "memory-per-gpu", "outcome": "deny"}


def test_a_grant_is_told_and_of_the_request_what_came_otherwise():
    asked = ResourcesShown(cpus=8, memory_bytes=2**30, memory="1G", partition="gpu")
    given = asked.model_copy(update={"cpus": 16})

    def sent(granted: ResourcesShown) -> dict[str, Any]:
        reply = SubmitReply(status="submitted", summary="Sent.", as_of=NOW, requested=asked, granted=granted)
        return short(reply)

    assert sent(given)["granted"] == {"cpus": 16, "memory_bytes": 2**30, "partition": "gpu"}
    assert sent(given)["requested"] == {"cpus": 8}
    assert "requested" not in sent(asked)


@pytest.mark.parametrize(("status", "has"), [("unconfirmed", True), ("submitted", False)])
def test_the_key_to_call_again_with_is_told_where_it_is_needed(status: Any, has: bool):
    reply = SubmitReply(status=status, summary="Sent.", as_of=NOW, token="t", idempotency_key="k")
    assert ({"token", "idempotency_key"} <= set(short(reply))) is has


def test_no_text_and_no_line_of_a_log_stands_twice():
    lines = [EvidenceLine(file=f"{n}.err", line=n, text="CUDA out of memory") for n in (1, 2, 3)]
    explained = "The GPU's memory was not enough for the model."
    found = Diagnosis(
        category="gpu-out-of-memory", confidence=0.9, escalation="high", explanation=explained, evidence=lines[:2],
        suggestions=[explained, "Take a smaller batch, or a GPU with more memory."],
    )  # fmt: skip
    told = short(AnalyzeReply(status="ok", summary=f"Job 7: {explained}", as_of=NOW, diagnosis=found, errors=lines))
    assert "explanation" not in told["diagnosis"]
    assert told["diagnosis"]["suggestions"] == ["Take a smaller batch, or a GPU with more memory."]
    assert told["diagnosis"]["evidence"] == [{"file": "1.err", "line": 1, "text": "CUDA out of memory"}]
    assert "errors" not in told


def test_of_many_lines_the_first_are_shown_and_the_others_counted():
    lines = [EvidenceLine(file="a.err", line=n, text=f"error {n}") for n in range(1, 9)]
    told = short(AnalyzeReply(status="ok", summary="So.", as_of=NOW, errors=lines))
    assert ([line["line"] for line in told["errors"]], told["errors_not_shown"]) == ([1, 2, 3, 4, 5], 3)


def test_of_an_arrays_tasks_those_that_failed_are_listed():
    tasks = [BriefShown(job_id=f"7_{n}", name="train", state="FAILED", exit_code=3, nodes="n1") for n in range(10)]
    tasks += [BriefShown(job_id="7_20", name="train", state="COMPLETED")]
    counts = {"FAILED": 12, "COMPLETED": 20, "RUNNING": 1}
    told = short(wait(tasks=tasks, tasks_by_state=counts, tasks_not_shown=22))
    assert told["tasks"][0] == {"job_id": "7_0", "state": "FAILED", "exit_code": 3, "nodes": "n1"}
    assert (len(told["tasks"]), told["tasks_not_shown"], told["tasks_by_state"]) == (8, 4, counts)


# --- a repeated wait ----------------------------------------------------------------------------------------------------

LATER = {"as_of": NOW + timedelta(seconds=45), "summary": "It is RUNNING still. Call again."}
FAILED = Alert(severity="critical", code="job-failed", message="One of its tasks failed.", job_id="7")


def repeated(*replies: WaitReply, **ask: Any) -> list[dict[str, Any]]:
    told = brief.LastAnswers()
    asked = WaitForJob(**{"job_id": "7"} | ask)
    return [told.new("wait_for_job", asked, brief.answer(reply, asked)) for reply in replies]


def test_a_job_that_goes_on_as_before_is_told_in_a_few_words():
    first = wait(summary="It is RUNNING. Call again.", next_poll_seconds=30)
    whole, again = repeated(first, wait(**LATER, next_poll_seconds=30))
    assert whole == short(first)
    assert again == {
        "status": "running", "summary": "It is RUNNING still.", "as_of": "2026-01-02T03:04:50Z",
        "job": {"job_id": "7", "state": "RUNNING"}, "next_poll_seconds": 30,
    }  # fmt: skip


def test_what_changed_is_told_and_what_was_told_is_not():
    tasks = [BriefShown(job_id=f"7_{n}", name="train", state="FAILED", exit_code=1) for n in (1, 2)]
    one = wait(tasks=tasks[:1], tasks_by_state={"FAILED": 1, "RUNNING": 2}, alerts=[FAILED])
    two = wait(**LATER, tasks=tasks, tasks_by_state={"FAILED": 2, "RUNNING": 1}, alerts=[FAILED])
    _, again = repeated(one, two)
    assert again["tasks"] == [{"job_id": "7_2", "state": "FAILED", "exit_code": 1}]
    assert again["tasks_by_state"] == {"FAILED": 2, "RUNNING": 1}
    assert ("alerts" in again, again["data_only"]) == (False, ["tasks"])


def test_a_new_state_comes_with_its_reason_and_is_marked_as_data():
    held = JobShown(job_id="7", name="train", state="PENDING", reason="JobHeldUser")
    _, again = repeated(wait(), wait(status="pending", job=held))
    assert again["job"] == {"job_id": "7", "state": "PENDING", "reason": "JobHeldUser"}
    assert again["data_only"] == ["job"]


def test_the_jobs_of_a_wait_for_several_are_told_where_they_changed():
    def at(seconds: int, state: str) -> WaitReply:
        going = BriefShown(job_id="7", name="a", state="RUNNING", run_seconds=seconds)
        return wait(jobs=[going, BriefShown(job_id="8", name="b", state=state, run_seconds=seconds)])

    _, same, ended = repeated(at(1, "RUNNING"), at(50, "RUNNING"), at(99, "FAILED"), job_id=None, job_ids=["7", "8"])
    assert "jobs" not in same
    assert [job["job_id"] for job in ended["jobs"]] == ["8"]


def test_in_full_everything_is_told_again():
    first, second = repeated(wait(), wait(), detail="full")
    assert first == second
    assert "partition" in first["job"]


def test_another_job_another_cluster_and_another_session_were_told_nothing():
    told = brief.LastAnswers()
    body = short(wait())
    assert told.new("wait_for_job", WaitForJob(job_id="7"), body) == body
    for other in (WaitForJob(job_id="8"), WaitForJob(job_id="7", cluster="lab")):
        assert told.new("wait_for_job", other, body) == body
    assert brief.LastAnswers().new("wait_for_job", WaitForJob(job_id="7"), body) == body
    assert told.new("wait_for_job", WaitForJob(job_ids=["7"]), body) != body


def test_other_tools_say_the_same_again():
    told = brief.LastAnswers()
    body = {"status": "ok", "summary": "Idle.", "as_of": "now"}
    assert [told.new("get_status", GetStatus(), body) for _ in range(2)] == [body, body]


def test_of_very_many_jobs_those_that_were_asked_for_last_are_remembered():
    told, body = brief.LastAnswers(), short(wait())
    for number in range(201):
        told.new("wait_for_job", WaitForJob(job_id=str(number)), body)
    assert told.new("wait_for_job", WaitForJob(job_id="200"), body) != body
    assert told.new("wait_for_job", WaitForJob(job_id="0"), body) == body


# --- real answers: nine everyday tasks over the Slurm in memory ---------------------------------------------------------


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Agent:
    return anyio.run(everyday.replay, tmp_path_factory.mktemp("everyday"))


def of(played: Agent, task: str, tool: str, **has: Any) -> list[Told]:
    return [
        one
        for one in played.told
        if (one.task, one.tool) == (task, tool) and has.items() <= one.body.items()
    ]  # fmt: skip


def test_nine_everyday_tasks_take_less_than_110_kb(played: Agent):
    assert len({one.task for one in played.told}) == 9
    assert 105 <= len(played.told) <= 120
    assert played.size < everyday.MOST


@pytest.mark.parametrize(
    ("task", "tool", "has", "most"),
    [
        ("train", "wait_for_job", {"status": "running"}, 500),
        ("train", "wait_for_job", {"status": "finished"}, 2_000),
        ("resume", "wait_for_job", {"status": "finished"}, 2_000),
        ("array", "wait_for_job", {"status": "finished"}, 2_500),
        ("array", "wait_for_job", {"status": "running"}, 2_500),
        ("train", "save_result", {"status": "saved"}, 1_200),
        ("array", "save_result", {"status": "saved"}, 1_200),
        ("look", "get_status", {}, 3_000),
        ("resume", "analyze_log", {}, 2_500),
        ("train", "submit_job", {"status": "submitted"}, 1_000),
    ],
)
def test_a_real_answer_keeps_to_its_bytes(played: Agent, task: str, tool: str, has: dict[str, Any], most: int):
    found = of(played, task, tool, **has)
    assert found
    assert [one.size for one in found if one.size >= most] == []


def test_a_refusal_of_five_faults_takes_less_than_3_kb_with_all_its_remedies(played: Agent):
    told = of(played, "five_faults", "submit_job", status="blocked")[0]
    rules = told.body["decision"]["rules"]
    assert len(rules) == 6  # of the memory two: it is beyond the policy, and beyond the nodes
    assert all(one["message"] and one["remedy"] for one in rules)
    assert told.size < 3_000


def test_a_wait_that_is_repeated_without_news_takes_less_than_300_bytes(played: Agent):
    first, *others = of(played, "train", "wait_for_job", status="running")
    assert len(others) > 2
    assert max(one.size for one in others) < 300 < first.size


def test_a_report_is_told_once(played: Agent):
    first, again = of(played, "train", "wait_for_job", status="finished")
    assert ("report" in first.body, "report" in again.body) == (True, False)
    assert again.size < 300


def test_no_brief_answer_holds_a_null_or_an_empty_place(played: Agent):
    def empty(value: Any, place: str) -> Iterator[str]:
        if value in (None, [], {}) and place != ".decision.rules":
            yield place
        for name, inner in value.items() if isinstance(value, dict) else ():
            yield from empty(inner, f"{place}.{name}")
        for item in value if isinstance(value, list) else ():
            yield from empty(item, place)

    assert [(one.tool, place) for one in played.told for place in empty(one.body, "")] == []


def test_no_brief_answer_says_a_longer_text_twice(played: Agent):
    def texts(value: Any) -> Iterator[str]:
        if isinstance(value, str):
            yield from (line for line in value.splitlines() if len(line) > 60 and " " in line)
        for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            yield from texts(inner)

    for one in played.told:
        found = [text for name, value in one.body.items() if name != "reason" for text in texts(value)]
        assert len(found) == len(set(found)), json.dumps(one.body)
