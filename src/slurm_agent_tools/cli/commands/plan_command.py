"""The subcommand `plan`: jobs from a file or a count, planned by plan_jobs; the schedule as a picture; packing."""

from __future__ import annotations

import argparse
import asyncio
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

import anyio

from slurm_agent_tools.api import brief, plan_tools, printing, serialize, views
from slurm_agent_tools.api.toolbox import Toolbox, closed_after
from slurm_agent_tools.errors import InputError, StorageError
from slurm_agent_tools.models.arguments import ToolArguments
from slurm_agent_tools.models.toolset_arguments import JobAsked, PlanJobs
from slurm_agent_tools.planning.gantt import gantt
from slurm_agent_tools.planning.job_plan import job_pools, one_of, planned_job
from slurm_agent_tools.planning.packing import Packing, pack
from slurm_agent_tools.planning.plan_view import plan_page
from slurm_agent_tools.planning.planned_job import JobPool, PlannedJob
from slurm_agent_tools.planning.schedule import MOST
from slurm_agent_tools.scripts.configs.experiment_config import parse_config
from slurm_agent_tools.settings import load
from slurm_agent_tools.text import log_events, safe_open, sanitize
from slurm_agent_tools.units import how_many

MIXED = True

DONE, FAILED = 0, 1

_LARGEST = 5 * 2**20

_OF_JOBS = f"Name a file of at most {MOST} jobs; equal jobs are one with a count."

_EXAMPLE = "--pool gpus=4,cpus=32,jobs=8"

_POOL = ("cpu_hour", "cpus", "gpu_hour", "gpus", "jobs", "memory", "name")

_NEED = ("cpus", "gpus", "memory", "nodes", "share")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Define the options of `plan`."""
    parser.description = (
        "What starts when: the best order of jobs on limited GPUs, with what no order can beat and what the order given"
        " takes. FILE is YAML, TOML or JSON with `jobs` (name, count, script or resources, expected, after, deadline,"
        " priority, share) and, if wanted, objective, pool and seconds. Submits nothing."
    )
    parser.add_argument("file", nargs="?", metavar="FILE", help="the jobs; or --count")
    parser.add_argument("--count", type=int, metavar="N", help="N jobs that are alike, instead of a file")
    parser.add_argument("--expected", metavar="TIME", help="with --count: how long one runs, such as 2h")
    parser.add_argument("--need", metavar="WHAT", help="with --count: what one holds, such as gpus=1,cpus=4,memory=16G")
    parser.add_argument("--pool", action="append", metavar="WHAT", help=f"what there is: {_EXAMPLE}; may be repeated")
    parser.add_argument("--objective", choices=("makespan", "mean_completion", "deadlines", "cost"))
    parser.add_argument("--seconds", type=float, metavar="N", help="to look for a better plan (2)")
    parser.add_argument("--pack", action="store_true", help="how few nodes like --pool hold all jobs at once")
    parser.add_argument("--svg", metavar="OUT", help="write the schedule as a picture to this new file")
    parser.add_argument(
        "--html", metavar="OUT", help="write schedule, calls and assumptions as a page to this new file"
    )
    parser.add_argument("--cluster", metavar="NAME", help="the cluster of the settings")
    parser.add_argument("--full", action="store_true", help="with all fields")
    parser.add_argument("--json", action="store_true", help="print one JSON document")


async def run(args: argparse.Namespace) -> int:
    """Plan and print; 1 where a deadline cannot be met. Raises AgentToolsError."""
    settings = load()
    settings.need_toolset("planning", "plan")
    log_events.configure(settings.log_level)
    ask = serialize.parse(serialize.BY_NAME["plan_jobs"], _asked(args))
    if args.pack:
        printing.document(_packed(ask), as_json=args.json)
        return DONE
    async with closed_after(Toolbox.open(settings)) as toolbox:
        with _best_so_far():
            reply: Any = await toolbox.call("plan_jobs", ask)
        if args.svg is not None or args.html is not None:
            await _files(toolbox, args, ask.cluster, reply.uri.rpartition("/")[2])
    printing.document(brief.answer(reply, ask), as_json=args.json)
    return FAILED if reply.status == "infeasible" else DONE


async def _files(toolbox: Toolbox, args: argparse.Namespace, cluster: str | None, plan_id: str) -> None:
    kept = await views.kept_plan(await toolbox.registry.at(cluster), plan_id)
    title = args.file or how_many(args.count or 1, "job")
    if args.svg is not None:
        _write("--svg", args.svg, gantt(kept.plan.schedule, title))
    if args.html is not None:
        _write("--html", args.html, plan_page(kept, title))


@contextmanager
def _best_so_far() -> Iterator[None]:
    """The first Ctrl-C ends the search for a better plan, the next one the command."""
    stop, loop = anyio.Event(), asyncio.get_running_loop()

    def interrupt() -> None:
        stop.set()
        loop.remove_signal_handler(signal.SIGINT)

    plan_tools.interrupted.set(stop)
    with suppress(NotImplementedError):  # Windows
        loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        with suppress(NotImplementedError):
            loop.remove_signal_handler(signal.SIGINT)


def _asked(args: argparse.Namespace) -> dict[str, object]:
    """The arguments of plan_jobs. Raises InputError."""
    if (args.file is None) == (args.count is None):
        hint = f"slurm-agent-tools plan FILE, or: plan --count 50 --expected 2h --need gpus=1 {_EXAMPLE}"
        raise InputError("FILE or --count", args.file, "is needed, and only one of them", hint=hint)
    asked = _read(args.file) if args.file is not None else {"jobs": [_alike(args)]}
    options = {"objective": args.objective, "seconds": args.seconds, "cluster": args.cluster}
    asked |= {name: value for name, value in options.items() if value is not None}
    if args.pool:
        asked["pool"] = [serialize.named_values("pool", text, _POOL) for text in args.pool]
    return asked | ({"detail": "full"} if args.full else {})


def _read(name: str) -> dict[str, object]:
    path = Path(name)
    try:
        data = safe_open.read(path, _LARGEST)
    except OSError as error:
        raise InputError("FILE", name, f"cannot be read: {error.strerror or error}", hint=_OF_JOBS) from error
    config = parse_config(data, path.suffix, name, "FILE")
    for place, written in config.clocks.items():  # 1:30:00 is 5400 to YAML, which would count as minutes
        hint = f'Put it in quotes: "{written}".'
        raise InputError(f"{name}: {place}", written, "is a number in base 60 to YAML", hint=hint)
    value = _with_times(config.value)
    if isinstance(value, list):
        return {"jobs": value}
    if not isinstance(value, dict):
        raise InputError("FILE", name, "holds no jobs", hint="Begin it with `jobs:` and a list.")
    return {str(key): one for key, one in value.items()}


def _with_times(value: object) -> Any:
    """The same with times as texts: YAML and TOML know them without quotes."""
    if isinstance(value, dict):
        return {key: _with_times(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_with_times(one) for one in value]
    return value.isoformat() if isinstance(value, date | time) else value


def _alike(args: argparse.Namespace) -> dict[str, object]:
    need = serialize.named_values("need", args.need, _NEED) if args.need else {"gpus": "1"}
    share = need.pop("share", None)
    job: dict[str, object] = {"name": "job", "count": args.count, "expected": args.expected}
    job |= {"resources": need} if need else {}
    return job | ({"share": share} if share is not None else {})


def _packed(ask: ToolArguments) -> dict[str, Any]:
    """How few nodes of the pool's shape hold all jobs at once. Raises InputError."""
    if not isinstance(ask, PlanJobs) or ask.pool is None or len(ask.pool) != 1:
        raise InputError("pool", None, "is needed, and only one: the shape of a node", hint=_EXAMPLE)
    pools, _ = job_pools(ask.pool, (), 1)
    jobs = [_job(one, pools) for one in ask.jobs]
    packing: Packing = pack(jobs, pools[0])
    many, gap = len(packing.nodes), f"{100 * packing.gap:.1f} %"
    return {
        "status": "packed",
        "summary": f"{many} nodes hold all at once, {gap} above the bound; first fit takes {packing.first_fit}.",
        "nodes": many,
        "bound": packing.bound,
        "gap": round(packing.gap, 4),
        "first_fit": packing.first_fit,
        "first_node": [sanitize.line(name) for name, _ in packing.nodes[0].held][:20],
    }


def _job(asked: JobAsked, pools: Sequence[JobPool]) -> PlannedJob:
    return planned_job(
        asked.model_copy(update={"expected": asked.expected or "1h"}), datetime.now(UTC), one_of(pools), None
    )


def _write(option: str, name: str, text: str) -> None:
    try:
        with Path(name).open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise InputError(option, name, "is there already", hint="Name a new file.") from error
    except OSError as error:
        raise StorageError(f"cannot write {name}: {error.strerror}", hint="Check the folder.") from error
