"""The login node breaks while a laptop works through it: nothing is sent twice, and it goes on by itself."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import anyio
import pytest
from tests.system.faces import Place, call, cut_connections, laptop
from tests.system.faults.page import TRIAL, says, script
from tests.system.test_outages import jobs_named, wrapper
from tests.watchdog import SECONDS

from slurm_agent_tools.devcluster import login_node
from slurm_agent_tools.devcluster.login_node import LoginNode

AWAY = "The login node does not answer"


@pytest.mark.proves("faults-have-their-answer")
async def test_while_the_login_node_is_away_nothing_is_sent_and_afterwards_the_same_server_goes_on(
    fresh: Place, login: LoginNode
):
    far = laptop(fresh, login)
    script(far, "far")
    async with far.client() as client:
        assert (await call(client, "get_status"))["cluster"]["reachable"]
        await login_node.stop(fresh.cluster)
        try:
            told = await call(client, "get_status", refresh=True)
            assert told["status"] == "partial"
            says(AWAY, told["summary"])
            refused = await call(client, "submit_job", script="far.sh")
            assert (refused["status"], refused["blocker"]) == ("blocked", "cluster_unreachable"), refused
            says(AWAY, refused["reason"])
            assert (far.project / refused["artifacts"][0]).is_file()
        finally:
            await login_node.up(fresh.cluster)
        with anyio.fail_after(SECONDS):
            while (again := await call(client, "get_status", refresh=True))["status"] != "ok":  # noqa: ASYNC110
                await anyio.sleep(0.5)
        assert again["slurm"]["active_jobs"] == 0
        sent = await call(client, "submit_job", script="far.sh")
    assert sent["status"] == "submitted", sent
    assert jobs_named(fresh, "far.sh") == [sent["job_id"]]


@pytest.mark.proves("faults-have-their-answer", "ssh-sends-once")
async def test_a_connection_that_is_cut_while_sbatch_runs_leaves_one_job_that_goes_on(fresh: Place, login: LoginNode):
    far = laptop(fresh, login)
    sent = fresh.project.parent / "sent"
    folder = wrapper(fresh, f'{TRIAL}$REAL/sbatch "$@" && touch {sent} && exec sleep 30')
    with far.settings.open("a") as file:
        file.write(f'{far.table("clusters.lab.slurm")}bin_dir = "{folder}"\n')
    script(far, "cut")
    fresh.own()
    answers = []
    async with far.client() as client:
        await call(client, "get_status")

        async def submit() -> None:
            answers.append(await call(client, "submit_job", script="cut.sh", idempotency_key="cut"))

        async with anyio.create_task_group() as group:
            group.start_soon(submit)
            with anyio.fail_after(SECONDS):
                while not sent.exists():  # noqa: ASYNC110
                    await anyio.sleep(0.05)
            cut_connections(fresh.cluster)
        again = await call(client, "submit_job", script="cut.sh", idempotency_key="cut")
    assert answers[0]["status"] in {"submitted", "unconfirmed"}, answers
    assert again["status"] == "submitted", again
    assert jobs_named(fresh, "cut.sh") == [again["job_id"]]


@pytest.mark.proves("faults-have-their-answer", "host-keys-are-checked")
def test_a_login_node_with_another_key_is_not_spoken_to(fresh: Place, login: LoginNode):
    far = laptop(fresh, login)
    known = far.project.parent / "known_hosts"
    shutil.copy(login.known_hosts, known)
    other = (fresh.cluster.folder / "ssh/id_ed25519.pub").read_text().split()[1]
    known.write_text(re.sub(r"(ssh-ed25519) \S+", rf"\1 {other}", known.read_text()))
    with far.settings.open("a") as file:
        file.write(f'known_hosts = "{known}"\n')
    fresh.own()
    _, told = far.cli("get_status")
    assert not told["cluster"]["reachable"]
    says("The login node's key has changed", told["summary"])


@pytest.mark.proves("ssh-is-no-different")
def test_a_job_is_submitted_waited_for_and_diagnosed_from_a_machine_without_slurm(fresh: Place, login: LoginNode):
    far = laptop(fresh, login)
    (fresh.project / "count.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\")\n")
    (far.project / "count.sh").write_text(
        "#!/bin/bash\n#SBATCH --partition=cpu --time=5 --output=logs/slurm/%x-%j.out\npython3 count.py\n"
    )
    fresh.own()
    assert far.cli("get_status")[0] == 0
    code, sent = far.cli("submit_job", "--script=count.sh")
    assert (code, sent["status"]) == (0, "submitted"), sent
    assert sent["log_paths"]["stdout"].startswith(f"{fresh.project}/logs/slurm/")
    code, ended = far.cli("wait_for_job", f"--job-id={sent['job_id']}", "--timeout=60")
    assert (code, ended["job"]["state"]) == (0, "FAILED"), ended
    _, why = far.cli("analyze_log", f"--job-id={sent['job_id']}")
    assert why["diagnosis"]["category"] == "missing-module", why
    assert "torch" in str(why["diagnosis"]["evidence"])
    code, saved = far.cli("save_result", "--name=count", "--status=failed", f"--job-id={sent['job_id']}")
    assert code == 0
    assert (far.project / saved["file_path"]).is_file()
    assert not (fresh.project / saved["file_path"]).exists()
    assert far.project != Path(fresh.project)
