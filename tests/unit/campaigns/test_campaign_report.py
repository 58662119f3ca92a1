"""The report: its eight parts in order, each figure from what was measured, and no text that becomes markup."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from tests.unit.campaigns.happened import DOCUMENT, START, campaign_file, ended, events, sent, state_after, trial

from slurm_agent_tools.api import campaign_view
from slurm_agent_tools.campaigns.arms import arms, job_ids, varied
from slurm_agent_tools.campaigns.campaign_report import ReportFacts, report_files
from slurm_agent_tools.campaigns.state import CampaignState
from slurm_agent_tools.models.campaign import ArmVerdict, Noted, RevisionBegun, RoundDesigned, RoundJudged

FACTS = ReportFacts("rates", START + timedelta(hours=1), git="commit abc, clean", advice=("Ask for less memory.",))

PARTS = [
    "Objective and scope",
    "Rounds",
    "Findings by stage",
    "Fit of the resources",
    "Failures and what mended them",
    "Chosen configuration",
    "What was written down",
    "Risks and the next trial",
]


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return report_files(campaign_file(), state_after(events()), FACTS)


def part(text: str, title: str) -> str:
    return text.split(f"## {title}\n")[1].split("\n## ", maxsplit=1)[0]


@pytest.mark.proves("campaign-report")
def test_the_report_has_its_eight_parts_in_order_in_both_forms(files: dict[str, str]) -> None:
    markdown, page = files["campaigns/rates.report.md"], files["campaigns/rates.report.html"]
    assert re.findall(r"^## (.*)$", markdown, re.MULTILINE) == PARTS
    assert re.findall(r"<h2>(.*?)</h2>", page) == PARTS


def test_the_table_of_rounds_has_hypothesis_runs_jobs_and_outcome(files: dict[str, str]) -> None:
    rows = part(files["campaigns/rates.report.md"], "Rounds")
    assert "| r1 | grid | a lower rate learns more | 4 configurations, 5 runs | 11\\_\\[1-4\\], 12 |" in rows
    assert "confirmed: rate 0.01 is better" in rows


def test_configurations_are_ordered_by_what_counts_and_one_run_is_called_one(files: dict[str, str]) -> None:
    rows = [
        line for line in part(files["campaigns/rates.report.md"], "Findings by stage").splitlines() if "rate=" in line
    ]
    assert [row.split("|")[3].strip() for row in rows] == ["0.95", "0.91", "0.82", "0.8"]
    assert all("one run" in row for row in rows)
    assert "00:01:05" in rows[0]  # the failed run that it mends, in the queue and running


def test_a_failure_stands_beside_what_mended_it(files: dict[str, str]) -> None:
    told = part(files["campaigns/rates.report.md"], "Failures and what mended them")
    assert "rates/r1/t4 | 11\\_4 | host-out-of-memory; It used more memory" in told
    assert "memory 2G instead of 1G (rates/r1/t5) | it ran" in told


def test_the_choice_says_how_sure_it_is_and_the_risks_name_one_run(files: dict[str, str]) -> None:
    markdown = files["campaigns/rates.report.md"]
    assert "rate=0.01, batch=64" in part(markdown, "Chosen configuration")
    assert "too few to tell how sure" in part(markdown, "Chosen configuration")
    assert "rests on one run" in part(markdown, "Risks and the next trial")
    assert "at the edge of what was tried" in part(markdown, "Risks and the next trial")


def test_memory_is_that_of_the_fullest_run_and_what_nobody_measured_is_not_zero(files: dict[str, str]) -> None:
    told = part(files["campaigns/rates.report.md"], "Fit of the resources")
    row = next(line for line in told.splitlines() if line.startswith("| training"))
    assert "1G of 1G" in row
    assert "not measured" in row  # the GPUs


def test_the_page_stands_alone_and_has_the_plots(files: dict[str, str]) -> None:
    page = files["campaigns/rates.report.html"]
    assert page.count("<svg") == 5  # spending, rate, batch, all at once, where the time went
    assert not re.findall(r"(?:src|href)=|<script|url\(", page)


def test_a_hostile_log_becomes_no_markup() -> None:
    hostile = "<script>alert(1)</script> | **bold**\n## Rounds"
    run = trial(0, 1)
    happened = [
        RevisionBegun(1, "f" * 64, "", {}),
        RoundDesigned(0, 1, hostile, (run,)),
        *sent([run], 1),
        ended(run, "1", passed=False, state="FAILED", explanation=hostile),
    ]
    made = report_files(campaign_file(), state_after(happened), FACTS)
    assert "<script>" not in made["campaigns/rates.report.html"]
    assert re.findall(r"^## (.*)$", made["campaigns/rates.report.md"], re.MULTILINE) == PARTS


def test_before_anything_ran_the_report_says_so() -> None:
    made = report_files(campaign_file(), state_after([]), FACTS)["campaigns/rates.report.md"]
    assert "not begun" in part(made, "Rounds")
    assert "nothing can be chosen" in part(made, "Chosen configuration")
    assert "No run failed." in made


def test_ids_of_arrays_are_ranges_and_only_what_differs_is_named() -> None:
    state = state_after(events())
    assert job_ids(state.of_round(1)) == "11_[1-4], 12"
    assert varied(arms(campaign_file(), state, "training")) == ["rate", "batch"]


def test_a_longer_run_has_a_verdict_of_its_own_and_a_length_is_no_advice() -> None:
    short, long = trial(0, 1, settings={"epochs": 5}), trial(1, 1, settings={"epochs": 20})
    happened = [
        RevisionBegun(1, "f" * 64, "", {}),
        RoundDesigned(0, 1, "short", (short,)),
        *sent([short], 1),
        ended(short, "1", metrics={"accuracy": 0.5}),
        RoundJudged(0, (ArmVerdict("training", short.arm, "keep", "one short run", 1),), {}, "seen"),
        RoundDesigned(1, 1, "long", (long,)),
        *sent([long], 2),
        ended(long, "2", metrics={"accuracy": 0.9}),
        RoundJudged(1, (ArmVerdict("training", long.arm, "promote", "better by far", 1),), {}, "seen"),
        Noted("result", "not saved: the disk is full", long.id),
    ]
    made = report_files(campaign_file(), state_after(happened), FACTS)["campaigns/rates.report.md"]
    rows = [line for line in part(made, "Findings by stage").splitlines() if "epochs=" in line]
    assert ["promote: better by far" in row for row in rows] == [True, False]
    assert ["keep: one short run" in row for row in rows] == [False, True]
    assert "edge" not in part(made, "Risks and the next trial")
    assert "0 results" in part(made, "What was written down")
    assert "rates/r1/t1: not saved: the disk is full" in part(made, "What was written down")


def test_while_the_first_round_runs_its_best_is_shown_and_not_what_the_smoke_run_was_of() -> None:
    happened = events()
    smoke = next(at for at, one in enumerate(happened) if isinstance(one, RoundJudged))
    happened[smoke] = RoundJudged(0, (), {"training": trial(1, 1).arm}, "every stage ran")
    until = next(at for at, one in enumerate(happened) if isinstance(one, RoundJudged) and one.round == 1)
    (found,) = campaign_view.best(campaign_file(), state_after(happened[:until]), "rates")
    assert (found.value, found.trial) == (0.95, "rates/r1/t5")


def test_a_result_that_counts_again_is_one_run_and_paid_once() -> None:
    first = trial(0, 1)
    planned, again, other = (
        trial(0, 2, settings={"rate": 0.5}),
        trial(1, 1, reuses=first.id),
        trial(1, 2, reuses=first.id),
    )
    state = state_after([
        RevisionBegun(1, "f" * 64, "campaign: 1", {"training": "c0de"}),
        RoundDesigned(0, 1, "one", (first, planned)),
        *sent([first], 1),
        ended(first, "1", metrics={"accuracy": 0.9}, cost=2.5, currency="EUR"),
        RoundDesigned(1, 1, "again", (again, other)),
    ])  # fmt: skip
    (arm,) = arms(campaign_file(), state, "training")
    assert (arm.values, len(arm.passed)) == ((0.9,), 1)
    scope = part(report_files(campaign_file(), state, FACTS)["campaigns/rates.report.md"], "Objective and scope")
    assert "| cost | 2.50 EUR |" in scope
    assert "| trials | 1 | 200 |" in scope


def test_runs_that_took_no_second_make_a_report() -> None:
    stages = [{**DOCUMENT["stages"][0], "name": name} for name in ("loading", "training")]
    file = campaign_file(objective={"wall_clock": "one epoch"}, stages=stages)
    runs = [
        trial(0, number, stage=stage, purpose="baseline") for number, stage in enumerate(("loading", "training"), 1)
    ]
    state = state_after([
        RevisionBegun(1, "f" * 64, "campaign: 1", {"loading": "c0de", "training": "c0de"}),
        RoundDesigned(0, 1, "one", tuple(runs)),
        *(event for one in runs for event in sent([one], one.id.number)),
        *(ended(one, str(one.id.number), queue_seconds=0, run_seconds=0) for one in runs),
    ])  # fmt: skip
    assert "Expected time" in part(
        report_files(file, state, FACTS)["campaigns/rates.report.md"], "Chosen configuration"
    )


def of_two_lengths() -> CampaignState:
    """A short run that told the highest, and three long ones of the same, which the last round judged."""
    short = trial(0, 1, settings={"epochs": 5})
    long = [trial(1, number, settings={"epochs": 20}) for number in (1, 2, 3)]
    return state_after([
        RevisionBegun(1, "f" * 64, "", {}),
        RoundDesigned(0, 1, "short", (short,)),
        *sent([short], 1),
        ended(short, "1", metrics={"accuracy": 0.97}),
        RoundJudged(0, (), {"training": short.arm}, "seen"),
        RoundDesigned(1, 1, "long", tuple(long)),
        *(event for at, one in enumerate(long) for event in sent([one], at + 2)),
        *(ended(one, str(at + 2), metrics={"accuracy": (0.95, 0.91, 0.93)[at]}) for at, one in enumerate(long)),
        RoundJudged(1, (), {"training": long[0].arm}, "seen"),
    ])  # fmt: skip


def test_the_best_is_named_by_the_run_that_has_its_value_and_the_value_by_its_runs() -> None:
    file, state = campaign_file(), of_two_lengths()
    (found,) = campaign_view.best(file, state, "rates")
    assert (found.value, found.trial, found.settings["epochs"]) == (0.93, "rates/r1/t3", 20)
    assert "(accuracy 0.93, the median of 3 runs)" in campaign_view.summary(file, state, "rates")


def test_the_best_that_one_run_tells_of_is_told_as_it_is() -> None:
    state = state_after(events())
    assert "(accuracy 0.95)" in campaign_view.summary(campaign_file(), state, "rates")


def test_one_run_and_one_configuration_are_not_told_as_several(files: dict[str, str]) -> None:
    made = report_files(campaign_file(), of_two_lengths(), FACTS)["campaigns/rates.report.md"]
    assert "| 1 run |" in part(made, "Rounds")
    assert "| 3 runs |" in part(made, "Rounds")
    assert not re.search(r"\b1 (runs|configurations|results)\b", made + files["campaigns/rates.report.md"])
    assert "over 1 run;" in part(files["campaigns/rates.report.md"], "Chosen configuration")


def test_a_sentence_that_is_too_long_for_a_brief_answer_ends_with_a_whole_word() -> None:
    text = f"{'a word ' * 14}baseline12345 and more"
    (line,), _ = campaign_view.brief_lines([text])
    assert line == f"{('a word ' * 14).rstrip()}..."
    assert campaign_view.brief_lines(["x" * 200])[0] == ["x" * 107 + "..."]
    assert campaign_view.brief_lines([text[:110]])[0] == [text[:110]]
