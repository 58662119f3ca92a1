"""Our own command line under a wrong clock: `python shifted.py [--hasty] SECONDS TOOL WORDS...`.

With `--hasty` it waits for another submission a twentieth of the time.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta


def main() -> int:
    from slurm_agent_tools.cli import main as main_module  # noqa: PLC0415 - this file is also imported for its place
    from slurm_agent_tools.services import submit  # noqa: PLC0415
    from slurm_agent_tools.transport.local import SystemClock  # noqa: PLC0415

    hasty = sys.argv[1] == "--hasty"
    words = sys.argv[2:] if hasty else sys.argv[1:]
    off = timedelta(seconds=int(words[0]))
    if hasty:
        submit._LOCK_SECONDS /= 20

    def now(self: object) -> datetime:
        return datetime.now(UTC) + off

    SystemClock.now = now  # type: ignore[method-assign]
    return main_module.tool_main(words[1], words[2:])


if __name__ == "__main__":
    sys.exit(main())
