"""A crowd of waits and a long queue on a private Slurm: 500 waits over 200 jobs, then 20,000 jobs on 2,000 nodes.

    python -m benchmarks.run scale

Submitting the queue takes most of the time: three to five minutes.
"""

from __future__ import annotations

import anyio
import anyio.to_thread
from benchmarks.table import Row
from tests.system import dashboards, scale


def rows(size: scale.Size = scale.FULL) -> list[Row]:
    return anyio.run(_measured, size)


async def _measured(size: scale.Size) -> list[Row]:
    async with scale.private(size.nodes) as place:
        ids = scale.submit(place, size)
        async with place.client() as client:
            crowd = await scale.wait(place, client, ids, size.waits, size)
            one = await scale.wait(place, client, ids[-1:], 1, size)
            memory = scale.peak()
            await scale.fill(place, size.queued)
            asked = await scale.status(place, client, 8)
        pages = await anyio.to_thread.run_sync(dashboards.measured, place, ("now", "fleet"), 10)
    waits, queue = f"{size.waits} waits over {size.jobs} jobs", f"with {size.queued} jobs queued"
    large = f"on {size.nodes} nodes {queue}"
    return [
        *(
            Row(f"page {name} {large}", min(pages.ours[name]) * 1e3, "ms", "squeue + sinfo", min(pages.bare) * 1e3, 1.5)
            for name in ("now", "fleet")
        ),
        Row(f"memory of the dashboard at its peak, {large}", pages.memory, "MB", limit=200),
        Row(f"squeue calls of {waits}", crowd.calls["squeue"], "", "one wait", one.calls["squeue"], 1.5),
        Row(
            f"all Slurm calls of {waits}, {size.ending} of which end", crowd.calls.total(), "", "one", one.calls.total()
        ),
        Row(f"latest answer of {waits}, after it is due", max(crowd.late), "s", limit=2),
        Row(f"memory of the server at its peak, {waits}", memory, "MB", limit=150),
        Row(f"get_status {queue}", min(asked.ours) * 1e3, "ms", "squeue + sinfo", min(asked.bare) * 1e3, 1.5),
        Row(f"answer of get_status {queue}", asked.size / 1e3, "KB", limit=3),
    ]
