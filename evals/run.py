"""Play the recorded solutions on a private Slurm and print what each task cost and whether it was done.

    python -m evals.run [TASK ...] [--json] [--server COMMAND] [--transcripts FOLDER] [--folder DEVCLUSTER]

--server: another version of the server, as one line of a shell (`/opt/old/bin/slurm-agent-tools serve`).
--transcripts: other solutions, files NAME.jsonl. --folder: a devcluster that is up, and stays; every job of its users
is ended before each task.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import anyio
from anyio import to_thread
from evals import transcript
from evals.catalogue import BASIC, NAMES, load
from evals.place import SERVER, Place
from evals.task import Outcome, Task, Unmet

from slurm_agent_tools.devcluster import accounting_database, definition, lifecycle, login_node, packages
from slurm_agent_tools.devcluster.definition import Cluster

SOLUTIONS = Path(__file__).parent / "transcripts"
KB = 1000


@dataclass(frozen=True, slots=True)
class Score:
    """One task: what it cost, what is wrong in the end (None: it is done), and what was wrong before it was begun."""

    task: str
    wrong: str | None
    idle: str | None
    cost: transcript.Cost = field(default_factory=transcript.Cost)
    listed: int = 0


async def score(name: str, place: Place, steps: list[dict[str, object]]) -> Score:
    """Prepare a task in an empty place, play the steps, and look at what became of it."""
    task = load(name)
    await to_thread.run_sync(place.build, task)
    await to_thread.run_sync(place.clear)
    try:
        values = await to_thread.run_sync(partial(task.prepare, place))
        idle = judged(task, await to_thread.run_sync(place.outcome, values))
        cost, wrong = transcript.Cost(), None
        async with place.client() as (caller, listed):
            try:
                await transcript.play(steps, caller, place.project, values, cost, place.give)
            except transcript.TranscriptError as error:
                wrong = f"the transcript ends early: {error}"
        wrong = wrong or judged(task, await to_thread.run_sync(place.outcome, values))
        return Score(name, wrong, idle, cost, listed)
    finally:
        await to_thread.run_sync(place.clear)


def judged(task: Task, outcome: Outcome) -> str | None:
    """What the checker refuses; None where the task is done."""
    try:
        task.check(outcome)
    except Unmet as unmet:
        return str(unmet)
    except (LookupError, TypeError, ValueError, AttributeError) as error:  # a file that the agent wrote in another form
        return f"what is there cannot be read: {error!r}"
    return None


async def play_all(
    cluster: Cluster, names: Sequence[str], solutions: Path = SOLUTIONS, server: Sequence[str] = SERVER
) -> list[Score]:
    """Play tasks one after the other for each user of the cluster, the users beside each other."""
    users = accounting_database.USERS if definition.is_root() else (cluster.user,)
    waiting, scores = list(names), dict[str, Score]()
    root = _folder("evals-", cluster.folder)

    async def lane(user: str) -> None:
        while mine := [name for name in waiting if user == cluster.user or not load(name).elsewhere]:
            name = mine[0]
            waiting.remove(name)
            place = Place(cluster, user, root / name, server, load(name).elsewhere)
            steps = transcript.read(solutions / f"{name}.jsonl")
            try:
                scores[name] = await score(name, place, steps)
            except RuntimeError as error:  # of this task alone: the others go on
                scores[name] = Score(name, f"it could not be played: {error}", None)

    if any(load(name).elsewhere for name in names):
        await login_node.up(cluster)
    try:
        async with anyio.create_task_group() as group:
            for user in users:
                group.start_soon(lane, user)
    finally:
        shutil.rmtree(root)
    return [scores[name] for name in names]


@asynccontextmanager
async def private() -> AsyncIterator[Cluster]:
    """A devcluster with a login node, taken down and deleted whatever happens."""
    folder = _folder("sat-", None)
    try:
        await packages.ensure_packages(accounting=True, ssh=True, yes=True, say=_note)
        yield await lifecycle.up(folder, yes=True, say=_note)
    finally:
        with anyio.CancelScope(shield=True):
            await lifecycle.down(folder, wipe=True, say=_note)


def _folder(prefix: str, above: Path | None) -> Path:
    """A new folder that every user of the machine may enter."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=above))
    folder.chmod(0o755)
    return folder


def table(scores: Sequence[Score]) -> str:
    """The scores as Markdown, with the sums of the nine basic tasks and of all."""
    rows = [("task", "calls", "asked", "answered", "bytes", "done")]
    rows += [(each.task, *_figures([each]), "yes" if each.wrong is None else f"NO: {each.wrong}") for each in scores]
    basic = [each for each in scores if each.task in BASIC]
    for title, some in ((f"the basic ones: {len(basic)}", basic), (f"all: {len(scores)}", list(scores))):
        rows.append((title, *_figures(some), f"{sum(each.wrong is None for each in some)} of {len(some)}"))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = ["| " + " | ".join([*map(str.ljust, row[:5], widths), row[5]]) + " |" for row in rows]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|---|"
    return "\n".join([lines[0], rule, *lines[1:]])


def _figures(scores: Sequence[Score]) -> tuple[str, str, str, str]:
    costs = [each.cost for each in scores]
    asked, answered = sum(cost.asked for cost in costs), sum(cost.answered for cost in costs)
    return str(sum(len(cost.calls) for cost in costs)), str(asked), str(answered), str(asked + answered)


def _note(text: str) -> None:
    print(text, file=sys.stderr)


async def _main(args: argparse.Namespace) -> list[Score]:
    play = partial(
        play_all, names=args.task or NAMES, solutions=args.transcripts, server=shlex.split(args.server) or SERVER
    )
    if args.folder:
        cluster = lifecycle.find(args.folder)
        if cluster is None:
            raise definition.DevclusterError(
                "the devcluster is not up", hint="run: slurm-agent-tools devcluster up --yes"
            )
        return await play(cluster)
    async with private() as cluster:
        return await play(cluster)


def main() -> int:
    """Play what was asked for; 0 when every task is done."""
    parser = argparse.ArgumentParser(prog="python -m evals.run", description="Play the evaluation tasks.")
    parser.add_argument("task", nargs="*", metavar="TASK", help=f"default all: {', '.join(NAMES)}")
    parser.add_argument("--json", action="store_true", help="one JSON document, with every call and answer")
    parser.add_argument("--server", default="", metavar="COMMAND", help="another version of the MCP server")
    parser.add_argument("--transcripts", type=Path, default=SOLUTIONS, metavar="FOLDER", help="other solutions")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="a devcluster that is up; all jobs there are ended")
    args = parser.parse_args()
    if unknown := set(args.task) - set(NAMES):
        parser.error(f"no such task: {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    scores = anyio.run(_main, args)
    print(json.dumps([asdict(each) for each in scores], indent=2) if args.json else table(scores))
    if scores and not args.json:
        print(f"tools/list, counted apart: {scores[0].listed} bytes")
    return 0 if all(each.wrong is None for each in scores) else 1


if __name__ == "__main__":
    raise SystemExit(main())
