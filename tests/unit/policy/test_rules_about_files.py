"""What rules say of files, dependencies and options, at their limits and where their examples say nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.policy.plans import asks, live
from tests.unit.policy.saying import BY_ID, POLICY, lines, says

from slurm_agent_tools.api.rule_examples import FILE, PROJECT
from slurm_agent_tools.models.decision import RuleDecision
from slurm_agent_tools.models.request import Directive, Evidence, Finding, JobRequest
from slurm_agent_tools.policy.plan import PlannedRequest
from slurm_agent_tools.policy.rules.rule import reading_of

# --- scripts and files --------------------------------------------------------------------------------------------


def test_a_script_may_be_as_long_as_the_limit():
    plan = asks("# " + "ü" * 100)
    size = len(reading_of(plan).text.encode())
    sizes = POLICY.sizes.model_copy(update={"script_bytes": size})
    assert says("script-exists", plan, {"sizes": sizes}).outcome == "pass"
    smaller = POLICY.sizes.model_copy(update={"script_bytes": size - 1})
    result = says("script-exists", plan, {"sizes": smaller})
    assert (result.outcome, result.observed, result.limit) == ("deny", size, size - 1)


def saves(path: str, **facts: object) -> RuleDecision:
    return says("path", PlannedRequest("save_result", PROJECT, path=f"{PROJECT}/{path}", **facts))  # type: ignore[arg-type]


def test_a_result_may_be_as_large_as_the_limit_and_a_script_has_its_own():
    most = POLICY.sizes.result_bytes
    assert saves("results/a.json", size=most).outcome == "pass"
    result = saves("results/a.json", size=most + 1)
    assert (result.outcome, result.observed, result.limit) == ("deny", most + 1, most)
    script = PlannedRequest("generate_script", PROJECT, path=f"{PROJECT}/scripts/slurm/generated/a.sh", size=2**20)
    assert says("path", script).outcome == "pass"
    assert says("path", replace(script, size=2**20 + 1)).outcome == "deny"


def test_a_file_is_written_into_a_folder_of_the_policy_and_over_nothing():
    assert saves("results").outcome == "deny"
    assert saves("results2/a.json").outcome == "deny"
    assert saves("results/../a.json").outcome == "deny"
    there = saves("results/My run: 3.json", path_exists=True)
    assert (there.outcome, there.observed) == ("deny", "results/My run: 3.json")
    assert 'name="My-run-3-2"' in (there.remedy or "")
    assert saves("results/a.json", path_exists=True, adds=True).outcome == "pass"
    guarded = saves("results/a.py")
    assert (guarded.outcome, guarded.observed, guarded.limit) == ("deny", "results/a.py", "*.py")
    outside = says("path", PlannedRequest("save_result", PROJECT, path="/tmp/a.json"))
    assert (outside.observed, outside.limit) == ("/tmp/a.json", "results/, documents/")
    assert 'output_dir="results"' in (outside.remedy or "")


def named(**request: str | None) -> RuleDecision:
    stated = [f"#SBATCH --{option}={value}" for option, value in request.items() if option != "name"]
    own = {option: value for option, value in request.items() if option != "input"}
    return says("path", asks(*stated, **own))


@pytest.mark.parametrize(
    ("request_", "outcome"),
    [
        ({"output": "logs/%j.out"}, "pass"),
        ({"output": "/dev/null", "error": "../x"}, "deny"),
        ({"output": "../x"}, "deny"),
        ({"input": "../x"}, "deny"),
        ({"input": "data/x.py"}, "pass"),
        ({"output": "train.py"}, "deny"),
        ({"error": ".env"}, "deny"),
        ({"chdir": ".."}, "deny"),
        ({"chdir": "sub", "output": "../x"}, "pass"),
        ({"chdir": "sub", "output": "../../x"}, "deny"),
        ({"output": "%x.out", "name": "../../x"}, "deny"),
        ({"output": "%x.out", "name": "x"}, "pass"),
    ],
)
def test_logs_and_folders_of_a_job_stay_inside_the_project_by_the_names_that_slurm_opens(request_, outcome):
    assert named(**request_).outcome == outcome


def test_a_folder_for_logs_outside_the_project_takes_logs_and_protects_none():
    folder = {"log_folders": ("/scratch/logs",)}
    plan = asks("#SBATCH --output=/scratch/logs/a.py", output="/scratch/logs/a.py")
    assert says("path", plan, folder).outcome == "pass"
    other = asks("#SBATCH --output=/scratch/other/a", output="/scratch/other/a")
    result = says("path", other, folder)
    assert (result.outcome, lines(result)) == ("deny", [2])
    assert "%x-%j.out" in (result.remedy or "")


@pytest.mark.parametrize(
    ("request_", "leads", "outcome"),
    [
        ({"output": "logs/x"}, {"output": "/home/ada/.ssh/x"}, "deny"),
        ({"output": "logs/x", "error": "other/x"}, {"error": "/etc/x"}, "deny"),
        ({"input": "data/x"}, {"input": "/etc/passwd"}, "deny"),
        ({"chdir": "sub"}, {"chdir": "/etc"}, "deny"),
        ({"chdir": "sub", "output": "x"}, {"chdir": "other/sub", "output": "other/sub/x"}, "pass"),
        ({"output": "logs/x"}, {"output": "other/x"}, "pass"),
        ({"output": "logs/x"}, {"output": "train.py"}, "deny"),
        ({"output": "logs/../x"}, {"output": "/scratch/x"}, "deny"),
        ({"output": "logs/x"}, {"output": "/scratch/logs/x"}, "pass"),
        ({"output": "/scratch/logs/x"}, {"output": "train.py"}, "deny"),
        ({"output": "/scratch/other/x"}, {"output": "logs/x"}, "deny"),
        ({"chdir": "/scratch/logs/sub"}, {"chdir": "sub"}, "deny"),
        ({"output": "train.py"}, {"output": "notes.txt"}, "deny"),
        ({"output": "logs/x"}, {"error": "/etc/x"}, "pass"),
    ],
)
def test_a_jobs_files_are_judged_by_where_links_lead(request_, leads, outcome):
    stated = [f"#SBATCH --{option}={value}" for option, value in request_.items()]
    plan = asks(*stated, **{option: value for option, value in request_.items() if option != "input"})
    led = replace(plan, reading=replace(reading_of(plan), leads=leads))
    result = says("path", led, {"log_folders": ("/scratch/logs",)})

    assert result.outcome == outcome, result.message
    if outcome == "deny" and ".py" not in f"{request_} {leads}":
        assert "lies outside" in result.message


# --- what a job waits for -----------------------------------------------------------------------------------------


def waits(dependency: str, **facts: object) -> RuleDecision:
    return says("dependency", asks(f"#SBATCH --dependency={dependency}", dependency=dependency, live=live(**facts)))


@pytest.mark.parametrize(
    ("dependency", "facts", "outcome"),
    [
        ("afterok:5", {"known_jobs": frozenset({"5"})}, "pass"),
        ("afterok:5_3", {"known_jobs": frozenset({"5_3"})}, "pass"),
        ("afterok:5_3", {"known_jobs": frozenset({"5"})}, "deny"),
        ("afterany:5_*", {"known_jobs": frozenset({"5"})}, "deny"),
        ("afterany:5_*", {"known_jobs": frozenset({"5", "5_*"})}, "pass"),
        ("after:5_3+10", {"known_jobs": frozenset({"5", "5_*"})}, "deny"),
        ("afterok:5:6", {"known_jobs": frozenset({"5"})}, "deny"),
        ("afterok:5", {"known_jobs": frozenset({"5"}), "ended_jobs": {"5": "FAILED"}}, "deny"),
        ("afterok:5", {"known_jobs": frozenset({"5"}), "ended_jobs": {"5": "COMPLETED"}}, "pass"),
        ("afternotok:5", {"known_jobs": frozenset({"5"}), "ended_jobs": {"5": "COMPLETED"}}, "deny"),
        ("afternotok:5", {"known_jobs": frozenset({"5"}), "ended_jobs": {"5": "FAILED"}}, "pass"),
        ("afterany:5", {"known_jobs": frozenset({"5"}), "ended_jobs": {"5": "FAILED"}}, "pass"),
        ("afterok:5?afterok:6", {"known_jobs": frozenset({"5", "6"}), "ended_jobs": {"5": "FAILED"}}, "pass"),
        ("singleton", {}, "pass"),
        ("singleton,afterok:5", {}, "deny"),
        ("afterok:5,afterok:6?afterok:7", {"known_jobs": frozenset({"5", "6", "7"})}, "deny"),
        ("afterok", {}, "deny"),
        ("AfterOK:5", {"known_jobs": frozenset({"5"})}, "pass"),
        ("after:5+10", {"known_jobs": frozenset({"5"})}, "pass"),
        ("afterok:5+10", {"known_jobs": frozenset({"5"})}, "deny"),
        ("singleton:5", {}, "deny"),
    ],
)
def test_what_a_job_waits_for_can_be_read_and_can_happen(dependency, facts, outcome):
    result = waits(dependency, **facts)
    assert (result.outcome, result.observed) == (outcome, dependency)
    assert lines(result) == ([] if outcome == "pass" else [2])


def test_a_job_behind_tasks_that_are_not_there_may_wait_for_the_whole_job():
    told = waits("afterany:5_*:6_3:7_1", known_jobs=frozenset({"5", "6", "7", "7_1"}))
    assert told.message.startswith("Slurm knows no 5_* and no 6_3: ")
    assert "--dependency=afterany:5:6:7_1" in (told.remedy or "")


def test_a_job_that_is_over_and_forgotten_is_told_with_its_end():
    over = waits("afterany:5:6", ended_jobs={"5": "FAILED"})
    assert "Job 5 is over (FAILED) and Slurm has forgotten it; Slurm does not know job 6." in over.message
    assert "22.05" in over.message
    assert "nothing left to wait for" in waits("afterany:5", ended_jobs={"5": "FAILED"}).message
    failed = waits("afterok:5", ended_jobs={"5": "FAILED"}).remedy or ""
    well = waits("afternotok:5", ended_jobs={"5": "COMPLETED"}).remedy or ""
    assert ('analyze_log with job_id="5"' in failed, "analyze_log" in well) == (True, False)


@pytest.mark.parametrize("facts", [None, live()])
def test_a_dependency_names_so_many_jobs_and_no_more(facts):
    def judged(count: int) -> RuleDecision:
        value = "afterany:" + ":".join(str(900_000 + number) for number in range(count))
        return says("dependency", asks(f"#SBATCH --dependency={value}", dependency=value, live=facts))

    many = judged(21)
    assert (many.outcome, many.observed, many.limit, lines(many)) == ("deny", 21, 20, [2])
    assert "--dependency names 21 jobs, and at most 20 are allowed" in many.message
    assert "submit a job that itself waits for up to 20 of them" in (many.remedy or "")
    assert judged(20).limit is None


def test_a_dependency_without_facts_is_not_judged():
    plan = asks("#SBATCH --dependency=afterok:5", dependency="afterok:5")
    assert says("dependency", plan).outcome == "not_evaluated"
    assert says("dependency", asks()).outcome == "pass"


# --- options ------------------------------------------------------------------------------------------------------


def test_options_that_were_added_by_the_guard_are_not_the_scripts():
    plan = asks("#SBATCH --spread-job")
    reading = reading_of(plan)
    pinned = Directive("mincpus", "2", "pinned", Evidence(FILE, 1, ""))
    both = replace(reading.request, directives=(*reading.request.directives, pinned))
    result = says("directives", replace(plan, reading=replace(reading, request=both)))
    assert (result.outcome, result.observed, result.limit, lines(result)) == (
        "deny",
        "spread-job",
        "allowed_options",
        [2],
    )
    assert says("directives", asks("#SBATCH --gpus=1", "#SBATCH --requeue")).observed == 2


def test_a_log_named_after_a_job_whose_name_is_a_path_gets_a_name_that_stays_inside():
    plan = asks("#SBATCH --job-name=/data/run", "#SBATCH --output=%x-%j.out", name="/data/run", output="%x-%j.out")
    result = says("path", plan)
    assert result.outcome == "deny"
    assert result.remedy == "Replace line 3 (`#SBATCH --output=%x-%j.out`) by:\n#SBATCH --output=slurm-%j.out"


def test_an_option_that_a_person_may_agree_to_asks_for_one_and_beside_a_forbidden_one_stays_refused():
    result = says("directives", asks("#SBATCH --exclusive"))
    assert (result.outcome, result.observed, result.limit) == ("approve", "exclusive", "options_by_person")
    assert result.remedy is not None
    assert result.remedy.startswith("Delete line 2")
    assert says("directives", asks("#SBATCH --exclusive", "#SBATCH --mincpus=8")).outcome == "deny"


def test_more_than_one_component_is_refused_with_their_number():
    result = says("directives", asks("#SBATCH --ntasks=1", components=3))
    assert (result.outcome, result.observed, result.limit) == ("deny", 3, 1)
    assert says("directives", asks("#SBATCH --ntasks=1", components=1)).outcome == "pass"


def test_a_problem_of_no_line_is_told_without_one():
    plan = asks("#SBATCH --nodes=x")
    problems = (Evidence(FILE, 0, "the file is empty"), Evidence(FILE, 2, "nodes is no number"))
    reading = replace(reading_of(plan), request=JobRequest(problems=problems))
    result = says("directives", replace(plan, reading=reading))
    assert (result.outcome, result.observed, result.limit) == ("deny", 2, 0)
    assert "The file is empty; line 2: nodes is no number." in result.message


def test_an_export_that_passes_a_device_variable_is_told_once_and_only_where_the_script_states_it():
    line = "#SBATCH --export=ALL,CUDA_VISIBLE_DEVICES=0,NVIDIA_VISIBLE_DEVICES"
    plan = asks(line)
    result = says("cuda-visible-devices", plan)
    assert (result.outcome, result.observed, result.limit, lines(result)) == ("deny", 1, 0, [2])
    assert "CUDA_VISIBLE_DEVICES, NVIDIA_VISIBLE_DEVICES" in result.message
    found = Finding("cuda-visible-devices", "sets it", Evidence(FILE, 2, line))
    assert says("cuda-visible-devices", asks(line, findings=(found,))).observed == 1
    reading = reading_of(plan)
    pinned = tuple(replace(one, source="pinned") for one in reading.request.directives)
    added = replace(reading, request=replace(reading.request, directives=pinned))
    assert says("cuda-visible-devices", replace(plan, reading=added)).outcome == "pass"


# --- what every rule shares ---------------------------------------------------------------------------------------


def test_a_rule_is_silent_about_tools_scripts_and_moments_that_it_does_not_know():
    rule = BY_ID["status-first"]
    assert rule.applies(asks())
    assert not rule.applies(replace(asks(), tool="generate_script"))
    assert not rule.applies(replace(asks(), reading=None))
    assert BY_ID["script-exists"].applies(replace(asks(), reading=None))
    for plan in (replace(asks(), tool="save_result"), replace(asks(), reading=None), asks()):
        assert rule.check(plan, POLICY).outcome == "not_evaluated"
