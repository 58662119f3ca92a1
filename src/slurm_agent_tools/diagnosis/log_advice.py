"""What a log shows that the next run needs: sizes, the node, the program's own advice, the step that failed. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from slurm_agent_tools.diagnosis.excerpt import LogText, split_rank

_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

# What a program says it could not get: numpy, PyTorch (bytes), R.
_NOT_GRANTED = re.compile(
    r"Unable to allocate (?P<size>[\d.]+) (?P<unit>[KMGT])iB"
    r"|cannot allocate vector of size (?P<r>[\d.]+) (?P<runit>[KMGT])b"
    r"|DefaultCPUAllocator: .{0,200}you tried to allocate (?P<bytes>\d+) bytes"
)

# Slurm's sampled limit: in KiB by old versions, in bytes by newer ones, and no unit is written.
_IN_USE = re.compile(
    r"(?:slurmstepd|slurmd)\S{0,80}: .{0,200}exceeded (?:job |step )?memory limit \((?P<used>\d+) > (?P<limit>\d+)\)",
    re.IGNORECASE,
)

_REMEDY = re.compile(
    r"(?:^|[.!?;:)] +|\bhint: )(?P<remedy>(?:[Tt]ry|[Pp]lease|[Cc]onsider|[Uu]se|[Ss]et|[Rr]un|[Ii]ncrease|[Dd]ecrease"
    r"|[Rr]educe|[Ii]f reserved|[Yy]ou (?:can|may|should|need to|must)|[Tt]o (?:fix|solve|avoid|resolve))\b"
    r"[^\n]{8,240}?)(?:[.!] (?=[A-Z])|[.!]?$)"
)

_NO_REMEDY = re.compile(r"(?i)report|bug|contact|support|see above|check (?:the )?logs?|stack ?trace|usage:|--help")

_ASKED = re.compile(
    r"(?:(?:[Tt]ried|[Tt]rying|[Ff]ailed) to allocate |desired GPU memory utilization \([\d.]+, )"
    r"([\d.,]+ ?(?:[KMGT]i?B|bytes))"
)

_TOTAL = re.compile(
    r"total capac(?:i)?ty of (?P<a>[\d.]+ [KMGT]i?B)|; (?P<b>[\d.]+ [KMGT]i?B) total capacity"
    r"|[Ff]ree memory on device.{0,20}\((?P<free>[\d.]+)/(?P<c>[\d.]+ [KMGT]i?B)\)"
    r"|GPU memory usage: [\d.]+% \([\d.]+ [KMGT]iB/(?P<d>[\d.]+ [KMGT]iB)\)"
)

_OF_NODES = frozenset({"node-failure", "storage-fault"})

# A GPU or its driver that is broken on one node, as other nodes' are not.
_BROKEN = re.compile(
    r"\bXid\b|\bECC\b|fallen off the bus|GPU is lost|GPU requires reset|[Uu]ncorrectable|NVML: |NVIDIA-SMI has failed"
    r"|driver/library version mismatch|busy or unavailable|HARDWARE_STACK_ERROR",
    re.IGNORECASE,
)

_NODE = re.compile(
    r"srun: error: (?P<a>[A-Za-z][\w.-]{0,60}): task|(?:Node failure on|failed on node) (?P<b>[A-Za-z][\w.-]{0,60})"
    r"|^(?P<c>[A-Za-z][\w.-]{0,60}):\d+:\d+ \[\d+\] .{0,80}NCCL WARN .{0,20}[Cc]uda failure"
)

_PATH = re.compile(r"(?<![\w:/.])/[\w.@+=,-]+(?:/[\w.@+=,-]+)+")

_RULE = re.compile(r"^(?:Error in (?:rule|group|checkpoint) |Error executing (?:rule|checkpoint) )(?P<name>[\w-]+)")

_PROCESS = re.compile(r"Error executing process > '(?P<name>[^']{1,120})'")

_CHILD_LOG = re.compile(r"^\s+log: (?P<log>.{1,300}?)(?: \(check log file|$)")

_CHILD_JOB = re.compile(r"\b(?:external|external_jobid|cluster_jobid|SLURM-job)\b:?\s{0,2}'?(?P<job>\d+)")

_BLOCK = 40  # lines that a workflow manager writes of one step that failed


_SMALLEST, _LARGEST = 2**24, 2**44  # bytes: limits beyond these are not set on a node

_ABOUT = 1.01  # of what the job has: what the accounting tells may be rounded


def memory_in_use(texts: Sequence[LogText], has: int | None = None) -> int:
    """Bytes that Slurm said in the log were in use when it ended the job; 0 where it said nothing, or in no sure unit.

    `has`: bytes that the job has on a node.
    """
    matches = (_IN_USE.search(line.text) for text in texts for line in text.lines)
    found = (int(match["used"]) * _limit_unit(int(match["limit"]), has) for match in matches if match is not None)
    return max(found, default=0)


def _limit_unit(limit: int, has: int | None) -> int:
    """Bytes in one of the units in which Slurm writes this limit: 1 or 1024; 0 where it may be either.

    Slurm keeps limits in whole MiB. A step's may be less than its job's, and is never more.
    """
    if limit % 2**20:
        return 2**10
    exact = [unit for unit in (1, 2**10) if has is not None and has / _ABOUT <= limit * unit <= has * _ABOUT]
    most = _LARGEST if has is None else has * _ABOUT
    possible = exact or [unit for unit in (1, 2**10) if _SMALLEST <= limit * unit <= most]
    return possible[0] if len(possible) == 1 else 0


def memory_not_granted(texts: Sequence[LogText]) -> int:
    """Bytes of the last allocation that failed; 0 where the log tells of none."""
    size = 0
    for match in (_NOT_GRANTED.search(line.text) for text in texts for line in text.lines):
        if match is not None and match["bytes"]:
            size = int(match["bytes"])
        elif match is not None:
            size = round(float(match["size"] or match["r"]) * _UNITS[match["unit"] or match["runit"]])
    return size


def advised(texts: Sequence[LogText], place: tuple[int, int], category: str, nodes: str | None) -> list[str]:
    """What the log itself lets one advise for a line of it (the index of its text, its index in that), the best first.

    `nodes`: those of the job, as Slurm writes them.
    """
    text, position = texts[place[0]], place[1]
    body = text.lines[position].text
    found = []
    own = _remedy(text, position)
    if own is not None:
        found.append(f'The program itself advises: "{own}"')
    if category == "disk-full" and (path := _named_path(body)) is not None:
        found.append(f"Look at the file system of {path} (df -h, df -i, your quota there).")
    if (category in _OF_NODES or _BROKEN.search(body)) and (node := _failed_node(texts, nodes)) is not None:
        found.append(f"Keep the next run off that node: #SBATCH --exclude={node}")
    step = child(texts)
    return [*found, step] if step is not None else found


def _remedy(text: LogText, position: int) -> str | None:
    """What the program says to do, in its error's line or in those behind it."""
    for line in text.lines[position : position + 4]:
        match = _REMEDY.search(split_rank(line.text)[1])
        if match is not None and not _NO_REMEDY.search(match["remedy"]):
            return match["remedy"].strip()
    return None


def gpu_memory(text: LogText, position: int) -> str:
    """What was asked for and what the GPU has, as the error at that line says it; empty where it says neither."""
    near = " ".join(line.text for line in text.lines[position : position + 3])
    asked, total = _ASKED.search(near), _TOTAL.search(near)
    want = asked[1] if asked is not None else None
    has = (
        None if total is None else next(group for name, group in total.groupdict().items() if name != "free" and group)
    )
    if want is None:
        return "" if has is None else f" The GPU has {has}."
    free = f", {total['free']} free" if total is not None and total["free"] else ""
    return f" It asked for {want}." if has is None else f" It asked for {want}; the GPU has {has}{free}."


def _failed_node(texts: Sequence[LogText], nodes: str | None) -> str | None:
    """The node on which it failed, as the log tells, else the only one that the job had."""
    for text in texts:
        for line in text.lines:
            match = _NODE.search(line.text)
            if match is not None:
                return match["a"] or match["b"] or match["c"]
    return nodes if nodes and not re.search(r"[\[,]", nodes) else None


def _named_path(text: str) -> str | None:
    """The last absolute path in a line; the first ones are often the program's."""
    found = _PATH.findall(text)
    return found[-1] if found else None


def child(texts: Sequence[LogText]) -> str | None:
    """The step of a workflow that failed last, with its log, its folder and its job, in a sentence."""
    for text in texts:
        told = (index for index in range(len(text.lines) - 1, -1, -1) if "Error " in text.lines[index].text)
        for index in told:
            rule, process = _RULE.match(text.lines[index].text), _PROCESS.search(text.lines[index].text)
            if rule is not None or process is not None:
                block = [line.text for line in text.lines[index : index + _BLOCK]]
                return _step(rule or process, block, nextflow=process is not None)
    return None


def _step(match: re.Match[str] | None, block: Sequence[str], *, nextflow: bool) -> str:
    name = match["name"] if match is not None else ""
    if nextflow:
        folder = next(
            (block[at + 1].strip() for at, line in enumerate(block[:-1]) if line.strip() == "Work dir:"), None
        )
        where = f" Read .command.err and .command.log in {folder}." if folder else ""
        return f"The process {name} failed.{where}"
    log = next((found["log"] for line in block if (found := _CHILD_LOG.match(line)) is not None), None)
    job = next((found["job"] for line in block if (found := _CHILD_JOB.search(line)) is not None), None)
    told = f"The rule {name} failed."
    told += f" Its log is {log}." if log else ""
    return told + (f" It ran as job {job}: ask analyze_log for that one." if job else "")
