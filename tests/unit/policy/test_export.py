"""The limits in Slurm's own terms. That the controller loads and holds them is tests/system/test_floor.py."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from slurm_agent_tools.cli.commands import policy_show
from slurm_agent_tools.errors import AgentToolsError, InputError
from slurm_agent_tools.policy.for_others import Site, job_submit_lua, qos_lines
from slurm_agent_tools.policy.loading import LoadedPolicy, load, shipped


def layered(*layers: str) -> LoadedPolicy:
    return load(shipped(), [(f"policies/{number}.yaml", layer.encode()) for number, layer in enumerate(layers)])


def limits(text: str) -> dict[str, float]:
    table = re.search(r"^local LIMIT = \{\n(.*?)^\}", text, re.DOTALL | re.MULTILINE)
    assert table
    return {key: float(value) for key, value in re.findall(r"(\w+) = ([\d.e+]+),", table[1])}


def run(loaded: LoadedPolicy, *words: str) -> int:
    parser = argparse.ArgumentParser()
    policy_show.add_export_arguments(parser)
    return policy_show.export(parser.parse_args(words), loaded)


def test_the_floor_is_the_end_of_each_justify_band_in_the_controllers_units():
    bands = layered().policy.limits
    assert limits(job_submit_lua(layered())) == {
        "memory_per_gpu": bands.memory_per_gpu.justify // 2**20,
        "memory_without_gpus": bands.memory_without_gpus.justify // 2**20,
        "gpus": bands.gpus.justify,
        "time": bands.time_limit.justify // 60,
        "jobs": bands.max_concurrent_jobs,
    }


def test_a_stricter_layer_makes_a_stricter_floor_and_optional_limits_appear():
    loaded = layered(
        "limits: {memory_per_gpu: {free: 8G, justify: 12G}, gpu_hours_per_job: 12.5, cpu_hours_per_job: 96}"
    )
    found = limits(job_submit_lua(loaded))
    assert (found["memory_per_gpu"], found["gpu_hours"], found["cpu_hours"]) == (12288, 12.5, 96)
    assert "--mem-per-gpu=8G as the only memory option" in job_submit_lua(loaded)
    assert "MaxTRESMinsPerJob=gres/gpu=750,cpu=5760" in qos_lines(loaded)


def test_the_file_names_its_policy_and_is_the_same_every_time():
    loaded = layered("limits: {max_concurrent_jobs: 2}")
    text = job_submit_lua(loaded)
    assert text == job_submit_lua(layered("limits: {max_concurrent_jobs: 2}"))
    assert f"-- policy  {loaded.name}, version {loaded.version}\n-- sha256  {loaded.sha256}\n" in text
    assert text.endswith("return slurm.SUCCESS\n")
    assert text != job_submit_lua(layered())


def test_no_text_of_a_policy_gets_out_of_its_comment_or_string():
    loaded = layered()
    evil = LoadedPolicy(loaded.policy, loaded.sha256, 'x"\\\nos.exit()', 'a\u2028b\r\nos.exit() -- "')
    lua = job_submit_lua(evil)
    assert [line for line in lua.splitlines() if "os.exit" in line] == [
        '-- policy  a b  os.exit() -- ", version x"\\ os.exit()',
        f'local POLICY = "a?b??os.exit() -- \\" x\\"\\\\?os.exit() {loaded.sha256[:12]}"',
    ]
    found = [line for line in qos_lines(evil).splitlines() if "os.exit" in line]
    assert [line[0] for line in found] == ["#"]


def test_the_sites_own_settings_stand_at_the_top():
    site = Site(exempt_users=("ops", "ada.l"), exempt_accounts=("staff",), threads_per_core=2, most_gpus_per_node=4)
    text = job_submit_lua(layered(), site)
    head = text[: text.index("local function")]
    for line in (
        'local EXEMPT_USERS = { ["ada.l"] = true, ["ops"] = true }',
        'local EXEMPT_ACCOUNTS = { ["staff"] = true }',
        "local THREADS_PER_CORE = 2",
        "local MOST_GPUS_PER_NODE = 4",
    ):
        assert line in head.splitlines()


@pytest.mark.parametrize(
    ("site", "field"),
    [
        (Site(exempt_users=('"] = true, ["x',)), "exempt_users"),
        (Site(exempt_accounts=("",)), "exempt_accounts"),
        (Site(threads_per_core=0), "threads_per_core"),
        (Site(most_gpus_per_node=0), "most_gpus_per_node"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(site: Site, field: str):
    with pytest.raises(InputError, match=field):
        job_submit_lua(layered(), site)


def test_each_named_qos_gets_the_limits_and_a_name_cannot_carry_a_command():
    lines = [line for line in qos_lines(layered(), ["normal", "high"]).splitlines() if line.startswith("sacctmgr")]
    words = "set MaxJobsPerUser=4 MaxTRESPerJob=gres/gpu=8 MaxWall=3-00:00:00 Flags+=DenyOnLimit"
    assert lines == [f"sacctmgr -i modify qos where name={name} {words}" for name in ("normal", "high")]
    with pytest.raises(InputError, match="qos"):
        qos_lines(layered(), ["normal; reboot"])


def test_the_command_prints_or_makes_a_new_file_and_never_writes_over_one(tmp_path: Path, capsys):
    assert run(layered(), "job-submit-lua", "--exempt-user", "ops") == 0
    assert capsys.readouterr().out == job_submit_lua(layered(), Site(exempt_users=["ops"]))
    target = tmp_path / "limits.sh"
    assert run(layered(), "qos", "--qos", "short", "--output", str(target)) == 0
    assert target.read_text() == qos_lines(layered(), ["short"])
    assert capsys.readouterr().out == ""
    with pytest.raises(InputError, match="output"):
        run(layered(), "qos", "--output", str(target))
    assert target.read_text() == qos_lines(layered(), ["short"])


def test_a_file_is_loaded_in_a_lua_where_that_is_asked_for(tmp_path: Path, capsys):
    words = ["job-submit-lua", "--tokens", f"files:{tmp_path}", "--agent-account", "agents", "--check"]
    assert run(layered(), *words, "--output", str(tmp_path / "good.lua")) == 0
    assert "was loaded by Lua 5." in capsys.readouterr().out
    with pytest.raises(AgentToolsError, match="nowhere"):
        run(layered(), "job-submit-lua", "--tokens", "hmac:/nowhere", "--check", "--output", str(tmp_path / "bad.lua"))
    with pytest.raises(InputError, match="check"):
        run(layered(), *words)
    with pytest.raises(InputError, match="spent_tickets"):
        run(layered(), "job-submit-lua", "--spent-tickets", "/a")
