"""The service may look at all jobs, and tells a user of others' jobs what Slurm itself would tell."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from tests.unit.server.site.site_in_memory import ALICE, BOB, SCRIPT, Site, site
from tests.unit.server.site.test_site_tickets import words

from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.errors import SlurmUnreachable
from slurm_agent_tools.slurm.hidden_jobs import SlurmForUser, hides_jobs
from slurm_agent_tools.transport.unix_peer import UnixUser

UNKNOWN = "Slurm does not know job N. Slurm 22.05 runs a job at once when the job that it should wait for is unknown."


def job_of(made: Site, user: UnixUser, **life: object) -> str:
    made.slurm.next_job(**life)  # type: ignore[arg-type]
    argv = ["sbatch", "--parsable", "--mem=100M"]
    sent = FakeSlurm._command(made.slurm, argv, b"#!/bin/bash\nsleep 60\n", str(made.project), user.name)
    made.slurm.clock.move(10)
    return sent.out.strip()


async def told(made: Site, job: str) -> str:
    """What a dependency on the job is answered, without its number."""
    line = f"#SBATCH --dependency=afterok:{job}\n#SBATCH --mem"
    (made.project / "job.sh").write_text(SCRIPT.replace("#SBATCH --mem", line))
    answer = await made.client().ask("judge", {**words(made), "dry": True})
    rules: Sequence[Mapping[str, str]] = json.loads(answer["decision"])["rules"]
    (found,) = (rule["message"] for rule in rules if rule["id"] == "dependency")
    return re.sub(rf"\b{job}\b", "N", found)


@pytest.mark.parametrize("private", ["jobs", "accounts,jobs,usage", "all"])
async def test_where_jobs_are_hidden_one_of_another_user_is_as_one_that_never_was(tmp_path: Path, private: str):
    """Its number told whether it was there, whether it went on, and how it ended."""
    async with site(tmp_path) as made:
        made.slurm.extra["private"] = private
        theirs = [job_of(made, BOB, exit_code=3, after=1), job_of(made, BOB, after=None)]
        mine = job_of(made, ALICE, after=None)
        assert [await told(made, job) for job in [*theirs, "999"]] == [UNKNOWN] * 3
        assert await told(made, mine) == "The job waits for N."


async def test_where_everybody_sees_all_jobs_one_of_a_labmate_can_be_waited_for(tmp_path: Path):
    async with site(tmp_path) as made:
        failed, going = job_of(made, BOB, exit_code=3, after=1), job_of(made, BOB, after=None)
        assert await told(made, going) == "The job waits for N."
        assert (await told(made, failed)).startswith("Job N ended FAILED")


@pytest.mark.parametrize("answer", [None, {"ClusterName": "fake"}])
async def test_where_the_configuration_does_not_tell_they_are_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: dict[str, str] | None
):
    async def configuration(_: SlurmForUser) -> dict[str, str]:
        if answer is None:
            raise SlurmUnreachable("Slurm does not answer.")
        return answer

    monkeypatch.setattr(SlurmForUser, "configuration", configuration)
    async with site(tmp_path) as made:
        theirs, mine = job_of(made, BOB, after=None), job_of(made, ALICE, after=None)
        assert [await told(made, theirs), await told(made, mine)] == [UNKNOWN, "The job waits for N."]


@pytest.mark.parametrize(
    ("private", "hidden"),
    [("none", False), ("", False), ("accounts,usage", False), ("jobs", True), ("Accounts, Jobs", True), ("ALL", True)],
)
def test_which_words_of_the_configuration_hide_jobs(private: str, hidden: bool):
    assert hides_jobs(private) is hidden
