"""What a backend's page says of a request for it: image, queue, kind of GPU, price. Pure.

What the caller states counts first. What neither says is not guessed: the format says that it is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from slurm_agent_tools.backends.export.exported_job import JobToExport
from slurm_agent_tools.backends.pages import BackendPage, FoundPage, PageQueue
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.script_arguments import Format, GenerateScript
from slurm_agent_tools.units import format_duration, human_memory

_FORMATS: Mapping[str, Format] = {
    "slurm": "slurm", "workstation": "slurm", "pbs": "pbs", "kubernetes": "kubernetes", "skypilot": "skypilot"
}  # fmt: skip


def by_page(ask: GenerateScript, found: FoundPage) -> tuple[GenerateScript, list[str]]:
    """The request with what the page adds, and a sentence for each thing. Raises InputError where they contradict."""
    page, wanted = found.page, _FORMATS[found.page.kind]
    if ask.format != wanted:
        problem = f"is not what the page {found.name} ({page.kind}) is for"
        raise InputError("format", ask.format, problem, hint=f"Write format {wanted}.")
    queue = queue_of(ask, found)
    added = {"kubernetes": _for_kubernetes, "skypilot": _for_skypilot, "pbs": _for_pbs}.get(page.kind, _nothing)(
        ask, page, queue
    )
    new = {name: value for name, value in added.items() if value != getattr(ask, name)}
    told = [f"By the page {found.name}: {name} {value}." for name, value in new.items() if value is not None]
    return ask.model_copy(update=new), told


def check_limits(found: FoundPage, queue: PageQueue | None, job: JobToExport) -> None:
    """Raises InputError where one node, or the time, is more than the page's partition has. What it leaves open holds.

    `queue` None: none was named, so nothing is known of where it runs.
    """
    if queue is None:
        return
    gpus = None if queue.gpus is None else queue.gpus.per_node
    table: list[tuple[str, int, int | None, Callable[[int], str]]] = [
        ("time_limit", job.time_limit, queue.time_limit, format_duration),
        ("nodes", job.nodes, queue.nodes, str),
        ("gpus", job.gpus_per_node, gpus, str),
        ("cpus", job.cpus_per_node, queue.cpus_per_node, str),
        ("memory", job.memory_per_node, queue.memory_per_node, human_memory),
    ]
    for field, asked, most, shown in table:
        if most is not None and asked > most:
            of = "" if field in {"time_limit", "nodes"} else " on a node"
            problem = f"is more than {queue.name} of the page {found.name} has{of}: {shown(most)}"
            raise InputError(field, shown(asked), problem, hint="Ask for less, or name another partition of the page.")


def queue_of(ask: GenerateScript, found: FoundPage) -> PageQueue | None:
    """The one that is named, or the only one."""
    queues = {queue.name: queue for queue in found.page.queues}
    if ask.partition is None:
        return next(iter(queues.values())) if len(queues) == 1 else None
    if ask.partition == found.page.kueue_queue:
        return None
    if ask.partition not in queues:
        problem = f"is not on the page {found.name}"
        raise InputError("partition", ask.partition, problem, hint=f"It has: {', '.join(queues)}.")
    return queues[ask.partition]


def _nothing(*_: object) -> dict[str, object]:
    return {}


def _for_pbs(ask: GenerateScript, page: BackendPage, queue: PageQueue | None) -> dict[str, object]:
    del ask, page
    return {} if queue is None else {"partition": queue.name}


def _for_kubernetes(ask: GenerateScript, page: BackendPage, queue: PageQueue | None) -> dict[str, object]:
    """The page's partitions are sizes of nodes there; the queue is Kueue's."""
    del queue
    return {"partition": page.kueue_queue, "image": ask.image or page.image}


def _for_skypilot(ask: GenerateScript, page: BackendPage, queue: PageQueue | None) -> dict[str, object]:
    """A machine costs what its GPUs cost, where the page says so in US dollars."""
    gpus = -(-(1 if ask.gpus is None else ask.gpus) // (ask.nodes or 1))
    kind = ask.gpu_type or (queue.gpus.type if queue is not None and queue.gpus is not None else None)
    hour = queue.gpu_hour if queue is not None and queue.gpu_hour is not None else page.price.gpu_hour
    cost = ask.max_hourly_cost
    if cost is None and hour and gpus and page.price.currency == "USD":
        cost = round(hour * gpus, 4)
    return {
        "partition": None,
        "image": ask.image or page.image,
        "gpu_type": kind if gpus else ask.gpu_type,
        "max_hourly_cost": cost,
    }
