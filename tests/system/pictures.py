"""Takes the pictures of the dashboard in docs/images, of a private Slurm with jobs of several fates: `make pictures`."""

from __future__ import annotations

import time
from pathlib import Path

import anyio
import anyio.to_thread
from tests.system import scale
from tests.system.chromium import Chromium, chromium
from tests.system.dashboards import dashboard
from tests.system.faces import Place

IMAGES = Path(__file__).parents[2] / "docs" / "images"
MOST = 200_000
"""Bytes that a picture may have."""

OWN = ["--parsable", "--time=30", "--output=/dev/null"]
JOBS = (
    ["--job-name=train-large", "--partition=gpu", "--gres=gpu:3", "--cpus-per-task=4", "--mem=4G", "--wrap=sleep 600"],
    ["--job-name=train-small", "--partition=gpu", "--gres=gpu:1", "--mem=2G", "--wrap=sleep 600"],
    ["--job-name=prepare", "--partition=cpu", "--cpus-per-task=2", "--mem=1G", "--wrap=sleep 600"],
    ["--job-name=tonight", "--partition=cpu", "--begin=now+6hours", "--wrap=true"],
    ["--job-name=broken", "--partition=cpu", "--wrap=exit 3"],
)
TAKEN = (("dashboard-now", "now", 1120), ("dashboard-now-small", "now", 360))
"""File, page and width."""


async def main() -> None:
    """Bring a cluster up, fill it a little, and write each picture."""
    async with scale.private() as place:
        await anyio.to_thread.run_sync(_pictures, place)


def _pictures(place: Place) -> None:
    *_, broken = [place.slurm("sbatch", *OWN, *words) for words in JOBS]
    after = [f"--dependency=afterok:{broken}", "--kill-on-invalid-dep=no"]  # which raises an alert
    place.slurm("sbatch", *OWN, "--job-name=evaluate", "--partition=cpu", *after, "--wrap=true")
    end = time.monotonic() + 60
    while "DependencyNeverSatisfied" not in place.slurm("squeue", "-h", "-o", "%r") and time.monotonic() < end:
        time.sleep(0.5)
    with dashboard(place) as link, chromium() as browser:
        browser.open(link)
        for name, page, width in TAKEN:
            _take(browser, IMAGES / f"{name}.png", page, width)


def _take(browser: Chromium, path: Path, page: str, width: int) -> None:
    """The whole page at one width, as high as it is."""
    browser.screen(width)
    browser.see(page)
    browser.screen(width, int(browser.run("return document.documentElement.scrollHeight")))
    made = browser.driver.get_screenshot_as_png()
    if len(made) > MOST:
        raise ValueError(f"{path} would have {len(made)} bytes, {MOST} at most")
    path.write_bytes(made)


if __name__ == "__main__":
    anyio.run(main)
