from __future__ import annotations

import re
from dataclasses import replace

import pytest
from tests.unit.diagnosis.records import ASKED as GIVEN
from tests.unit.diagnosis.records import job as failed_job
from tests.unit.insights.parts import GIB, MIB, job, step

from slurm_agent_tools.diagnosis.classify import diagnose
from slurm_agent_tools.diagnosis.completion import ReportContext, report
from slurm_agent_tools.diagnosis.next_request import EfficiencyTargets
from slurm_agent_tools.insights.usage import GpuUse
from slurm_agent_tools.models.diagnosis_answer import Diagnosis
from slurm_agent_tools.models.job_resources import Resources
from slurm_agent_tools.models.report import QueueSeen
from slurm_agent_tools.models.shapes import ResourcesShown
from slurm_agent_tools.settings import EfficiencySettings, RateSettings
from slurm_agent_tools.units import JobId

SECTIONS = ["JOB SUBMISSION SUMMARY", "QUEUE ANALYSIS", "MONITORING", "COMPLETION METRICS", "ERROR HANDLING"]
ASKED = ResourcesShown(partition="cpu", gpus=1, cpus=4, memory_bytes=8 * GIB, memory="8G", time_limit="02:00:00")
RATES = RateSettings(currency="EUR", cpu_hour=0.02, gpu_hour={"a100": 1.5, "other": 1.0})
BOTH = EfficiencyTargets(rates=RATES)


def told(record, tasks=(), **environment):
    return report(record, tasks, ReportContext(**({"requested": ASKED} | environment)))


def fields(text: str) -> dict[str, str]:
    return dict(re.findall(r"^- ([^:?]+[:?]) (.*)$", text, re.MULTILINE))


def directives(found):
    return [change.directive for change in found.recommendation.changes]


# --- the text ------------------------------------------------------------------------------------------------------


@pytest.mark.proves("report-sections")
def test_a_report_has_the_five_sections_in_their_order_and_the_measured_figures():
    found = told(job(step(cpu=200.0, mem=4 * GIB), step("0", cpu=0.0, mem=2 * GIB)))
    facts = fields(found.text)

    assert [line[3:] for line in found.text.splitlines() if line.startswith("## ")] == SECTIONS
    assert (found.queue_seconds, found.run_seconds, found.max_rss_bytes) == (300, 100, 4 * GIB)
    assert found.outcome == "COMPLETED (exit code 0)"
    assert facts["Resources:"] == "1 GPU, 4 CPUs, 8G memory"
    assert facts["Time in the queue:"] == "00:05:00"
    assert facts["Resource utilization:"] == "GPU not measured, memory 50 %, CPU 50 %"
    assert facts["CPU efficiency:"] == "50 % (00:03:20 of 00:06:40 CPU time)"
    assert facts["Memory efficiency:"] == "50 % (4G of 8G)"
    assert facts["Total runtime:"] == "00:01:40 (1 % of the time limit)"
    assert facts["Error type:"] == "none"
    assert facts["Retry?"] == "no: a person or the orchestrator decides"


@pytest.mark.proves("not-measured")
def test_what_was_not_measured_is_said_and_never_a_number():
    found = told(
        job(step(cpu=None, mem=None, tres_usage_in_tot={}), allocated={"gres/gpu": 1}), requested=ResourcesShown()
    )
    facts = fields(found.text)

    assert found.efficiency.model_dump() == {"cpu": None, "memory": None, "gpu": None, "time": 0.0139}
    assert (found.max_rss_bytes, found.max_rss, found.gpu.utilization) == (None, None, None)
    for name in ("CPU efficiency:", "Memory efficiency:", "GPU efficiency:", "Peak memory of one task:"):
        assert facts[name] == "not measured"
    assert facts["Estimated cost:"].startswith("no rates are set (")
    assert found.recommendation.verdict == "NOT_MEASURED"


def test_a_job_that_never_started_has_no_times():
    found = told(failed_job("CANCELLED", started=None, elapsed_seconds=None, ended=None), requested=ResourcesShown())
    assert (found.queue_seconds, found.run_seconds, found.cost.cpu_hours) == (None, None, None)
    assert fields(found.text)["Time in the queue:"] == "not measured"


def test_an_array_counts_its_tasks_by_state_and_shows_the_steps_of_each():
    tasks = [
        job(step(cpu=400.0, mem=7 * GIB), job_id=JobId(9, task=0)),
        job(step(cpu=10.0, mem=GIB), job_id=JobId(9, task=1), state="FAILED", exit_code=5),
    ]
    found = told(job(state="FAILED", job_id=JobId(9), exit_code=5), tasks)

    assert "Array tasks: 1 COMPLETED, 1 FAILED" in found.text
    assert [item.step_id for item in found.steps] == ["9_0.batch", "9_1.batch"]
    assert [item.cpu_efficiency for item in found.steps] == [1.0, 0.025]
    assert found.efficiency.cpu == 0.5125


def test_of_many_steps_some_are_shown_and_the_rest_is_counted():
    found = told(job(*(step(str(number), mem=MIB) for number in range(60))))
    assert (len(found.steps), found.steps_not_shown) == (10, 50)
    assert "Steps not shown here: 50" in found.text


def test_a_failed_job_gets_its_error_type_and_what_to_do():
    facts = fields(told(failed_job("OUT_OF_MEMORY")).text)
    assert facts["Error type:"].startswith("host-out-of-memory")
    assert "analyze_log on 71" in facts["Suggested fix:"]
    assert facts["Retry?"].startswith("no")
    assert "the log was not read" in facts["Error type:"]


def test_a_report_never_speaks_of_a_log_that_nobody_read():
    found = told(failed_job("FAILED", exit_code=1), cause="Its script ended with exit code 1.")
    facts = fields(found.text)
    assert facts["Error type:"] == "not known yet: the log was not read for this report"
    assert facts["Explanation:"] == "Its script ended with exit code 1."
    assert "log says" not in found.text


def test_a_report_tells_what_analyze_log_found_and_proposed():
    seen = Diagnosis(
        category="time-limit", confidence=0.95, escalation="high", explanation="At that pace it takes 4 hours.",
        suggestions=["Write checkpoints."], proposed_change="#SBATCH --time=04:36:00",
    )  # fmt: skip
    found = told(failed_job("TIMEOUT"), found=seen)
    facts = fields(found.text)
    assert [(change.what, change.directive) for change in found.recommendation.changes] == [
        ("time", "#SBATCH --time=04:36:00")
    ]
    (unnamed,) = told(failed_job("TIMEOUT"), found=seen.model_copy(update={"category": "x"})).recommendation.changes
    assert (unnamed.what, unnamed.directive) == ("other", "#SBATCH --time=04:36:00")
    assert facts["Error type:"] == "time-limit (from analyze_log)"
    assert facts["Explanation:"] == seen.explanation
    assert facts["Suggested fix:"] == "Write checkpoints."


def test_a_proposal_without_the_log_is_the_least_and_names_who_may_know_more():
    (change,) = told(failed_job("TIMEOUT")).recommendation.changes
    assert change.what == "time"
    assert change.why.startswith("at least: ")
    assert "analyze_log 71" in change.why


@pytest.mark.parametrize(("peak", "least"), [(GIB, True), (20 * GIB, False)])
def test_memory_after_a_run_whose_need_nobody_knows_is_told_as_the_least(peak, least):
    record = failed_job("OUT_OF_MEMORY", steps=(step(cpu=1.0, mem=peak),))
    (change,) = told(record, found=diagnose(record, (), ())).recommendation.changes
    told_so = "; at least, because the need is not known: ask for twice as much if it runs out again"
    assert change.why == "as analyze_log found" + (told_so if least else "")


@pytest.mark.parametrize(
    ("state", "code", "signal", "outcome", "line"),
    [
        ("FAILED", 1, None, "FAILED (exit code 1)", "1"),
        ("FAILED", 0, 9, "FAILED (signal 9)", "0:9 (ended by signal 9)"),
        ("TIMEOUT", 0, None, "TIMEOUT", "0, but it ended TIMEOUT"),
        ("TIMEOUT", 0, 15, "TIMEOUT", "0:15 (ended by signal 15)"),
        ("OUT_OF_MEMORY", 0, 125, "OUT_OF_MEMORY", "0:125 (Slurm's mark for out of memory)"),
        ("CANCELLED", None, None, "CANCELLED", "not known"),
    ],
)
def test_no_failure_is_told_as_the_exit_code_0(state, code, signal, outcome, line):
    found = told(failed_job(state, exit_code=code, signal=signal))
    assert (found.outcome, fields(found.text)["Exit code:"]) == (outcome, line)


def test_a_request_that_cannot_be_smaller_is_not_to_be_adjusted():
    given = {"cpu": 1, "mem": 100 * MIB, "node": 1}
    small = Resources(cpus=1, memory_bytes=100 * MIB, time_limit_seconds=300)
    found = told(job(step(cpu=0.1, mem=MIB), allocated=given, resources=small, seconds=1))
    assert (found.recommendation.verdict, found.recommendation.changes) == ("MINIMAL", [])
    assert "the least there is" in found.recommendation.text


def test_where_only_the_time_can_be_smaller_the_text_says_that_too():
    given = {"cpu": 1, "mem": GIB, "node": 1}
    long = Resources(cpus=1, memory_bytes=GIB, time_limit_seconds=7200)
    found = told(job(step(cpu=5.0), allocated=given, resources=long, seconds=100)).recommendation
    assert (found.verdict, [change.what for change in found.changes]) == ("ADJUST", ["time"])
    assert "No smaller CPU request is proposed, as it asked for about the least there is: memory not" in found.text
    assert found.text.endswith(" Only a shorter time limit is proposed.")
    asked = job(step(cpu=5.0), allocated=given, resources=replace(long, time_limit_seconds=300), seconds=100)
    assert "shorter time limit" not in told(asked).recommendation.text


@pytest.mark.parametrize(
    ("seconds", "line", "why"),
    [
        (2, "00:05:00", "it ran 00:00:02; this is the least that a limit is shortened to, and"),
        (200, "00:05:00", "it ran 00:03:20; this is 50 % more, and"),
        (1000, "00:25:00", "it ran 00:16:40; this is 50 % more, and"),
        (1001, "00:30:00", "it ran 00:16:41; this is 50 % more, rounded up, and"),
    ],
)
def test_a_shorter_limit_says_what_it_rests_on(seconds, line, why):
    change = told(job(step(cpu=1.0, mem=GIB), seconds=seconds)).recommendation.changes[-1]
    assert (change.what, change.directive) == ("time", f"#SBATCH --time={line}")
    assert change.why.startswith(why)


def small_job(cpu=0.01, **facts):
    """As the example of `init` is: 3 seconds, one CPU, little memory."""
    given = {"cpu": 1, "mem": 200 * MIB, "node": 1}
    asked = Resources(cpus=1, memory_bytes=200 * MIB, time_limit_seconds=300)
    return told(job(step(cpu=cpu, mem=6 * MIB), allocated=given, resources=asked, seconds=3, **facts))


def test_a_little_cpu_time_is_not_told_as_none_and_none_is_not_measured():
    assert fields(small_job().text)["CPU efficiency:"] == "less than 1 % (00:00:00 of 00:00:03 CPU time)"
    assert fields(small_job(cpu=0.0).text)["CPU efficiency:"] == "not measured"


def test_a_tiny_job_is_told_of_the_least_memory_and_of_no_cpu_that_it_could_spare():
    found = small_job().recommendation
    (memory,) = found.changes
    assert memory.directive == "#SBATCH --mem=128M"
    assert memory.why.startswith("the peak on a node, 6M, and 20 % would be less than the 128M that are the least")
    assert found.text.startswith("It asked for more memory than it used: memory 3 %, CPU less than 1 %")
    assert found.text.endswith("It ran 00:00:03: so short a run shows little of what a longer one needs.")


def test_the_queue_is_told_as_it_was_seen():
    facts = fields(told(job(step()), queue=QueueSeen(depth=7, utilization=0.42, estimated_wait_seconds=90)).text)
    assert facts["Queue depth now:"] == "7 pending jobs"
    assert facts["Cluster utilization now:"] == "42 %"
    assert facts["Estimated wait at submission:"] == "00:01:30"


def test_a_job_name_cannot_add_lines():
    text = told(job(replace(step("0"), name="x\n## Forged"), step("1"), name="a\n# Forged\n`x`\udce9")).text
    assert "\n# Forged" not in text
    assert "\n## Forged" not in text
    assert text.encode()


# --- GPUs and cost -------------------------------------------------------------------------------------------------


def test_somebody_else_is_believed_where_the_accounting_tells_nothing_of_the_gpus():
    record = job(step(), allocated={"gres/gpu": 2})
    found = told(record, gpus=GpuUse(0.875, source="prometheus"))
    assert (found.gpu.utilization, found.gpu.source) == (0.875, "prometheus")
    assert fields(found.text)["GPU efficiency:"] == "88 % (by prometheus)"
    silent = told(record, gpus=GpuUse(note="Prometheus: no answer within 3 s"))
    assert fields(silent.text)["GPU efficiency:"] == "not measured (Prometheus: no answer within 3 s)"


def test_hours_are_told_without_rates_and_priced_with_them():
    record = job(step(), seconds=3600, allocated={"gres/gpu": 3, "gres/gpu:a100": 2})
    plain, priced = told(record), told(record, wanted=BOTH)

    assert (plain.cost.cpu_hours, plain.cost.gpu_hours) == (4.0, 3.0)
    assert (plain.cost.amount, plain.cost.note) == (None, "no rates are set")
    assert plain.cost.gpu_hours_by_type == {"a100": 2.0, "other": 1.0}
    assert priced.cost.amount == pytest.approx(4 * 0.02 + 2 * 1.5 + 1.0)
    assert fields(priced.text)["Estimated cost:"] == "4.08 EUR (3 GPU-hours, 4 CPU-hours)"


@pytest.mark.parametrize(
    ("rates", "gpus", "amount", "note"),
    [
        (
            {"gpu_hour": {"a100": 2.0}},
            {"gres/gpu": 1, "gres/gpu:h100": 1},
            None,
            "no rate is set for GPUs of type h100",
        ),
        ({"gpu_hour": {"a100": 2.0}}, {"gres/gpu": 1, "gres/gpu:a100": 1}, 2.0, "GPUs alone: no rate is set for CPUs"),
        ({"gpu_hour": {"a100": 2.0}}, {}, None, "no rate is set for CPUs"),
        ({"cpu_hour": 0.5}, {}, 2.0, None),
        ({"cpu_hour": 0.5}, {"gres/gpu": 1}, None, "no rate is set for GPUs of type other"),
    ],
)
def test_a_price_is_only_told_where_every_kind_has_a_rate(rates, gpus, amount, note):
    wanted = EfficiencyTargets(rates=RateSettings(currency="EUR", **rates))
    cost = told(job(step(), seconds=3600, allocated=gpus), wanted=wanted).cost
    assert (cost.amount, cost.note) == (amount, note)


# --- what to ask for next time -------------------------------------------------------------------------------------


def test_from_the_set_share_on_a_job_is_efficient_and_nothing_is_proposed():
    found = told(job(step(cpu=320.0, mem=int(6.4 * GIB) + 1)))
    assert found.recommendation.verdict == "EFFICIENT"
    assert found.recommendation.changes == []
    assert "the target is 95 %" in found.recommendation.text
    strict = EfficiencyTargets(efficiency=EfficiencySettings(cpu=0.9))
    assert told(job(step(cpu=320.0, mem=7 * GIB)), wanted=strict).recommendation.verdict == "ADJUST"


def test_too_large_a_request_gets_what_was_used_and_a_margin():
    found = told(job(step(cpu=160.0, mem=2 * GIB), seconds=100), wanted=BOTH)

    assert found.recommendation.verdict == "ADJUST"
    assert directives(found) == ["#SBATCH --mem=2458M", "#SBATCH --cpus-per-task=2", "#SBATCH --time=00:05:00"]
    memory, cpus, time = found.recommendation.changes
    assert memory.saves == "5.6G of 8G"
    assert cpus.saves == "up to 2 of 4 CPUs, 0.0556 CPU-hours a run, 0.00 EUR"
    assert time.saves == "01:55:00 of 02:00:00"
    assert "Proposed, not sent: `#SBATCH --mem=2458M`" in found.text


def test_memory_alone_is_proposed_where_the_cpus_were_busy():
    found = told(job(step(cpu=390.0, mem=GIB)))
    assert directives(found)[0] == "#SBATCH --mem=1229M"
    assert not any("cpus" in line for line in directives(found))


def test_fewer_cpus_come_with_the_memory_that_was_there_since_it_may_follow_from_them():
    found = told(job(step(cpu=100.0, mem=7 * GIB)))
    assert directives(found)[:2] == ["#SBATCH --mem=8G", "#SBATCH --cpus-per-task=1"]


def test_steps_that_ran_at_once_are_given_memory_for_all_of_them():
    found = told(job(step("0", cpu=190.0, mem=GIB), step("1", cpu=190.0, mem=2 * GIB)))
    assert directives(found)[0] == "#SBATCH --mem=3687M"


def test_a_job_over_several_nodes_is_asked_for_by_node():
    given = {"cpu": 8, "mem": 32 * GIB, "node": 2}
    wide = step("0", cpu=780.0, mem=2 * GIB, tasks=4, allocated=given)
    assert directives(told(job(wide, allocated=given)))[0] == "#SBATCH --mem=4916M"


def test_memory_of_a_job_with_gpus_is_asked_for_by_gpu():
    given = {"cpu": 4, "mem": 64 * GIB, "node": 1, "gres/gpu": 2}
    assert directives(told(job(step(cpu=390.0, mem=20 * GIB), allocated=given)))[0] == "#SBATCH --mem-per-gpu=12G"


def test_no_gpu_is_left_without_the_memory_that_opening_it_takes():
    given = {"cpu": 4, "mem": 64 * GIB, "node": 1, "gres/gpu": 2}
    assert directives(told(job(step(cpu=390.0, mem=30 * MIB), allocated=given)))[0] == "#SBATCH --mem-per-gpu=2G"
    little = given | {"mem": 2 * GIB}
    assert "mem-per-gpu" not in str(directives(told(job(step(cpu=390.0, mem=30 * MIB), allocated=little))))


def test_a_small_job_keeps_room_for_its_interpreter():
    assert directives(told(job(step(cpu=390.0, mem=3 * MIB))))[0] == "#SBATCH --mem=128M"


def test_tasks_of_a_step_are_never_taken_away():
    wide = step("0", cpu=100.0, mem=7 * GIB, tasks=4)
    found = told(job(wide, allocated={"cpu": 4, "mem": 28 * GIB}))
    assert found.recommendation.verdict == "ADJUST"
    assert not any("cpus" in line for line in directives(found))


def test_steps_at_the_same_time_each_keep_their_task():
    found = told(job(step(cpu=0.0), *(step(name, cpu=30.0, mem=GIB) for name in ("0", "1", "2", "3"))))
    assert not any("cpus" in line for line in directives(found))


def test_het_components_are_sized_by_a_person():
    parts = [job(step(cpu=1.0, mem=GIB), job_id=JobId(9, component=number)) for number in (0, 1)]
    found = told(job(job_id=JobId(9)), parts)
    assert (found.recommendation.verdict, found.recommendation.changes) == ("ADJUST", [])


@pytest.mark.parametrize(("state", "line"), [("OUT_OF_MEMORY", "--mem="), ("TIMEOUT", "--time=")])
def test_a_job_that_was_killed_for_its_limits_never_gets_a_smaller_proposal(state, line):
    record = failed_job(state, steps=(step(cpu=1.0, mem=MIB),), allocated={"cpu": 4, "mem": 16 * GIB, "node": 1})
    found = told(record)
    assert found.recommendation.verdict == "ADJUST"
    assert [item for item in directives(found) if line in item] == directives(found)
    size = re.search(r"--mem=(\d+)G", found.text)
    assert state == "TIMEOUT" or int(size[1]) * GIB > (GIVEN.memory_bytes or 0)
    assert state == "OUT_OF_MEMORY" or "--time=03:00:00" in directives(found)[0]


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED", "NODE_FAIL", "PREEMPTED"])
def test_a_job_that_did_not_complete_is_not_judged(state):
    record = failed_job(state, exit_code=1, steps=(step(cpu=1.0, mem=MIB),), allocated={"cpu": 4, "mem": GIB})
    assert told(record).recommendation.verdict == "NOT_JUDGED"
    assert told(record).recommendation.changes == []


@pytest.mark.parametrize(
    ("seconds", "limit", "line"),
    [
        (60, 7200, "00:05:00"), (2400, 7200, "01:00:00"), (3600, 14400, "01:30:00"),
        (40000, 200000, "17:00:00"), (5000, 7200, None), (100, -1, "00:05:00"), (100, None, None),
    ],
)  # fmt: skip
def test_time_is_what_it_ran_and_half_as_much_in_whole_steps(seconds, limit, line):
    known = Resources(time_limit_seconds=limit)
    found = told(job(step(cpu=1.0, mem=MIB), seconds=seconds, resources=known))
    wanted = [] if line is None else [f"#SBATCH --time={line}"]
    assert [item for item in directives(found) if "--time" in item] == wanted
