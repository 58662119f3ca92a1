"""Events folded into what is known: what each of them changes, and those that do not fit."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.unit.campaigns.small_cluster import STAGE, Cluster, Process, document, run

from slurm_agent_tools.campaigns import driver, event_record
from slurm_agent_tools.campaigns.event_folding import fold
from slurm_agent_tools.campaigns.file_reader import read_campaign
from slurm_agent_tools.campaigns.state import CampaignState, objective_value, trial_value
from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.models.campaign import (
    BatchIntended,
    BatchRefused,
    BatchSent,
    CampaignEvent,
    CampaignFinished,
    CampaignStopped,
    Noted,
    PersonDecided,
    QuestionAsked,
    RevisionBegun,
    RoundDesigned,
    RoundJudged,
    StageStopped,
    Stamped,
    Trial,
    TrialEnd,
    TrialEnded,
    TrialId,
    TrialRequest,
    TrialsLeftOut,
)

NOW = datetime(2026, 11, 23, 8, tzinfo=UTC)
ASKED = TrialRequest(cpus=2, memory_bytes=None, gpus=1, nodes=None, time_limit_seconds=3600)


def trial(number: int, round_number: int = 0, **changes: Any) -> Trial:
    plain = Trial(TrialId(round_number, number), "training", "trial", f"arm {number}", f"run {number}", {}, ASKED)
    return replace(plain, **changes)


def end(passed: bool = True, **more: Any) -> TrialEnd:
    told = {"queue_seconds": 10.0, "run_seconds": 600.0, "cpu_hours": 0.25, "gpu_hours": 0.125, **more}
    return TrialEnd("7", "COMPLETED" if passed else "FAILED", passed=passed, cause=None if passed else "oom", **told)


def after(*events: CampaignEvent, state: CampaignState | None = None) -> CampaignState:
    before = state or CampaignState()
    return fold([Stamped(number, NOW, event) for number, event in enumerate(events, before.events + 1)], before)


ONE, TWO, THREE = (TrialId(0, number) for number in (1, 2, 3))
BEGUN = RevisionBegun(1, "0" * 64, "campaign: 1", {"training": "c0de"})
DESIGNED = RoundDesigned(0, 1, "smaller is better", (trial(1), trial(2), trial(3)))
INTENDED = BatchIntended("key", (ONE, TWO), "a.sh", "1" * 64, (1, 2), 2)
SENT = BatchSent("key", 7)


def test_a_campaign_without_events_is_planned():
    state = fold([])
    assert (state.status, state.revision, state.events, state.trials) == ("planned", 0, 0, {})


def test_a_batch_goes_from_planned_over_sending_to_sent_and_its_trials_to_their_ends():
    planned = after(BEGUN, DESIGNED)
    assert (planned.status, planned.round) == ("running", 0)
    sending = after(INTENDED, state=planned)
    assert [one.phase for one in sending.of_round(0)] == ["sending", "sending", "planned"]
    assert (sending.spent.trials, sending.spent.cpu_hours, sending.spent.gpu_hours) == (2, 4, 2)
    sent = after(SENT, state=sending)
    assert [one.job_id for one in sent.in_phase("sent")] == ["7_1", "7_2"]
    ended = after(TrialEnded(ONE, end()), TrialEnded(TWO, end(passed=False)), state=sent)
    assert (ended.spent.trials, ended.spent.cpu_hours, ended.spent.gpu_hours) == (2, 0.5, 0.25)
    assert [one.trial.id for one in ended.finished("training", "arm 1")] == [ONE]
    assert ended.finished("training", "arm 2") == []
    assert ended.trials[TWO].failed
    assert planned.trials[ONE].phase == "planned"  # what was known before is as it was


def test_events_in_parts_come_to_the_same_as_all_at_once():
    events = [BEGUN, DESIGNED, INTENDED, SENT, TrialEnded(ONE, end()), CampaignStopped("enough", "alice")]
    for cut in range(len(events)):
        assert after(*events[cut:], state=after(*events[:cut])) == after(*events)


def test_a_reused_trial_has_the_end_of_the_other_and_counts_no_further_run():
    state = after(BEGUN, DESIGNED, INTENDED, SENT, TrialEnded(ONE, end()))
    again = after(RoundDesigned(1, 1, "again", (trial(1, 1, arm="arm 1", reuses=ONE),)), state=state)
    assert again.trials[TrialId(1, 1)].passed
    assert [one.trial.id for one in again.finished("training", "arm 1")] == [ONE]
    assert again.spent == state.spent


def test_what_counts_of_a_trial_holds_the_failed_runs_that_it_mends():
    wall = read_campaign(document({"kind": "smoke"}, objective={"wall_clock": "one epoch"}), "a.json")
    metric = read_campaign(document({"kind": "smoke"}), "a.json")
    state = after(BEGUN, DESIGNED, INTENDED, SENT, TrialEnded(ONE, end(passed=False)))
    fix = trial(4, purpose="fix", replaces=ONE, mended="batch 2 -> 1")
    mended = after(
        RoundDesigned(0, 1, "", (fix,)), BatchIntended("k2", (fix.id,), "b.sh", ""), BatchSent("k2", 8),
        TrialEnded(fix.id, end(metrics={"loss": 0.5})), state=state,
    )  # fmt: skip
    assert [one.trial.id for one in mended.chain(fix.id)] == [fix.id, ONE]
    assert trial_value(wall, mended, fix.id) == 1220
    assert trial_value(metric, mended, fix.id) == 0.5
    assert trial_value(metric, mended, TWO) is None
    assert objective_value(wall, end(run_seconds=None)) is None
    assert list(mended.unlearned) == [fix.id]
    assert list(after(Noted("lesson", "a line", fix.id), state=mended).unlearned) == []


def test_a_new_revision_leaves_out_what_was_not_sent_and_keeps_the_rest():
    state = after(BEGUN, DESIGNED, INTENDED, SENT, replace(BEGUN, revision=2, code={"training": "other"}))
    assert [one.phase for one in state.of_round(0)] == ["sent", "sent", "left_out"]
    assert state.changed_code(ONE)
    assert (state.document(1), state.document()) == ("campaign: 1", "campaign: 1")


def test_a_stop_leaves_out_what_was_not_sent_and_ends_are_still_taken():
    stopped = after(BEGUN, DESIGNED, INTENDED, CampaignStopped("enough", "alice"))
    assert (stopped.status, stopped.reason, stopped.over) == ("stopped", "enough", True)
    assert stopped.trials[THREE].phase == "left_out"
    ended = after(SENT, TrialEnded(ONE, end()), state=stopped)
    assert ended.trials[ONE].passed
    never = after(TrialsLeftOut((ONE, TWO), "it was never sent"), state=stopped)
    assert never.spent.trials == 0


def test_a_refused_batch_costs_nothing():
    refused = after(BEGUN, DESIGNED, INTENDED, BatchRefused("key", "no", person=False))
    assert (refused.spent.trials, list(refused.undecided)) == (0, ["key"])


@pytest.mark.parametrize(
    "event",
    [
        PersonDecided("q1", "stop", "alice"), CampaignStopped("enough", "alice"), replace(BEGUN, revision=2),
        StageStopped("training", "oom", "2 runs failed alike"),
    ],
)  # fmt: skip
def test_what_a_person_may_let_through_counts_until_they_decide_and_is_sent_once_they_say_so(event: CampaignEvent):
    refused = after(BEGUN, DESIGNED, INTENDED, BatchRefused("key", "no", person=True))
    assert (refused.spent.trials, list(refused.undecided)) == (2, ["key"])
    asked = after(QuestionAsked("q1", "what now?", {"again": "try", "stop": "end it"}, "key"), state=refused)
    assert asked.status == "needs_decision"
    again = after(PersonDecided("q1", "again", "alice"), state=asked)
    assert (again.status, again.question, again.spent.trials) == ("running", None, 2)
    assert [one.phase for one in again.of_round(0)] == ["sending", "sending", "planned"]
    never = after(event, state=asked)
    assert (never.spent.trials, "key" in never.undecided) == (0, False)


def test_going_on_forgives_the_failures_of_a_stage_that_was_stopped():
    state = after(
        BEGUN, DESIGNED, INTENDED, SENT, TrialEnded(ONE, end(passed=False)), TrialEnded(TWO, end(passed=False))
    )
    stopped = after(StageStopped("training", "oom", "2 runs failed alike"), state=state)
    assert (stopped.stopped_stages, stopped.trials[THREE].phase) == ({"training"}, "left_out")
    asked = after(QuestionAsked("q1", "what now?", {"go_on": "again"}, "oom"), state=stopped)
    on = after(PersonDecided("q1", "go_on", "alice"), state=asked)
    assert on.stopped_stages == frozenset()
    assert list(on.forgiven) == [ONE, TWO]


JUDGED = RoundJudged(0, (), {}, "done")
MISFITS: list[tuple[list[CampaignEvent], CampaignEvent, str]] = [
    ([], replace(BEGUN, revision=2), "revision 1 was expected"),
    ([BEGUN, DESIGNED, INTENDED], replace(BEGUN, revision=2), "something is being sent"),
    ([BEGUN], replace(DESIGNED, revision=2), "in revision 1"),
    ([BEGUN, DESIGNED], DESIGNED, "there already"),
    ([BEGUN, DESIGNED, JUDGED], replace(DESIGNED, trials=()), "is judged"),
    ([BEGUN], RoundDesigned(0, 1, "", (trial(1, reuses=TWO),)), "which has not passed"),
    ([BEGUN], RoundDesigned(0, 1, "", (trial(1, replaces=TWO),)), "which did not fail"),
    ([BEGUN, DESIGNED, INTENDED], replace(INTENDED, trials=(THREE,)), "there already"),
    ([BEGUN, DESIGNED, INTENDED], replace(INTENDED, key="k2"), "r0-t1 is not planned"),
    ([BEGUN, DESIGNED, CampaignStopped("", "")], INTENDED, "the campaign is stopped"),
    ([BEGUN, DESIGNED, INTENDED, SENT], SENT, "not being sent"),
    ([BEGUN, DESIGNED, INTENDED, SENT], BatchRefused("key", "", person=False), "not being sent"),
    ([BEGUN, DESIGNED], TrialEnded(ONE, end()), "was not sent"),
    ([BEGUN, DESIGNED, INTENDED, SENT, TrialEnded(ONE, end())], TrialEnded(ONE, end()), "has ended"),
    ([BEGUN, DESIGNED, INTENDED, SENT], TrialsLeftOut((ONE,), ""), "was sent"),
    ([BEGUN, StageStopped("training", "c", "")], StageStopped("training", "c", ""), "stopped already"),
    ([BEGUN], JUDGED, "never designed"),
    ([BEGUN, DESIGNED, JUDGED], JUDGED, "judged already"),
    ([BEGUN], QuestionAsked("q1", "", {}, "nothing"), "nobody has to decide"),
    ([BEGUN], PersonDecided("q1", "stop", ""), "answers no open question"),
    ([BEGUN, CampaignFinished("")], CampaignStopped("", ""), "is finished"),
]


@pytest.mark.proves("campaign-survives-crash")
@pytest.mark.parametrize(("before", "event", "why"), MISFITS, ids=[why for *_, why in MISFITS])
def test_an_event_that_does_not_fit_is_an_error_that_names_it(before, event, why):
    state = after(*before)
    with pytest.raises(StorageError, match=why) as caught:
        after(event, state=state)
    assert f"event {len(before) + 1} of the campaign ({type(event).__name__})" in caught.value.message


@pytest.mark.proves("campaign-survives-crash")
def test_a_gap_in_the_numbers_is_an_error():
    with pytest.raises(StorageError, match="event 1 was expected"):
        fold([Stamped(2, NOW, BEGUN)])


async def test_a_thousand_trials_are_sent_and_settle_with_each_event_folded_a_few_times(monkeypatch):
    folded, asked = [0], [0]

    def counted_fold(events: Any, before: CampaignState | None = None) -> CampaignState:
        listed = list(events)
        folded[0] += len(listed)
        return fold(listed, before)

    def counted_steps(*args: Any) -> Any:
        asked[0] += 1
        return steps(*args)

    steps = driver.next_steps
    monkeypatch.setattr(event_record, "fold", counted_fold)
    monkeypatch.setattr(driver, "next_steps", counted_steps)
    rates = [{"lr": round(0.0001 * number, 4)} for number in range(1, 1001)]
    stages = [{**STAGE, "resources": {"cpus": 1, "memory": "1G", "time_limit": "30min"}}]
    limits = {"cpu_hours": 10000, "at_once": 500, "trials": 1100}
    file = document({"kind": "smoke"}, {"kind": "list", "trials": rates}, stages=stages, limits=limits)
    cluster = Cluster()
    done = await run(cluster, file, least=3600)
    assert (done.state.status, len(done.state.trials)) == ("finished", 1001)  # the baseline is one of them
    assert max(len(tasks) for _, tasks in cluster.jobs.values()) >= 999
    passes = 6
    assert folded[0] <= (passes + 3) * len(cluster.log)
    assert asked[0] <= 60
    before, folded[0] = len(cluster.log), 0
    assert (await Process(cluster).advance(file)).happened == ()
    assert folded[0] <= before
    assert cluster.clock.at - NOW < timedelta(days=1)


@pytest.mark.parametrize("together", [True, False])
def test_a_task_that_its_arrays_throttle_held_back_did_not_wait_in_the_queue(together: bool) -> None:
    """Two at a time, of one, nine and four minutes; Slurm starts one 5 s after another has ended."""
    times = [(5, 65), (5, 545), (70, 310), (315, 375)]
    ids = tuple(TrialId(0, number) for number in range(1, 5))
    sent = [
        RevisionBegun(1, "f" * 64, "campaign: 1", {}),
        RoundDesigned(0, 1, "", tuple(trial(number) for number in range(1, 5))),
        BatchIntended("key", ids, "x.sh", "0" * 64, (1, 2, 3, 4), 2),
        BatchSent("key", 7),
    ]
    ended = [
        TrialEnded(one, end(queue_seconds=float(begun), started=NOW + timedelta(seconds=begun),
                            ended=NOW + timedelta(seconds=until)))
        for one, (begun, until) in zip(ids, times, strict=True)
    ]  # fmt: skip
    state = after(*sent)
    for step in [ended] if together else [[ended[0]], [ended[2]], [ended[3]], [ended[1]]]:
        state = after(*step, state=state)
    waited = [found.end.queue_seconds for found in state.trials.values() if found.end is not None]
    assert waited == [5, 5, 5, 5]
