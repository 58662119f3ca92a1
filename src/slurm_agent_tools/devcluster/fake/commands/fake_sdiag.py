"""sdiag: how busy the controller is."""

from __future__ import annotations

from collections.abc import Sequence

from slurm_agent_tools.devcluster.fake.answering import Answer, Session


def run_sdiag(session: Session, _: Sequence[str]) -> Answer:
    """sdiag: the figures that the tools read."""
    threads, queue = session.extra.get("threads", "3"), session.extra.get("agent_queue", "0")
    cycle = session.extra.get("mean_cycle", "99")
    return Answer(
        f"Server thread count:  {threads}\nAgent queue size:     {queue}\nAgent count:          0\n\n"
        f"Main schedule statistics (microseconds):\n\tLast cycle:   132\n\tMean cycle:   {cycle}\n\n"
        "Backfilling stats\n\tMean cycle: 289\n"
    )
