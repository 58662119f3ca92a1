"""What the tools answer while a part of Slurm is away, as the reference page has it."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest
from tests.scenarios.either import FakeBench
from tests.scenarios.missing_sources import SOURCES, Answers, Missing, page

from slurm_agent_tools.models.arguments import GetStatus

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "missing-sources.md"


async def answers(source: str, folder: Path) -> Answers:
    """What the fake Slurm's tools answer."""
    project = folder / source
    (project / "logs").mkdir(parents=True)
    bench = FakeBench("22.05", project.resolve(), accounting=source != "never")
    missing = Missing(bench, source)
    try:
        await missing.prepare()
        await missing.just_now()
        if source in {"down", "back"}:
            bench.fake.accounting_down()
        if source == "back":
            await bench.box.call("get_status", GetStatus(sections=["errors"]))
            bench.fake.accounting_down(False)
        if source == "slow":
            bench.fake.slow("sacct", 60)
        if source == "controller":
            bench.fake.controller_down()
        return await missing.ask()
    finally:
        bench.fake.controller_down(False)
        await bench.close()


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Answers]:
    return {source: anyio.run(answers, source, tmp_path_factory.mktemp(source)) for source in SOURCES}


@pytest.mark.proves("missing-sources-are-named")
def test_the_committed_page_is_what_the_tools_answer(table: dict[str, Answers]):
    made = page(table)
    if os.environ.get("UPDATE_REFERENCE") == "1":
        PAGE.write_text(made, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == made, (
        "UPDATE_REFERENCE=1 pytest tests/unit/services/test_missing_sources.py"
    )
