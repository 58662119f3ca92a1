"""The files for Prometheus and Grafana name what the server tells, and nothing else."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from tests.unit.fleet.looks import facts, node
from tests.unit.fleet.test_cost_shares_and_alerts import RATES, ran
from tests.unit.fleet.test_idle_and_waits import job, look, step, waiting

from slurm_agent_tools.fleet import fleet_metrics
from slurm_agent_tools.fleet.fleet_metrics import GuardCounts
from slurm_agent_tools.models.job import PastWait, PastWaits
from slurm_agent_tools.server.http.machine_pages import METRICS, rendered
from slurm_agent_tools.settings import FleetSettings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
RULES = DEPLOY / "prometheus" / "slurm-agent-tools.rules.yaml"
NAME = re.compile(r"\bslurm_agent_[a-z_]+")
GUIDE = (ROOT / "docs" / "guides" / "monitoring.md").read_text()


def everything(times: int = 1) -> str:
    """The text of a server of which every family has a sample; what is counted was counted so many times."""
    runs = (ran(1, 1, comment="sat-0123456789abcdef:rates/r1/t1"),)
    held = look(job(), use=[step(0)], series=[[0.5] * 5, [0.5] * 5])
    given = facts(
        [node("a", "a100", 4, 2)], mine=(job(), waiting()), mine_waiting=21, use=held.use, gpu_series=held.gpu_series,
        queue={("main", "RUNNING"): 1}, ran=runs, rates=RATES, user="ada",
        past=PastWaits((PastWait(1, "main", 60, job().resources),), 24), settings=FleetSettings(quotas={"user:ada": 0.5}),
    )  # fmt: skip
    guard = GuardCounts(
        decisions={"deny": times}, rules={("gpus", "deny"): times}, campaigns={"running": 1},
        steps={("squeue", 0.1): times, ("squeue", float("inf")): times}, seconds={"squeue": 0.1 * times},
    )  # fmt: skip
    return rendered(fleet_metrics.metrics(given, (), guard)).decode()


@pytest.fixture(scope="module")
def there() -> set[str]:
    families = list(text_string_to_metric_families(everything()))
    return {one.name for family in families for one in family.samples}


def expressions(value: Any) -> list[str]:
    """Every PromQL expression in a document, variables of the dashboard included."""
    if isinstance(value, dict):
        said = [text for key in ("expr", "query") if isinstance(text := value.get(key), str)]
        own = [text for text in said if text != "prometheus"]  # the kind of a data source
        return own + [one for inner in value.values() for one in expressions(inner)]
    return [one for inner in value for one in expressions(inner)] if isinstance(value, list) else []


@pytest.mark.proves("deployed-names-are-real")
@pytest.mark.parametrize(
    "path",
    sorted(one for name in ("grafana", "prometheus") for one in (DEPLOY / name).iterdir()),
    ids=lambda one: one.name,
)
def test_every_metric_that_a_file_names_is_told(path: Path, there: set[str]):
    named = set(NAME.findall(path.read_text()))
    assert named - there == set()
    assert named or path.name == "prometheus.yaml" or path.parent.parent.name == "modulefiles"


@pytest.mark.proves("deployed-names-are-real")
def test_every_metric_that_is_told_is_on_the_dashboard_and_in_the_guide(there: set[str]):
    plain = {re.sub(r"_(bucket|count|sum|created)$", "", name) for name in there}
    board = NAME.findall((DEPLOY / "grafana" / "slurm-agent-tools.json").read_text())
    assert plain - {re.sub(r"_(bucket|count)$", "", name) for name in board} == set()
    assert {name for name in plain if f"`{name}`" not in GUIDE} == set()


def test_every_alert_is_tried_and_explained():
    alerts = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
    tried = RULES.with_name("slurm-agent-tools.rules.test.yaml").read_text()
    for rule in alerts:
        assert f"alertname: {rule['alert']}\n        exp_alerts" in tried, rule["alert"]
        assert f"`{rule['alert']}`" in GUIDE
        assert rule["labels"]["severity"] in {"critical", "high", "medium"}
        assert rule["for"]
        assert rule["annotations"].keys() == {"summary", "description"}


def test_the_thresholds_are_those_that_were_asked_for():
    rules = {rule["alert"]: rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]}
    low, deep = rules["SlurmAgentGpuUseLow"], rules["SlurmAgentQueueDeep"]
    assert (low["expr"], low["for"]) == ("slurm_agent_own_gpu_use_ratio < 0.5", "30m")
    assert deep["expr"] == "slurm_agent_own_pending_jobs > 20"


def test_the_example_scrapes_the_page_with_a_token():
    told = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yaml").read_text())
    (scrape,) = told["scrape_configs"]
    assert scrape["metrics_path"] == METRICS
    assert scrape["authorization"]["credentials_file"].startswith("/")
    assert "credentials" not in scrape["authorization"]
    assert told["rule_files"] == [RULES.name]
    rules = RULES.read_text()
    assert f'up{{job="{scrape["job_name"]}"}}' in rules


def test_the_dashboard_has_a_query_in_each_panel_and_room_for_each():
    board = json.loads((DEPLOY / "grafana" / "slurm-agent-tools.json").read_text())
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    assert all(expressions(panel) for panel in board["panels"])
    taken = [
        (x, y)
        for panel in board["panels"]
        for place in [panel["gridPos"]]
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(taken)) == len(taken)
    assert all(x < 24 for x, _ in taken)


def test_the_files_are_in_the_distributions():
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    assert build["wheel"]["force-include"]["deploy"] == "slurm_agent_tools/assets/deploy"
    assert "deploy" in build["sdist"]["include"]
