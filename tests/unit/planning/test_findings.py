"""What a cluster does badly: each defect by itself, six of them in one week, and nothing of weeks without any."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.planning.clusters import (
    DAY,
    DEFECTS,
    END,
    GIB,
    HOUR,
    SPAN,
    Asked,
    bad_week,
    beside_the_reservation,
    closed_partition,
    cpu_jobs_on_gpu_nodes,
    cpus_per_gpu,
    empty_reservation,
    everyday,
    healthy,
    over_asked_memory,
    over_asked_time,
    week,
)

from slurm_agent_tools.models.accounted import AccountedJob, ClusterRecord, NodeSpan
from slurm_agent_tools.planning.findings.ranked import find_all

COURSE = empty_reservation(END - SPAN)

ALONE = {
    "memory-over-asked": (over_asked_memory, ()),
    "time-over-asked": (over_asked_time, ()),
    "cpu-jobs-on-gpu-nodes": (cpu_jobs_on_gpu_nodes, ()),
    "cpus-per-gpu": (cpus_per_gpu, ()),
    "idle-beside-queue": (closed_partition, ()),
    "empty-reservation": (beside_the_reservation, (COURSE,)),
}


def above_low(record: ClusterRecord):
    return {one.id: one for one in find_all(record).findings if one.level != "low"}


def every(record: ClusterRecord, change) -> ClusterRecord:
    return replace(record, jobs=tuple(change(job) for job in record.jobs))


@pytest.mark.proves("findings-name-defects")
def test_a_week_with_six_defects_has_these_six_and_no_others():
    report = find_all(bad_week())
    assert {one.id for one in report.findings if one.level != "low"} == set(DEFECTS)
    assert [one.level for one in report.findings] == sorted(one.level for one in report.findings)  # high before low
    assert sum(one.level != "low" for one in report.findings) == 6


@pytest.mark.parametrize("kind", ALONE)
def test_each_defect_by_itself_is_found_with_its_cost_and_the_change(kind):
    jobs, kept = ALONE[kind]
    found = above_low(week([*everyday(), *jobs()], kept))
    assert set(found) == {kind}
    finding = found[kind]
    assert finding.share > 0
    assert any(value for value in (finding.cost.core_hours, finding.cost.gpu_hours, finding.cost.waiting_hours))
    assert finding.evidence
    assert finding.for_users or finding.for_administrators
    user = DEFECTS[kind]
    assert user is None or finding.who[0] == user


@pytest.mark.proves("findings-name-defects")
@given(seed=st.integers(0, 10**6), load=st.floats(0.15, 0.6))
@settings(max_examples=12, deadline=None)
def test_a_healthy_week_has_nothing_above_low(seed, load):
    record = week(healthy(seed, load))
    assert above_low(record) == {}


def test_memory_is_advised_with_headroom_above_what_was_used():
    (finding,) = find_all(week([*everyday(), *over_asked_memory()])).findings
    assert finding.for_users == ("#SBATCH --mem=4916M",)
    # 64 jobs of 2.5 h held 80 of 187.5 GiB in place of 4.8: so much of 64 cores.
    assert finding.cost.core_hours == pytest.approx(64 * 2.5 * 64 * (80 - 4.8) / 187.5, rel=0.01)


def test_memory_beside_which_cores_are_taken_all_the_same_costs_nothing():
    asked = (replace(one, cpus=32) for one in over_asked_memory())
    assert "memory-over-asked" not in above_low(week([*everyday(), *asked]))


def test_memory_of_jobs_that_once_ran_out_of_it_is_not_advised_below_that():
    record = week([*everyday(), *over_asked_memory()])
    killed = record.jobs[0]
    killed = replace(
        killed, user="ann", name="assemble-99", state="OUT_OF_MEMORY", memory=60 * GIB, memory_used=60 * GIB
    )
    found = find_all(replace(record, jobs=(*record.jobs, killed))).findings
    assert "memory-over-asked" not in {one.id for one in found}


def test_time_that_is_over_asked_while_nobody_waits_is_low():
    asked = [replace(one, at=1 + 1.3 * number) for number, one in enumerate(over_asked_time())]
    (finding,) = (one for one in find_all(week([*everyday(), *asked])).findings if one.id == "time-over-asked")
    assert finding.level == "low"


def test_a_limit_that_is_the_partitions_own_is_one_that_an_administrator_can_change():
    found = above_low(week([*everyday(), *over_asked_time()]))["time-over-asked"]
    assert "a shorter MaxTime of partition cpu" in found.for_administrators[0]
    record = week([*everyday(), *over_asked_time()])
    silent = replace(record.partitions["cpu"], default_time_seconds=None)
    (change,) = above_low(replace(record, partitions={"cpu": silent}))["time-over-asked"].for_administrators
    assert change.startswith("DefaultTime=01:16:00 or more of partition cpu")
    shorter = (replace(one, limit=100) for one in over_asked_time())
    assert above_low(week([*everyday(), *shorter]))["time-over-asked"].for_administrators == ()


def test_gpus_that_a_closed_partition_holds_are_told_with_the_limit_that_closes_it():
    finding = above_low(week([*everyday(), *closed_partition()]))["idle-beside-queue"]
    assert finding.for_administrators == ("MaxTime=14:00:00 of partition special (slurm.conf)",)
    assert finding.for_users[:2] == ("#SBATCH --partition=gpu,special", "#SBATCH --time=04:00:00")


def test_nodes_of_a_kind_that_jobs_did_not_ask_for_are_not_idle_beside_them():
    asked = (replace(one, kind="a100") for one in closed_partition())
    assert above_low(week([*everyday(), *asked])) == {}


def test_nodes_that_were_down_or_reserved_for_work_are_not_idle():
    record = week([*everyday(), *closed_partition()])
    gone = (NodeSpan("DOWN", frozenset({"asspec01"}), record.begin, record.end),)
    assert above_low(replace(record, outages=gone)) == {}
    assert above_low(replace(record, kept=gone)) == {}
    drained = {name: replace(node, state="drain") for name, node in record.nodes.items() if "spec" in name}
    assert above_low(replace(record, outages=None, nodes={**record.nodes, **drained})) == {}


def test_a_reservation_for_maintenance_may_be_empty():
    span = replace(COURSE, maintenance=True)
    assert above_low(week([*everyday(), *beside_the_reservation()], [span])) == {}


def test_a_reservation_that_is_used_is_no_finding():
    record = week([*everyday(), *beside_the_reservation()], [COURSE])
    used = AccountedJob("kim", "lab", ("cpu",), "COMPLETED", COURSE.start, COURSE.start, COURSE.end, 2, GIB, 0, 1,
                        frozenset({"ascpu02"}))  # fmt: skip
    assert above_low(replace(record, jobs=(*record.jobs, used))) == {}


def test_what_few_jobs_or_hours_show_is_not_told():
    few = find_all(week([*over_asked_memory()][:30]))
    assert (few.findings, few.bottlenecks) == ((), ())
    assert few.too_few == "Too few jobs to say: 30 ended, 50 are needed."
    late = [replace(one, at=160.0) for one in over_asked_time()]
    short = week([replace(one, run=0.1) for one in late])
    assert find_all(short).too_few.startswith("Too short a time to say: 8 hours")
    assert find_all(replace(short, jobs=())).too_few.startswith("Too few jobs to say: 0 ended")


def test_few_runs_of_one_script_say_nothing_of_it():
    asked = [replace(one, memory=150.0, run=40) for one in over_asked_memory()][:4]
    assert find_all(week([*everyday(), *asked])).findings == ()


def test_of_ones_own_jobs_only_what_they_ask_for_is_judged():
    report = find_all(replace(bad_week(), own=True))
    assert {one.id for one in report.findings} == {"memory-over-asked", "time-over-asked"}
    assert report.bottlenecks == ()
    assert any("Only your own jobs" in text for text in report.not_measured)


def test_what_was_not_measured_is_said():
    report = find_all(every(bad_week(), lambda job: replace(job, memory_used=None)))
    assert "memory-over-asked" not in {one.id for one in report.findings}
    said = " ".join(report.not_measured)
    assert "GPU use is not in this accounting" in said
    assert "Memory use is not in this accounting" in said
    plain = find_all(every(bad_week(), lambda job: replace(job, gpus=0)))
    assert "No job has GPUs in this accounting" in " ".join(plain.not_measured)
    assert "No job has GPUs" not in said
    blind = find_all(replace(bad_week(), kept=None, outages=None))
    assert "Reservations of the past were not to be seen" in " ".join(blind.not_measured)
    assert "were down were not to be seen" in " ".join(blind.not_measured)


HOSTILE = "x\x1b[31m\n#SBATCH --mem=0; $(rm -rf /)\u202e" + "y" * 300


def test_names_of_users_and_jobs_are_shown_and_never_put_into_lines_for_scripts():
    record = every(bad_week(), lambda job: replace(job, user=HOSTILE + job.user, name=HOSTILE + job.name))
    found = find_all(record).findings
    assert {one.id for one in found if one.level != "low"} == set(DEFECTS)
    for finding in found:
        for line in (finding.title, *finding.for_users, *finding.for_administrators):
            assert line.isprintable()
        assert "rm -rf" not in " ".join((*finding.for_users, *finding.for_administrators))
        assert len(finding.title) < 500


def test_what_binds_is_told_for_each_partition_with_the_hours_of_the_day():
    told = {(one.partition, one.resource): one for one in find_all(bad_week()).bottlenecks}
    assert {("cpu", "memory"), ("cpu", "cores"), ("gpu", "GPUs"), ("gpu", "cores")} == set(told)
    assert told["gpu", "cores"].share + told["gpu", "GPUs"].share == pytest.approx(1, abs=0.01)
    assert told["cpu", "memory"].when.endswith(":00")


# --- Defects beside the six -------------------------------------------------------------------------------------------


def test_one_user_who_fills_a_partition_while_others_wait_is_named():
    asked = [Asked(20, "max", f"flood-{number}", "gpu", 10, 14, 8, 50.0, 1, 40.0, "a100") for number in range(32)]
    users = ("dan", "eli", "gus", "hal")
    asked += [Asked(21, users[number % 4], "one", "gpu", 1, 1.5, 4, 10.0, 1, 8.0, "a100") for number in range(8)]
    found = above_low(week([*everyday(), *asked]))
    assert set(found) == {"filled-by-one-user"}
    assert found["filled-by-one-user"].who == ("max",)


def test_gpus_that_stand_still_are_found_where_that_is_measured():
    jobs = [
        Asked(3 * number, "ida", f"idle-{number}", "gpu", 8, 12, 8, 20.0, 1, 15.0, busy=0.02) for number in range(40)
    ]
    finding = above_low(week([*everyday(), *jobs]))["gpus-unused"]
    assert finding.cost.gpu_hours == pytest.approx(40 * 8 * 0.98, rel=0.01)
    busy = [replace(one, busy=0.5) for one in jobs]
    assert above_low(week([*everyday(), *busy])) == {}
    unknown = [replace(one, busy=None) for one in jobs]
    assert above_low(week([*everyday(), *unknown])) == {}


def test_jobs_behind_a_limit_of_their_partition_or_too_large_for_it_are_found():
    record = week([*everyday()])
    stuck = AccountedJob("kay", "long", ("special",), "PENDING", END - 3 * DAY, None, None, 4, GIB, 1, 1, limit=864000)
    barred = (replace(stuck, reason="PartitionTimeLimit"),)
    (finding,) = above_low(replace(record, jobs=(*record.jobs, *barred))).values()
    assert (finding.id, finding.level) == ("cannot-start", "high")
    assert "#SBATCH --time=04:00:00" in finding.for_users
    large = (replace(stuck, partitions=("cpu",), cpus=65, gpus=0),)
    (finding,) = above_low(replace(record, jobs=(*record.jobs, *large))).values()
    assert "more on one node than any of them has" in finding.title


def test_jobs_that_wait_for_their_own_limits_are_not_kept_waiting_by_the_cluster():
    record = every(week([*everyday(), *closed_partition()]), lambda job: replace(job, reason="QOSMaxJobsPerUserLimit"))
    assert above_low(record) == {}


@given(
    data=st.lists(
        st.builds(
            AccountedJob,
            user=st.text(max_size=5), name=st.text(max_size=5),
            partitions=st.lists(st.sampled_from(["cpu", "gpu", "gone", ""]), max_size=2).map(tuple),
            state=st.sampled_from(["COMPLETED", "PENDING", "RUNNING", "TIMEOUT", "CANCELLED", "OUT_OF_MEMORY"]),
            ready=st.none() | st.floats(END - 2 * SPAN, END + HOUR),
            start=st.none() | st.floats(END - 2 * SPAN, END + HOUR),
            end=st.none() | st.floats(END - 2 * SPAN, END + HOUR),
            cpus=st.none() | st.integers(0, 500), memory=st.none() | st.integers(0, 2**44), gpus=st.integers(0, 20),
            node_count=st.integers(1, 9),
            nodes=st.frozensets(st.sampled_from(["ascpu01", "asgpu01", "gone"]), max_size=2),
            limit=st.none() | st.integers(-1, 10**7), memory_used=st.none() | st.integers(0, 2**44),
            gpu_busy=st.none() | st.floats(0, 1), reason=st.none() | st.sampled_from(["Priority", "PartitionTimeLimit"]),
        ),
        max_size=25,
    )
)  # fmt: skip
@settings(max_examples=12, deadline=None)
def test_no_record_of_whatever_content_breaks_it(data):
    record = week(everyday())
    report = find_all(replace(record, jobs=(*record.jobs, *data)))
    assert all(one.share >= 0 for one in report.findings)
