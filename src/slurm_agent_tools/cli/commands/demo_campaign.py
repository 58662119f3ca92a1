"""The demo's last step: a small campaign, from its file to the best configuration, in two calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from slurm_agent_tools.api import render

if TYPE_CHECKING:
    from slurm_agent_tools.cli.commands.demo_command import DemoAgent

NAME = "rates"

FILE = f"campaigns/{NAME}.yaml"


async def find_the_rate(guest: DemoAgent) -> list[str]:
    """Run the campaign to its end and show its table; the ids of its jobs, each task of an array by itself."""
    guest.paper.step("A small campaign: one file, many runs, one answer")
    guest.paper.page(FILE, (guest.stage.project / FILE).read_text())
    await guest.call("get_campaign", name=NAME, view="plan")
    submitted: list[str] = []
    body: dict[str, object] = {"status": "planned"}
    while body["status"] in {"planned", "running"}:
        body = await guest.call("advance_campaign", name=NAME, timeout_seconds=120)
        submitted += body.get("submitted", [])  # type: ignore[arg-type]
    table = await guest.call("get_campaign", name=NAME, view="table")
    cells = [["" if cell is None else str(cell) for cell in row] for row in table["table"]]
    guest.paper.page(f"the table of {FILE}, the best first", "\n".join(render.aligned(cells)))
    done = body["counts"]["done"]  # type: ignore[index]
    ends = await guest.stage.ends(submitted, runs=done)
    guest.paper.check("sacct: runs that are done", done, [state for _, state, _ in ends].count("COMPLETED"))
    guest.paper.check("the best is the first of the table", body["best"][0]["trial"], f"{NAME}/{_place(cells[1][0])}")  # type: ignore[index]
    report = f"campaigns/{NAME}.report.md"
    guest.paper.check(f"{report} is there", True, (guest.stage.project / report).is_file())
    return sorted((number for number, _, _ in ends), key=int)


def _place(trial: str) -> str:
    """r1-t3 as r1/t3."""
    return trial.replace("-", "/")
