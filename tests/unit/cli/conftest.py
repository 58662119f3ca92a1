from __future__ import annotations

from dataclasses import replace

import pytest
from tests.unit.services.contexts import OneContext
from tests.unit.services.fakes import fake_toolbox

from slurm_agent_tools.cli.commands import (
    approve_command,
    findings_command,
    launch_command,
    report_command,
    simulate_command,
)
from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.services.context import ClusterContext


@pytest.fixture
def slurm() -> FakeSlurm:
    return FakeSlurm()


@pytest.fixture
def context(slurm, tmp_path, monkeypatch) -> ClusterContext:
    """What each command opens; both channels count."""
    made = fake_toolbox(tmp_path, slurm).context
    policy = made.policy.policy.model_copy(update={"approval_channels": ("terminal", "signed")})
    made = replace(made, policy=replace(made.policy, policy=policy))
    for command in (approve_command, findings_command, launch_command, report_command, simulate_command):
        monkeypatch.setattr(command, "OpenedContexts", lambda _: OneContext(made))
    monkeypatch.setenv("SLURM_AGENT_PROJECT_ROOT", str(tmp_path))
    return made
