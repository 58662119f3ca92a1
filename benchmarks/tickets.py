"""What the controller's plugin adds to a submission with tickets, beside the floor without them.

All in one run on one private Slurm, one of each kind in turn. The plugin tells its own processor time in the
controller's log: while it runs, every other submission waits. The times of whole sbatch commands stand beside.
"""

from __future__ import annotations

import os
import re
import time
from collections import defaultdict
from collections.abc import Iterator

from benchmarks.table import Row
from tests.system.ticket_site import SCRIPT, Site, private, sbatch

from slurm_agent_tools.models.submission_ticket import LARGEST_SIGNED_SCRIPT, LONGEST_SIGNED_TICKET

_WORDS = ("--partition=cpu", "--nodes=1", "--ntasks=1", "--time=5", "--mem=1G")

_ROUNDS, _EACH = 5, 10

_LIMITS = {"files": 1.0, "hmac": 6.0, "hmac, no bit": 6.0}

_NO_BIT = """
for _, name in ipairs({ "bit", "bit32" }) do
  package.loaded[name], package.preload[name] = nil, function() error("none") end
end
"""
"""For a Lua 5.1 without lua-bitop: the plugin computes with a table then."""

_OTHERS_WAIT = 50.0
"""Milliseconds for which the longest script may hold other submissions."""

_KIND = """
{before}
assert((loadstring or load)([=====[
{text}]=====]))()
kinds["{kind}"] = slurm_job_submit
for _, name in ipairs({{ "bit", "bit32" }}) do package.preload[name] = nil end
"""

_TIMED = """
function slurm_job_submit(job, parts, uid)
  local submit = kinds[string.match(job.comment or "", "^kind%-(%w+)")]
  local start = os.clock()
  local code = submit(job, parts, uid)
  slurm.log_info("plugin took %.6f s", os.clock() - start)
  return code
end
return slurm.SUCCESS
"""
"""All kinds in one controller, each as it is exported: which one judges a submission stands in its comment."""


def rows() -> list[Row]:
    with private() as site:
        _install(site)
        return [*_added(site), *_longest(site)]


def _install(site: Site) -> None:
    """Put all kinds in place as one plugin, and submit once, which makes the controller read it."""
    signed = ("--tokens", site.hmac, "--spent-tickets", f"{site.tickets}/spent")
    words = {"floor": (), "files": ("--tokens", site.files), "hmac": signed, "hmacnobit": signed}
    parts = [
        _KIND.format(kind=kind, text=site.exported(*told).decode(), before=_NO_BIT if kind == "hmacnobit" else "")
        for kind, told in words.items()
    ]
    site.replace("".join(["local kinds = {}\n", *parts, _TIMED]).encode())
    _one(site, "kind-floor")


def _added(site: Site) -> Iterator[Row]:
    """Milliseconds beyond the floor alone, the least of all rounds of each."""
    inside, whole = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    for _ in range(_ROUNDS):
        words = [(kind, _word(site, kind, SCRIPT)) for _ in range(_EACH) for kind in ("floor", *_LIMITS)]
        os.sync()  # so that no submission waits for what was written for tickets
        for kind, word in words:
            of_plugin, of_sbatch = _one(site, word)
            inside[kind].append(of_plugin)
            whole[kind].append(of_sbatch)
        site.place.run(["scancel", "--me"])
    least = {kind: min(times) for kind, times in inside.items()}
    for kind, limit in _LIMITS.items():
        yield Row(f"the plugin adds with tickets ({kind})", least[kind] - least["floor"], "ms", limit=limit)
    for kind, times in whole.items():
        yield Row(f"a whole sbatch ({kind})", min(times), "ms", "the floor alone", min(whole["floor"]))


def _longest(site: Site) -> Iterator[Row]:
    """Milliseconds that the plugin takes for the longest scripts, good tickets and bad."""
    largest, signed = _script(4 * 2**20 - 2**16), _script(LARGEST_SIGNED_SCRIPT)
    for kind, what, script, given in (
        ("files", "a ticket for 4 MB", largest, largest),
        ("files", "a ticket for another 4 MB", largest, largest[:-1] + b"\n"),
        ("hmac, no bit", f"a ticket for {LARGEST_SIGNED_SCRIPT} bytes", signed, signed),
        ("hmac, no bit", "a ticket for 4 MB, refused", largest, largest),
        ("hmac, no bit", "no ticket, 4 MB", largest, None),
    ):
        words = [_prefixed(kind) if given is None else _word(site, kind, given) for _ in range(3)]
        took = [_one(site, word, script)[0] for word in words]
        yield Row(f"others wait for {what} ({kind})", min(took), "ms", limit=_OTHERS_WAIT)
    false = f"{_prefixed(kind)} ticket=v1.{'x' * (LONGEST_SIGNED_TICKET - 68)}.{'0' * 64}"
    took = [_one(site, false)[0] for _ in range(3)]
    yield Row(f"others wait for the longest false ticket ({kind})", min(took), "ms", limit=_OTHERS_WAIT)


def _script(size: int) -> bytes:
    line = b"# one of the lines of a script that is as long as this controller takes\n"
    head = b"#!/bin/bash\n"
    return head + (line * (size // len(line) + 1))[: size - len(head) - 1] + b"\n"


def _word(site: Site, kind: str, script: bytes) -> str:
    """A new ticket of this kind for the script."""
    if kind == "floor":
        return _prefixed(kind)
    return f"{_prefixed(kind)} {site.give(site.ceilings(_WORDS), script, kind=kind.partition(',')[0])}"


def _prefixed(kind: str) -> str:
    return f"kind-{re.sub('[^a-z]', '', kind)}"


def _one(site: Site, word: str, script: bytes = SCRIPT) -> tuple[float, float]:
    """Submit once, with this word in the comment; milliseconds of the plugin and of the whole sbatch."""
    file = site.place.cluster.folder / "log/slurmctld.log"
    before, start = file.stat().st_size, time.perf_counter()
    sbatch(site, *_WORDS, f"--comment={word}", script=script)
    whole = time.perf_counter() - start
    with file.open("rb") as log:
        log.seek(before)
        found = re.findall(rb"plugin took ([0-9.]+) s", log.read())
    return float(found[-1]) * 1000, whole * 1000
