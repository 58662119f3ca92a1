"""Every pattern of --output, as a real Slurm writes the file and as analyze_log finds it."""

from __future__ import annotations

import pytest

SCRIPT = b"#!/bin/bash\necho 'RuntimeError: CUDA out of memory'\nexit 3\n"
WAYS = {
    "plain": ["-o", "logs/out.txt"],
    "numbers": ["-o", "logs/%A-%j-%J-%n-%t.txt"],
    "texts": ["-J", "named", "-o", "logs/%x-%u-%s.txt"],
    "no name": ["-o", "logs/%x-%u-%s.txt"],
    "zeros": ["-o", "logs/%6j-%3x-%4n.txt"],
    "per cent": ["-o", "logs/100%%-%j.txt"],
    "no array": ["-o", "logs/%A_%a-%b.txt"],
    "default": [],
    "folder": ["-D", "{project}/below", "-o", "here-%j.txt"],
    "apart": ["-o", "logs/%j.txt", "-e", "logs/%x-%j-errors.txt"],
    "odd name": ["-J", "50%j of it", "-o", "logs/%x.txt"],
}


@pytest.mark.proves("logs-are-found")
def test_slurm_s_record_of_the_output_leads_to_the_file_whatever_its_pattern(place):
    (place.project / "logs").mkdir()
    (place.project / "below").mkdir()
    place.own()
    jobs = {}
    for way, words in WAYS.items():
        given = [word.format(project=place.project) if "{" in word else word for word in words]
        jobs[way] = place.slurm("sbatch", "--parsable", "-pcpu", "-D", str(place.project), *given, stdin=SCRIPT)
    jobs["array"] = place.slurm(
        "sbatch", "--parsable", "-pcpu", "-D", str(place.project), "-a", "3,12", "-o", "logs/%A_%3a-%b-%x-%j.txt",
        stdin=SCRIPT,
    ) + "_12"  # fmt: skip
    for job in jobs.values():
        place.cli("wait_for_job", f"--job-id={job}", "--timeout=60")
    wrong = {}
    for way, job in jobs.items():
        _, reply = place.cli("analyze_log", f"--job-id={job}")
        if reply["diagnosis"]["category"] != "gpu-out-of-memory":
            wrong[way] = reply["files"]
        assert f'save_result with status="failed" and job_id="{job}"' in reply["diagnosis"]["suggestions"][-1]
    assert wrong == {}
