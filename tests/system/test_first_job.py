"""A new folder, and nothing else: what `init` leaves is enough for an agent's first job, from status to saved result."""

from __future__ import annotations

import sys

from tests.system.faces import Place


def test_the_example_of_a_new_folder_runs_and_its_result_is_saved(fresh: Place) -> None:
    done = fresh.run([sys.executable, "-m", "slurm_agent_tools", "init", "."])
    assert done.returncode == 0, done.stderr
    assert b"Submit scripts/slurm/example.sh" in done.stdout

    assert fresh.cli("get_status")[0] == 0
    code, sent = fresh.cli("submit_job", "scripts/slurm/example.sh")
    assert (code, sent["status"]) == (0, "submitted"), sent
    job = sent["job_id"]
    code, ended = fresh.cli("wait_for_job", job, "--timeout-seconds", "60")
    assert (code, ended["job"]["state"]) == (0, "COMPLETED"), ended
    code, read = fresh.cli("analyze_log", job, "--mode", "metrics")
    assert (code, read["metrics"]["loss"]) == (0, 0.3), read
    code, saved = fresh.cli("save_result", "example", "--status", "success", "--job-id", job, "--metrics", "loss=0.3")
    assert (code, saved["status"]) == (0, "saved"), saved


def test_the_command_alone_and_doctor_say_that_it_works_here(fresh: Place) -> None:
    alone = fresh.run([sys.executable, "-m", "slurm_agent_tools"])
    assert alone.returncode == 0, alone.stderr
    assert b"Slurm's commands are in" in alone.stdout
    assert b"is not set up yet" in alone.stdout
    doctor = fresh.run([sys.executable, "-m", "slurm_agent_tools", "doctor"])
    assert doctor.returncode == 0, doctor.stdout
    assert doctor.stdout.startswith(b"Works: an agent in ")
