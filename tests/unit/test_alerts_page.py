"""The page of alerts says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

from slurm_agent_tools.diagnosis import alert_types, alerts
from slurm_agent_tools.diagnosis.alert_types import CROWDED, KINDS
from slurm_agent_tools.models.shapes import ESCALATION, Alert
from slurm_agent_tools.server.mcp_server import LEVELS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/alerts.md").read_text()
ROW = re.compile(r"^\| `([a-z_-]+)` \| ([a-z ]+) \| (.+) \|$", re.MULTILINE)


def test_every_kind_of_alert_about_a_job_stands_there_in_its_order_and_with_its_words():
    section = PAGE.split("\n## About a job\n")[1].split("\n## ")[0]
    assert ROW.findall(section) == [(code, severity, when) for code, (severity, when) in KINDS.items()]


def test_every_severity_stands_there_with_its_escalation_and_its_level():
    for severity, escalation in ESCALATION.items():
        assert f"| `{severity}` | `{escalation}` |" in PAGE
    words = " ".join(PAGE.split())
    assert "`critical` at the level `critical`, `high` at `error`, `medium` at `warning`" in words
    assert dict(LEVELS) == {"critical": "critical", "high": "error", "medium": "warning"}


def test_an_alert_that_was_kept_without_an_escalation_gets_that_of_its_severity():
    for severity, escalation in ESCALATION.items():
        kept = Alert.model_validate_json(f'{{"severity": "{severity}", "code": "drift", "message": "m"}}')
        assert kept.escalation == escalation
        assert Alert.model_validate_json(kept.model_dump_json()) == kept


def test_the_figures_are_those_of_the_code():
    assert (alerts.MEMORY_SHARE, alerts.TIME_LEFT, CROWDED) == (0.95, 300, 20)
    assert (alerts.PATIENCE, alerts.SLOWER, alerts.ENOUGH_RUNS) == (30, 2, 3)
    assert (alerts.SLACK, alert_types.KNOWN) == (10, 0.05)
    assert (alerts.LEAST_LEFT, alerts.AT_ONCE) == (0.2, 60)


def test_every_code_in_the_source_stands_there():
    sources = "\n".join(path.read_text() for path in (ROOT / "src/slurm_agent_tools").rglob("*.py"))
    made = re.findall(r'\bAlert\(\s*severity=[^,]+, code="([a-z_-]+)"', sources)
    raised = re.findall(r'\balert\(\s*"([a-z-]+)"', sources)
    assert {"nodes-down", "drift"} <= set(made)
    assert set(raised) == set(KINDS)
    assert set(made) <= {code for code, _, _ in ROW.findall(PAGE)}
