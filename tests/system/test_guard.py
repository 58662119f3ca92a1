"""The guard on the real cluster: what goes through, what is pinned, what is refused, and what is left behind."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from tests.system.faces import Place, call

HEAD = "#!/bin/bash\n#SBATCH --output=logs/slurm/%x-%j.out\n"


def write(place: Place, name: str, *lines: str) -> str:
    (place.project / name).write_text(HEAD + "\n".join(lines) + "\n")
    place.own()
    return name


def submit(place: Place, script: str, *words: str) -> tuple[int, dict]:
    place.cli("get_status", "--no-cache")
    return place.cli("submit_job", f"--script={script}", *words)


def rules(reply: dict, *outcomes: str) -> set[str]:
    return {rule["id"] for rule in reply["decision"]["rules"] if rule["outcome"] in (outcomes or ("deny",))}


def queued(place: Place) -> list[str]:
    return place.slurm("squeue", "-h", "-t", "pending,running", "-o", "%j").splitlines()


@pytest.mark.proves("held-compared-released", "bytes-are-the-bytes", "decisions-are-logged")
def test_a_plain_script_runs_with_pins_and_slurm_holds_its_bytes(fresh):
    script = write(fresh, "train.sh", "#SBATCH --partition=gpu", "sleep 20")
    code, reply = submit(fresh, script)
    assert (code, reply["status"]) == (0, "submitted"), reply
    assert {pin["option"] for pin in reply["pinned"]} == {"--gpus=1", "--mem-per-gpu=16G", "--time=02:00:00"}
    job_id = reply["job_id"]
    assert reply["granted"]["gpus"] == 1
    assert reply["granted"]["memory_per_gpu_bytes"] == 16 * 2**30
    assert reply["granted"]["time_limit_seconds"] == 7200
    assert fresh.run(["scontrol", "write", "batch_script", job_id, "-"]).stdout == (fresh.project / script).read_bytes()
    shown = fresh.slurm("scontrol", "show", "job", job_id)
    assert "Requeue=0" in shown
    assert "JobName=train.sh" in shown
    assert reply["log_paths"]["stdout"] == f"{fresh.project}/logs/slurm/train.sh-{job_id}.out"
    fresh.slurm("scancel", job_id)
    log = fresh.project.parent / ".state/slurm-agent-tools/decisions.jsonl"
    entries = [json.loads(line) for line in log.read_text().splitlines()]
    assert [entry["event"] for entry in entries] == ["decided", "submitted"]
    assert entries[1]["job_id"] == int(job_id)
    assert entries[0]["policy"]["sha256"] == reply["decision"]["policy"]["sha256"]
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


@pytest.mark.proves("policy-refuses-with-lines")
@pytest.mark.parametrize(
    ("rule", "lines", "remedy"),
    [
        ("memory-per-gpu", ["#SBATCH -p gpu --gpus=1 --mem=20G", "true"], "#SBATCH --mem"),
        ("cuda-visible-devices", ["#SBATCH -p gpu", "export CUDA_VISIBLE_DEVICES=0", "true"], "CUDA_VISIBLE_DEVICES"),
        ("device-index", ["#SBATCH -p gpu", "python3 -c 'import torch; torch.device(\"cuda:1\")'"], "cuda"),
        ("auto-retry", ["#SBATCH -p cpu --requeue", "true"], "--requeue"),
        ("direct-submission", ["#SBATCH -p cpu", "sbatch other.sh"], "submit_job"),
        ("partition", ["#SBATCH -p nowhere", "true"], "#SBATCH --partition=cpu"),
        ("concurrent-jobs", ["#SBATCH -p cpu --array=0-9", "true"], "#SBATCH --array=0-9%4"),
        ("directives", ["#SBATCH -p cpu --reboot", "true"], "--reboot"),
        ("time-limit", ["#SBATCH -p cpu --time=2-00:00:00", "true"], "#SBATCH --time=1-00:00:00"),
        ("interactive", ["#SBATCH -p cpu", "srun --pty bash"], "srun"),
    ],
)
def test_a_refusal_names_the_rule_and_the_corrected_lines_and_leaves_nothing(fresh, rule, lines, remedy):
    code, reply = submit(fresh, write(fresh, "bad.sh", *lines))
    assert (code, reply["status"], reply["blocker"]) == (3, "blocked", "policy"), reply
    assert rule in rules(reply, "deny", "justify"), reply["decision"]
    assert remedy in reply["reason"], reply["reason"]
    assert reply["artifacts"] == reply["manual_commands"] == []
    assert reply["human_action_required"] is False
    assert queued(fresh) == []
    assert not list((fresh.project / "scripts").rglob("*.sh")) if (fresh.project / "scripts").exists() else True


@pytest.mark.proves("person-decides")
def test_what_a_person_must_decide_becomes_a_script_with_the_verdict_in_its_header(fresh):
    script = write(fresh, "big.sh", "#SBATCH -p gpu --gpus=1 --mem-per-gpu=32G", "true")
    replies = [submit(fresh, script) for _ in range(2)]
    for code, reply in replies:
        assert (code, reply["status"], reply["blocker"]) == (3, "blocked", "approval"), reply
        assert reply["human_action_required"] is True
    artifacts = {reply["artifacts"][0] for _, reply in replies}
    assert len(artifacts) == 2
    for artifact in artifacts:
        text = (fresh.project / artifact).read_text()
        assert text.startswith("#!/bin/bash\n#")
        assert "approve" in text.split("#SBATCH")[0]
        assert "#SBATCH -p gpu --gpus=1 --mem-per-gpu=32G" in text
        accepted = fresh.run(["sbatch", "--test-only", artifact])
        assert accepted.returncode == 0, accepted.stderr
    assert queued(fresh) == []


def test_a_justification_lets_the_middle_band_through(fresh):
    script = write(fresh, "mid.sh", "#SBATCH -p gpu --gpus=1 --mem-per-gpu=20G", "sleep 20")
    code, reply = submit(fresh, script)
    assert rules(reply, "justify") == {"memory-per-gpu"}, reply
    code, reply = submit(fresh, script, "--justification=a 7B model needs 20G of host memory for its optimizer")
    assert (code, reply["status"]) == (0, "submitted"), reply
    assert reply["granted"]["memory_per_gpu_bytes"] == 20 * 2**30


@pytest.mark.proves("status-first")
def test_submit_job_wants_a_recent_status_by_the_same_caller(fresh):
    script = write(fresh, "first.sh", "#SBATCH -p cpu", "true")
    code, reply = fresh.cli("submit_job", f"--script={script}")
    assert (code, rules(reply)) == (3, {"status-first"}), reply
    code, reply = submit(fresh, script)
    assert code == 0, reply


@pytest.mark.proves("cap-counts-chains-once")
def test_four_jobs_at_once_and_a_chain_counts_once(fresh):
    ids = []
    for number in range(4):
        code, reply = submit(fresh, write(fresh, f"job{number}.sh", "#SBATCH -p cpu", f"sleep 30{number}"))
        assert code == 0, reply
        ids.append(reply["job_id"])
    fifth = write(fresh, "fifth.sh", "#SBATCH -p cpu", "sleep 5")
    code, reply = submit(fresh, fifth)
    assert (code, rules(reply)) == (3, {"concurrent-jobs"}), reply
    code, reply = submit(fresh, fifth, f"--dependency=afterok:{ids[0]}")
    assert (code, reply["status"]) == (0, "submitted"), reply
    sixth = write(fresh, "sixth.sh", "#SBATCH -p cpu", "sleep 6")
    code, reply = submit(fresh, sixth, f"--dependency=afterok:{ids[0]}")
    assert (code, rules(reply)) == (3, {"concurrent-jobs"}), reply
    status = fresh.cli("get_status", "--no-cache")[1]["slurm"]
    assert (status["active_jobs"], status["slots_left"]) == (4, 0)
    assert all(job["managed"] for job in status["jobs"])


@pytest.mark.proves("failed-needs-analysis")
def test_a_failed_script_needs_analysis_and_then_a_change_or_a_reason(fresh):
    script = write(fresh, "fails.sh", "#SBATCH -p cpu", "echo 'ModuleNotFoundError: No module named foo' >&2", "exit 1")
    code, reply = submit(fresh, script)
    assert code == 0, reply
    failed = reply["job_id"]
    assert fresh.cli("wait_for_job", f"--job-id={failed}", "--timeout=60")[1]["job"]["state"] == "FAILED"
    code, reply = submit(fresh, script)
    assert (code, rules(reply)) == (3, {"auto-retry"}), reply
    assert failed in reply["reason"]
    code, reply = fresh.cli("analyze_log", f"--job-id={failed}")
    assert (code, reply["diagnosis"]["category"]) == (0, "missing-module"), reply
    code, reply = submit(fresh, script)
    assert (code, rules(reply, "justify")) == (3, {"auto-retry"}), reply
    code, reply = submit(fresh, script, "--justification=foo was installed into the environment")
    assert code == 0, reply


@pytest.mark.proves("environment-is-listed")
def test_only_listed_variables_reach_a_job_and_sbatch_variables_count_for_nothing(fresh):
    hostile = {
        "CUDA_VISIBLE_DEVICES": "7", "SECRET": "x", "SBATCH_GRES": "gpu:4", "SBATCH_MEM_PER_NODE": "100G",
        "SBATCH_REQUEUE": "1", "SBATCH_ARRAY_INX": "0-99", "SBATCH_PARTITION": "special", "SLURM_HINT": "nomultithread",
    }  # fmt: skip
    fresh.extra.update(hostile)
    code, reply = submit(fresh, write(fresh, "env.sh", "#SBATCH -p cpu", "env", "srun -n1 env | sed s/^/step-/"))
    assert code == 0, reply
    done = fresh.cli("wait_for_job", f"--job-id={reply['job_id']}", "--timeout=60")[1]
    assert (done["job"]["state"], done["tasks"]) == ("COMPLETED", [])
    text = Path(reply["log_paths"]["stdout"]).read_text()
    assert "SECRET" not in text
    assert "CUDA_VISIBLE_DEVICES" not in text
    assert f"\nHOME={fresh.environment()['HOME']}\n" in text
    assert f"\nstep-HOME={fresh.environment()['HOME']}\n" in text
    assert reply["granted"]["partition"] == "cpu"
    assert reply["granted"]["gpus"] in {0, None}


@pytest.mark.parametrize(
    "name",
    ['a|b "c"', "--uid=0", "é $(id) `id` ; rm -rf x", "%j %x"],
)
def test_a_job_name_and_its_arguments_arrive_as_they_are(fresh, name):
    script = write(fresh, "args.sh", "#SBATCH -p cpu -o logs/slurm/args-%j.out", 'printf "%s\\0" "$@"')
    fresh.cli("get_status", "--no-cache")
    words = ["one two", "--three", "$(id)", "ü\n4"]
    options = [f"--job-name={name}", *(f"--args={word}" for word in words)]
    code, reply = fresh.cli("submit_job", f"--script={script}", *options)
    assert code == 0, reply
    done = fresh.cli("wait_for_job", f"--job-id={reply['job_id']}", "--timeout=60")[1]
    assert done["job"]["name"] == name
    assert Path(reply["log_paths"]["stdout"]).read_bytes().split(b"\0")[:-1] == [word.encode() for word in words]


@pytest.mark.proves("cancel-own-and-read")
def test_cancel_job_ends_only_what_the_guard_submitted_and_somebody_looked_at(fresh):
    code, reply = submit(fresh, write(fresh, "long.sh", "#SBATCH -p cpu", "sleep 100"))
    job_id = reply["job_id"]
    code, reply = fresh.cli("cancel_job", f"--job-id={job_id}", "--reason=wrong data")
    assert (code, reply["status"], reply["blocker"]) == (3, "blocked", "policy"), reply
    fresh.cli("wait_for_job", f"--job-id={job_id}", "--no-wait")
    code, reply = fresh.cli("cancel_job", f"--job-id={job_id}", "--reason=wrong data")
    assert (code, reply["status"]) == (0, "cancelled"), reply
    assert fresh.cli("wait_for_job", f"--job-id={job_id}", "--timeout=60")[1]["job"]["state"] == "CANCELLED"
    foreign = fresh.slurm("sbatch", "--parsable", "-pcpu", "-o", "/dev/null", stdin=b"#!/bin/bash\nsleep 100\n")
    fresh.cli("wait_for_job", f"--job-id={foreign}", "--no-wait")
    code, reply = fresh.cli("cancel_job", f"--job-id={foreign}", "--reason=not mine")
    assert (code, reply["blocker"], reply["manual_commands"]) == (3, "approval", [f"scancel {foreign}"])
    assert foreign in fresh.slurm("squeue", "-h", "-o", "%A").split()
    code, reply = fresh.cli("cancel_job", "--job-id=99999", "--reason=unknown")
    assert (code, reply["error"]["code"]) == (2, "unknown_job")


@pytest.mark.proves("results-never-overwrite")
def test_two_results_in_one_second_both_survive_and_compare(fresh):
    code, reply = submit(fresh, write(fresh, "ok.sh", "#SBATCH -p cpu", "echo loss: 0.25"))
    fresh.cli("wait_for_job", f"--job-id={reply['job_id']}", "--timeout=60")
    saved = []
    for loss in (0.5, 0.25, 0.125):
        code, answer = fresh.cli(
            "save_result", "--name=exp", "--status=success", "--metrics", json.dumps({"loss": loss}),
            "--config", json.dumps({"lr": loss}), f"--job-id={reply['job_id']}",
        )  # fmt: skip
        assert code == 0, answer
        saved.append(answer["file_path"])
    assert len(set(saved)) == 3
    record = json.loads((fresh.project / saved[0]).read_text())
    assert record["environment"]["slurm_job"]["job"]["state"] == "COMPLETED"
    code, answer = fresh.cli("compare_results", f"--baseline={saved[0]}", f"--target={saved[1]}")
    assert answer["metrics"]["loss"] == {"baseline": 0.5, "target": 0.25, "change": -0.25, "percent": -50.0}
    assert answer["config_diff"] == {"lr": {"baseline": 0.5, "target": 0.25}}


@pytest.mark.proves("generated-scripts-pass")
def test_a_generated_script_is_submitted_as_it_is(fresh):
    code, reply = fresh.cli("generate_script", "--name=hello", "--command=echo hello; sleep 1", "--gpus=2")
    assert (code, reply["status"]) == (0, "written"), reply
    assert len(reply["reasons"]) >= 5
    code, sent = submit(fresh, reply["path"])
    assert (code, sent["status"]) == (0, "submitted"), sent
    assert sent["granted"]["gpus"] == 2
    done = fresh.cli("wait_for_job", f"--job-id={sent['job_id']}", "--timeout=60")[1]
    assert done["job"]["state"] == "COMPLETED"


@pytest.mark.proves("faces-agree")
async def test_both_faces_give_the_same_answer(fresh):
    script = write(fresh, "same.sh", "#SBATCH -p cpu --mem=90G", "true")
    fresh.cli("get_status", "--no-cache")
    async with fresh.client() as client:
        for tool, arguments, words in [
            ("submit_job", {"script": script, "dry_run": True}, [f"--script={script}", "--dry-run"]),
            ("validate_config", {"config_path": script}, [f"--config={script}"]),
            ("wait_for_job", {"job_id": 99999}, ["--job-id=99999"]),
            ("get_status", {"sections": ["partitions"]}, ["--section=partitions"]),
        ]:
            over_mcp = await call(client, tool, **arguments)
            over_cli = fresh.cli(tool, *words)[1]
            for body in (over_mcp, over_cli):
                body.pop("as_of", None)
                body.pop("idempotency_key", None)
                body.pop("age_seconds", None)
                decision = body.get("decision") or {}
                decision.pop("id", None)
                for rule in decision.get("rules", []):  # the seconds since get_status go on while this test runs
                    if rule["id"] == "status-first" and rule["outcome"] == "pass":
                        assert rule.pop("message").startswith("get_status was called ")
                        assert 0 <= rule.pop("observed") < 60
            assert over_mcp == over_cli


def test_a_key_that_is_repeated_gives_the_first_answer(fresh):
    script = write(fresh, "once.sh", "#SBATCH -p cpu", "sleep 30")
    first = submit(fresh, script, "--idempotency-key=k1")
    again = submit(fresh, script, "--idempotency-key=k1")
    assert again[1]["summary"].startswith("Nothing new was sent: ")
    assert first[1] == {**again[1], "summary": first[1]["summary"]}
    assert len(queued(fresh)) == 1
    code, reply = submit(fresh, script)
    assert (code, rules(reply, "justify")) == (3, {"duplicate"}), reply
    assert first[1]["job_id"] in reply["reason"]


def test_nothing_is_written_outside_the_folders_that_the_policy_names(fresh):
    before = set(fresh.project.rglob("*"))
    code, reply = fresh.cli("save_result", "--name=x", "--status=success", "--output-dir=scripts")
    assert (code, rules(reply)) == (3, {"path"}), reply
    assert set(fresh.project.rglob("*")) == before
