"""The effective request: script, then arguments, then pins; per option the last one wins."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from slurm_agent_tools.models.request import Directive, Evidence, JobRequest, Pin, Source
from slurm_agent_tools.scripts import sbatch_options
from slurm_agent_tools.units import parse_array

_ORDER = {"script": 0, "argument": 1, "pinned": 2}

_EXCLUSIVE = (
    ("mem", "mem-per-cpu", "mem-per-gpu"),
    ("gpus-per-task", "ntasks-per-gpu"),
    ("gpus-per-socket", "ntasks-per-gpu"),
    ("ntasks-per-node", "ntasks-per-gpu"),
    ("core-spec", "thread-spec"),
)

# Option -> (field of the request, reader of its value).
_READ: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "job-name": ("name", str),
    "partition": ("partition", str),
    "time": ("time_limit", sbatch_options.time_limit),
    "mem": ("memory_per_node", sbatch_options.memory),
    "mem-per-cpu": ("memory_per_cpu", sbatch_options.memory),
    "mem-per-gpu": ("memory_per_gpu", sbatch_options.memory),
    "gpus": ("gpus", sbatch_options.gpus),
    "gpus-per-node": ("gpus_per_node", sbatch_options.gpus),
    "gpus-per-task": ("gpus_per_task", sbatch_options.gpus),
    "gpus-per-socket": ("gpus_per_socket", sbatch_options.gpus),
    "ntasks": ("ntasks", sbatch_options.count),
    "ntasks-per-node": ("ntasks_per_node", sbatch_options.count),
    "ntasks-per-gpu": ("ntasks_per_gpu", sbatch_options.count),
    "cpus-per-task": ("cpus_per_task", sbatch_options.count),
    "cpus-per-gpu": ("cpus_per_gpu", sbatch_options.count),
    "array": ("array", parse_array),
    "dependency": ("dependency", str),
    "qos": ("qos", str),
    "chdir": ("chdir", str),
    "output": ("output", str),
    "error": ("error", str),
    "export": ("export", str),
}

# Options without a field of their own whose value must still be readable, because the size of the job depends on it.
_CHECKED: Mapping[str, Callable[[str], Any]] = {
    "nodelist": sbatch_options.node_list,
    "exclude": sbatch_options.node_list,
    "mincpus": sbatch_options.count,
    "sockets-per-node": sbatch_options.count,
    "cores-per-socket": sbatch_options.count,
    "threads-per-core": sbatch_options.count,
    "ntasks-per-socket": sbatch_options.count,
    "ntasks-per-core": sbatch_options.count,
    "extra-node-info": sbatch_options.sockets_cores_threads,
    "thread-spec": sbatch_options.count,
    "time-min": sbatch_options.time_limit,
    "tmp": sbatch_options.memory,
}


def effective(directives: Sequence[Directive]) -> JobRequest:
    """The request that these options make together. A value that cannot be read becomes a problem."""
    ordered = sorted(directives, key=lambda directive: _ORDER[directive.source])
    last = {directive.option: directive for directive in ordered}
    stated: dict[str, Any] = {}
    problems: list[Evidence] = []
    for directive in ordered:  # sbatch also refuses a bad value that a later one would replace
        try:
            stated |= _values(directive, last)
        except ValueError as error:
            problems.append(_problem(directive, f"--{directive.option}: {error}"))
    problems += _conflicts(ordered, last)
    requeue = [directive for directive in ordered if directive.option in {"requeue", "no-requeue"}]
    if requeue:
        stated["requeue"] = requeue[-1].option == "requeue"
    request = JobRequest(directives=tuple(ordered), problems=tuple(problems), **stated)
    return _cut(request)


def _problem(directive: Directive, text: str) -> Evidence:
    return Evidence(directive.evidence.file, directive.evidence.line, text)


def _conflicts(ordered: Sequence[Directive], last: Mapping[str, Directive]) -> list[Evidence]:
    """Options that exclude each other wherever they come from: sbatch refuses them together."""
    found = []
    for group in _EXCLUSIVE:
        given = [name for name in group if name in last]
        if len(given) > 1:
            newest = next(directive for directive in reversed(ordered) if directive.option in given)
            found.append(_problem(newest, f"--{' and --'.join(given)} exclude each other; keep one"))
    return found


def _cut(request: JobRequest) -> JobRequest:
    """sbatch takes away nodes for which there is no task (`-N4 -n2` asks for two)."""
    if request.ntasks is None or request.nodes is None or request.nodes_max is None:
        return request
    most = request.ntasks
    return replace(request, nodes=min(request.nodes, most), nodes_max=min(request.nodes_max, most))


def _values(directive: Directive, last: Mapping[str, Directive]) -> dict[str, Any]:
    """Fields of the request that one option sets. --gres with GPUs beats --gpus-per-node."""
    option, text = directive.option, directive.value or ""
    if option == "nodes":
        low, high = sbatch_options.nodes(text)
        return {"nodes": low, "nodes_max": high}
    if option == "gres":
        number = sbatch_options.gres(text)
        return {} if number is None else {"gpus_per_node": number}
    if option == "gpus-per-node" and _gres_has_gpus(last):
        return {}
    if option == "tres-per-task":
        return _per_task(text, last)
    if option in _CHECKED:
        _CHECKED[option](text)
    if option not in _READ:
        return {}
    name, read = _READ[option]
    return {name: read(text)}


def _gres_has_gpus(last: Mapping[str, Directive]) -> bool:
    """Whether --gres names GPUs; what cannot be read is told once, by --gres itself."""
    try:
        return "gres" in last and sbatch_options.gres(last["gres"].value or "") is not None
    except ValueError:
        return False


def _per_task(text: str, last: Mapping[str, Directive]) -> dict[str, Any]:
    cpus, gpus = sbatch_options.per_task(text)
    for name, number in (("cpus-per-task", cpus), ("gpus-per-task", gpus)):
        if name in last and number is not None:
            raise ValueError(f"says the same as --{name}; keep one")
    return {field: number for field, number in (("cpus_per_task", cpus), ("gpus_per_task", gpus)) if number is not None}


def arguments_to_directives(arguments: Mapping[str, str]) -> tuple[Directive, ...]:
    """Options that the caller puts on the command line, by their long names. ValueError for an unknown name."""
    return tuple(
        Directive(
            sbatch_options.find_long(name).name, value, "argument", Evidence("command line", 0, f"--{name}={value}")
        )
        for name, value in arguments.items()
    )


def pins_to_directives(pins: Sequence[Pin]) -> tuple[Directive, ...]:
    """Options that the guard puts on the command line. ValueError for one that sbatch would not take."""
    return words_to_directives([pin.option for pin in pins], "pinned")


def words_to_directives(words: Sequence[str], source: Source) -> tuple[Directive, ...]:
    """Options of sbatch's command line, word by word. ValueError for one that sbatch would not take."""
    if ":" in words:  # wherever it stands, also as a value
        raise ValueError("a lone `:` begins another component")
    return tuple(
        Directive(option.name, value, source, Evidence("command line", 0, f"--{option.name}={value}"))
        for option, value in sbatch_options.read(words)
    )
