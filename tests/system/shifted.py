"""Our own command line under a wrong clock: `python shifted.py [--growing] SECONDS TOOL WORDS...`.

With `--growing` it is twenty times as fast, too, so that what waits for long is soon over.
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime, timedelta


def main() -> int:
    from slurm_agent_tools import cli  # noqa: PLC0415 - this file is also imported for its place
    from slurm_agent_tools.slurm.local import SystemClock  # noqa: PLC0415

    growing = sys.argv[1] == "--growing"
    words = sys.argv[2:] if growing else sys.argv[1:]
    off, begun = timedelta(seconds=int(words[0])), time.monotonic()
    pace = 20 if growing else 0

    def now(self: object) -> datetime:
        return datetime.now(UTC) + off + timedelta(seconds=pace * (time.monotonic() - begun))

    SystemClock.now = now  # type: ignore[method-assign]
    return cli.tool_main(words[1], words[2:])


if __name__ == "__main__":
    sys.exit(main())
