import os
from pathlib import Path

import pytest

from slurm_agent_tools.api.catalogue import TOOLS
from slurm_agent_tools.server import reference_pages
from slurm_agent_tools.settings import (
    ClusterSettings,
    EfficiencySettings,
    FleetSettings,
    GpuMetricsSettings,
    HttpSettings,
    MemorySettings,
    NotifySettings,
    RateSettings,
    Settings,
    SlurmSettings,
)

PAGES = Path(__file__).parents[3] / "docs" / "reference"


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("tools.md", reference_pages.tools()),
        ("resources.md", reference_pages.offers()),
        ("settings.md", reference_pages.settings()),
    ],
)
def test_the_committed_page_is_the_generated_one(name, page):
    if os.environ.get("UPDATE_REFERENCE") == "1":
        (PAGES / name).write_text(page, encoding="utf-8")

    assert (PAGES / name).read_text(encoding="utf-8") == page, (
        "UPDATE_REFERENCE=1 pytest tests/unit/server/test_reference.py"
    )


def test_a_reading_tool_that_remembers_says_so_and_no_other():
    assert {tool.name for tool in TOOLS if tool.remembers} == {
        "get_status", "wait_for_job", "analyze_log", "choose_backend",
    }  # fmt: skip
    for tool in TOOLS:
        assert ("remembered" in tool.description) is tool.remembers
        assert tool.read_only or not tool.remembers


def test_every_tool_has_its_section_with_every_argument():
    sections = dict(part.split("\n", 1) for part in reference_pages.tools().split("\n## ")[1:])

    missing = [
        (tool.name, name)
        for tool in TOOLS
        for name in tool.ask.model_fields
        if f"| `{name}` | " not in sections[tool.name]
    ]
    assert missing == []


def test_every_shape_that_is_named_is_on_the_page():
    page = reference_pages.tools()
    headings = {line.removeprefix("### ").lower() for line in page.splitlines() if line.startswith("### ")}

    named = {part.split(")", 1)[0] for part in page.split("](#")[1:]}
    assert named == headings


def test_every_setting_is_on_the_page_under_both_its_names():
    page = reference_pages.settings()
    tables = {
        "slurm": SlurmSettings,
        "http": HttpSettings,
        "rates": RateSettings,
        "efficiency": EfficiencySettings,
        "gpu_metrics": GpuMetricsSettings,
        "fleet": FleetSettings,
        "notify": NotifySettings,
        "memory": MemorySettings,
        "clusters.NAME": ClusterSettings,
        "clusters.NAME.slurm": SlurmSettings,
    }
    names = [name for name in Settings.model_fields if name not in {*tables, "clusters"}]
    for table, model in tables.items():
        names += [f"{table}.{name}" for name in model.model_fields if name != "slurm"]

    rows = [f"| `{name}` | `SLURM_AGENT_{name.upper().replace('.', '__')}` |" for name in names]
    assert [row for row in rows if row not in page] == []
    assert page.count("SLURM_AGENT_") == len(rows)


def test_the_pages_hold_nothing_of_the_machine_that_made_them(monkeypatch, tmp_path):
    before = reference_pages.settings()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SLURM_AGENT_STATE_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    assert reference_pages.settings() == before
    assert str(Path.home()) not in reference_pages.tools()
