"""The policy for those who do not read its files: Slurm's controller, editors, and people."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Literal

from pydantic import BaseModel

from slurm_agent_tools.errors import InputError
from slurm_agent_tools.models.submission_ticket import LARGEST_SIGNED_SCRIPT, LONGEST_SIGNED_TICKET
from slurm_agent_tools.policy.document import SETTABLE, Limits, Policy
from slurm_agent_tools.policy.evaluate import RULES, format_result
from slurm_agent_tools.policy.loading import LoadedPolicy
from slurm_agent_tools.policy.plan import PlannedRequest
from slurm_agent_tools.policy.rules.rule import Example, Rule
from slurm_agent_tools.policy.site_rules import held_exactly
from slurm_agent_tools.units import format_duration, format_memory

_MIB = 2**20

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@-]*")

_HEAD = """\
-- job_submit.lua: the limits of a policy that Slurm's controller can see, for every sbatch, srun and salloc.
-- Written by `slurm-agent-tools policy export job-submit-lua`; write it again when the policy changes.
--
-- policy  {title}
-- sha256  {digest}
--
{holds}
-- Memory, GPUs, time, whole nodes, arrays and the parts of heterogeneous jobs are judged when a job is submitted and
-- when its owner changes it; requeue is switched off. How many jobs and array tasks of a user run at once is for QOS
-- limits (`slurm-agent-tools policy export qos`): Slurm sets a new throttle of an array before it asks this file.
"""

_WITHOUT_TICKETS = """\
-- It holds the end of each `justify` band: the controller sees neither a written reason nor a person's approval. So
-- what the policy allows with a reason passes here, and a request beyond it is refused even where a person approved
-- it, unless the user or the account is exempt below. Root always passes. Nothing else is let through in silence:
-- what cannot be counted is refused.
--"""

_WITH_TICKETS = """\
-- It holds the free band of each limit. Beyond it, and for users and accounts named below as agents at any size, a job
-- needs a ticket of the site's service: for one job of one user, for minutes, with ceilings of what it may take. The
-- ceilings stand in the job's AdminComment, and its owner can change the job within them. Root always passes. Nothing
-- else is let through in silence: what cannot be counted is refused.
--"""

_TAIL = """
slurm.log_info("slurm-agent-tools floor: policy %s", POLICY)
return slurm.SUCCESS
"""


@dataclass(frozen=True, slots=True)
class TicketSource:
    """Where the plugin finds tickets: in a folder, or signed with one of the keys in these files, the newest first.

    `spent` are the plugin's own files of the signed tickets that were used, one for each key.
    """

    folder: str | None = None
    keys: tuple[str, ...] = ()
    spent: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str, spent: str | None = None) -> TicketSource:
        """Of `files:FOLDER` or `hmac:KEYFILE[,OLDKEYFILE]`. Raises InputError."""
        kind, _, rest = text.partition(":")
        paths = rest.split(",")
        if kind == "files" and len(paths) == 1 and spent is None:
            return cls(folder=_path("tokens", rest))
        if kind == "hmac" and len(paths) <= 2:
            keys = tuple(_path("tokens", path) for path in paths)
            return cls(keys=keys, spent=tuple(_path("spent_tickets", spent or f"{key}.spent") for key in keys))
        hint = "Write files:/a/folder, or hmac:/a/key and perhaps ,/the/old/key (--spent-tickets goes with hmac)."
        raise InputError("tokens", text, "says neither where tickets lie nor how they are signed", hint=hint)


@dataclass(frozen=True, slots=True)
class Site:
    """What the controller does not tell its plugin. `most_gpus_per_node` None: not known, so any placement counts.

    `default_cpus_per_gpu`: the largest DefCpuPerGPU of a partition. `tickets` None: no service of the site gives any.
    Jobs of agents are let in with a ticket alone.
    """

    exempt_users: Sequence[str] = ()
    exempt_accounts: Sequence[str] = ()
    threads_per_core: int = 1
    most_gpus_per_node: int | None = None
    default_cpus_per_gpu: int | None = None
    tickets: TicketSource | None = None
    agent_users: Sequence[str] = ()
    agent_accounts: Sequence[str] = ()


def job_submit_lua(loaded: LoadedPolicy, site: Site | None = None) -> str:
    """The whole job_submit.lua. The same policy and site give the same bytes. Raises InputError."""
    site = site or Site()
    if site.tickets is None and (site.agent_users or site.agent_accounts):
        problem = "can be named only where the site gives tickets"
        raise InputError(
            "agent_users", ", ".join([*site.agent_users, *site.agent_accounts]), problem, hint="Add --tokens."
        )
    holds = _WITHOUT_TICKETS if site.tickets is None else _WITH_TICKETS
    title = _plain(f"{loaded.name}, version {loaded.version}")
    limits = _limits(loaded.policy.limits, "justify" if site.tickets is None else "free")
    parts = [
        _HEAD.format(title=title, digest=loaded.sha256, holds=holds),
        *_settings(site, held_exactly(loaded.expressions), loaded.policy.priority.high.qos),
        "",
        *limits,
    ]
    parts += [f"local POLICY = {_quoted(_title(loaded))}"]
    files = ["floor.lua"] if site.tickets is None else ["floor.lua", "hmac_sha256.lua", "tickets.lua"]
    if site.tickets is not None and site.tickets.folder is not None:
        files.remove("hmac_sha256.lua")
    folder = resources.files("slurm_agent_tools") / "assets"
    return "".join(["\n".join(parts), "\n", *((folder / name).read_text(encoding="utf-8") for name in files), _TAIL])


def qos_lines(loaded: LoadedPolicy, names: Sequence[str] = ("normal",)) -> str:
    """A shell script of sacctmgr lines that put the same limits on each named QOS. Raises InputError."""
    limits = loaded.policy.limits
    values = {
        "MaxJobsPerUser": str(limits.max_concurrent_jobs),
        "MaxTRESPerJob": f"gres/gpu={limits.gpus.justify}",
        "MaxWall": format_duration(limits.time_limit.justify),
        **_hours(limits),
        "Flags": "DenyOnLimit",
    }
    words = " ".join(f"{key}{'+=' if key == 'Flags' else '='}{value}" for key, value in values.items())
    lines = [f"sacctmgr -i modify qos where name={_name('qos', name)} set {words}" for name in names]
    return "\n".join([*_qos_head(loaded), *lines]) + "\n"


def _settings(site: Site, exact: Sequence[str], high: Sequence[str]) -> list[str]:
    users = [_name("exempt_users", name) for name in site.exempt_users]
    accounts = [_name("exempt_accounts", name) for name in site.exempt_accounts]
    threads = _positive("threads_per_core", site.threads_per_core)
    most, cpus = site.most_gpus_per_node, site.default_cpus_per_gpu
    return [
        "-- Who passes unjudged. An account counts only where AccountingStorageEnforce keeps others out of it.",
        f"local EXEMPT_USERS = {_set(users)}",
        f"local EXEMPT_ACCOUNTS = {_set(accounts)}",
        "-- Threads of one core: memory per CPU is given for every thread of a core.",
        f"local THREADS_PER_CORE = {threads}",
        "-- The most GPUs of one node; math.huge where it is not known, and then GPUs may lie one on each node.",
        f"local MOST_GPUS_PER_NODE = {'math.huge' if most is None else _positive('most_gpus_per_node', most)}",
        "-- CPUs for each GPU of a job that names none for its tasks or GPUs: DefCpuPerGPU of slurm.conf.",
        f"local DEFAULT_CPUS_PER_GPU = {0 if cpus is None else _positive('default_cpus_per_gpu', cpus)}",
        "-- Whose jobs are let in with a ticket alone, at any size, and whom no account exempts.",
        f"local AGENT_USERS = {_set([_name('agent_users', name) for name in site.agent_users])}",
        *(() if site.tickets is None else _ticket_settings(site, site.tickets, exact, high)),
    ]


def _ticket_settings(site: Site, source: TicketSource, exact: Sequence[str], high: Sequence[str]) -> list[str]:
    accounts = [_name("agent_accounts", name) for name in site.agent_accounts]
    if source.folder is not None:
        where = [
            f"  folder = {_quoted(source.folder)}, -- of the service; the controller renames into its folder `used`"
        ]
    else:
        where = [
            f"  keys = {{ {', '.join(map(_quoted, source.keys))} }},",
            f"  spent = {{ {', '.join(map(_quoted, source.spent))} }}, -- in a folder of SlurmUser's own",
            f"  script_bytes = {LARGEST_SIGNED_SCRIPT},",
            f"  word_bytes = {LONGEST_SIGNED_TICKET},",
        ]
    return [
        "-- Accounts in which jobs are let in with a ticket alone.",
        f"local AGENT_ACCOUNTS = {_set(accounts)}",
        "-- What a rule of the site's own speaks of: a job has neither more nor less of it than its ticket says.",
        f"local EXACT = {_set(exact)}",
        "-- QOS of priority high: a job with a ticket has one where it names it, and none as its user's default one.",
        f"local NAMED_QOS = {_set(['high', *(name.lower() for name in high)])}",
        "-- Where tickets are.",
        "local TICKETS = {", *where, "}",
    ]  # fmt: skip


def _limits(limits: Limits, band: Literal["free", "justify"]) -> list[str]:
    """The ends of these bands."""
    longest: int = getattr(limits.time_limit, band)
    numbers = {
        "memory_per_gpu": getattr(limits.memory_per_gpu, band) // _MIB,
        "memory_without_gpus": getattr(limits.memory_without_gpus, band) // _MIB,
        "gpus": getattr(limits.gpus, band),
        "time": longest // 60,
        "jobs": limits.max_concurrent_jobs,
        "gpu_hours": limits.gpu_hours_per_job,
        "cpu_hours": limits.cpu_hours_per_job,
    }
    lines = {
        "memory_per_gpu": f"--mem-per-gpu={format_memory(limits.memory_per_gpu.free)} as the only memory option",
        "memory_without_gpus": f"--mem={format_memory(limits.memory_without_gpus.free)} as the only memory option",
        "gpus": f"--gpus={limits.gpus.free}",
        "time": f"--time={format_duration(limits.time_limit.free)}",
        "most_time": format_duration(longest),
    }
    known = [f"  {key} = {value:.15g}," for key, value in numbers.items() if value is not None]
    return [
        "-- MB, numbers, minutes and hours.",
        "local LIMIT = {", *known, "}",
        "local REMEDY = {", *(f"  {key} = {_quoted(text)}," for key, text in lines.items()), "}",
    ]  # fmt: skip


def _qos_head(loaded: LoadedPolicy) -> list[str]:
    return [
        "#!/bin/sh",
        f"# Limits of QOS after the policy {_plain(_title(loaded))}",
        f"# sha256 {loaded.sha256}",
        "# They take AccountingStorageEnforce=limits,qos and AccountingStorageTRES=gres/gpu in slurm.conf.",
        "# Every QOS that a user may choose needs its own line: --qos NAME, once for each. A limit that a QOS has",
        "# already is replaced, so leave out a QOS whose limits are stricter.",
        "# MaxJobsPerUser counts what runs, each task of an array by itself; a job over it waits. There is no",
        "# MaxSubmitJobsPerUser here: it counts every task of an array, so an array that runs a few tasks at once",
        "# would be refused by its length.",
        "# A job that breaks MaxWall or MaxTRESPerJob by itself is refused (DenyOnLimit).",
        "set -e",
    ]


def _hours(limits: Limits) -> dict[str, str]:
    stated = {"gres/gpu": limits.gpu_hours_per_job, "cpu": limits.cpu_hours_per_job}
    found = [f"{key}={int(hours * 60)}" for key, hours in stated.items() if hours is not None]
    return {"MaxTRESMinsPerJob": ",".join(found)} if found else {}


def _title(loaded: LoadedPolicy) -> str:
    return f"{loaded.name} {loaded.version} {loaded.sha256[:12]}"


def _plain(text: str) -> str:
    """Text for a comment: nothing in it ends the line."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _quoted(text: str) -> str:
    """A Lua string."""
    safe = "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in text)
    return '"' + safe.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _set(names: Sequence[str]) -> str:
    return "{ " + ", ".join(f"[{_quoted(name)}] = true" for name in sorted(set(names))) + " }" if names else "{}"


def _name(field: str, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise InputError(field, name, "is not a name of Slurm's", hint="Use letters, digits and . _ @ -")
    return name


def _path(field: str, path: str) -> str:
    if not path.startswith("/") or not (path.isascii() and path.isprintable()):
        raise InputError(field, path, "is not an absolute path in plain letters")
    return path.rstrip("/") or "/"


def _positive(field: str, value: int) -> int:
    if value < 1:
        raise InputError(field, value, "must be 1 or more")
    return value


# --- The schema of a policy file, for editors -------------------------------------------------------------------------


_LAYERED = (
    "Limits", "Defaults", "WriteRules", "Sizes", "MemoryBands", "CountBands", "TimeBands", "Priorities", "LowPriority",
)  # fmt: skip


def schema_text() -> str:
    """The JSON Schema of a policy file, for editors; every field may be left out, since files are layers."""
    made = Policy.model_json_schema()
    made["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    made["title"] = "slurm-agent-tools policy"
    made.pop("required", None)
    for part in _LAYERED:
        made["$defs"][part].pop("required", None)
    return json.dumps(made, indent=2) + "\n"


# --- The reference page of the policy, from the rules and the fields themselves ---------------------------------------


_REFERENCE_HEAD = """# Policy reference

This page is generated from the rules (`slurm_agent_tools.policy.for_others`); do not edit it.

Every rule is asked about every request, and every answer is shown. The most severe one decides:
`deny` before `approve` (a person must agree) before `justify` (a written reason is needed) before `allow`.
`warn` is shown and stops nothing. `not_evaluated` means that a fact was missing: in `policy check` it does not
count, in `submit_job` it denies.
"""


ReadExample = Callable[[Example, LoadedPolicy], PlannedRequest]
"""What a rule judges in an example: reading a script takes a parser, which this room does not start."""


def page(loaded: LoadedPolicy, plan_of: ReadExample) -> str:
    """The page in Markdown; the examples are judged by the shipped policy, as `plan_of` reads them."""
    parts = [
        _REFERENCE_HEAD,
        "## Rules\n",
        *(_rule(rule, loaded, plan_of) for rule in RULES),
        "## Fields of a policy file\n",
        _fields(),
    ]
    return "\n".join(parts)


def _rule(rule: Rule, loaded: LoadedPolicy, plan_of: ReadExample) -> str:
    lines = [
        f"### {rule.id}\n",
        f"{rule.what} {rule.why}\n",
        f"Answers: {_words(('pass', *rule.levels))}. Asked for: {_words(sorted(rule.tools))}.\n",
        f"A policy may set it to: {_settable(rule)}.\n",
        "Passes:\n",
        *(_example(example) for example in rule.passing),
        "Does not pass:\n",
        *(_refused(rule, example, loaded, plan_of) for example in rule.failing),
    ]
    return "\n".join(lines)


def explanation(rule: Rule, loaded: LoadedPolicy, plan_of: ReadExample) -> str:
    """One rule for a person at a terminal: its place in this policy, then what the page says."""
    own, floor = loaded.policy.rules.get(rule.id), loaded.floors.get(rule.id)
    level = f"is set to {own}" if own else "answers for itself"
    level += f", at least {floor}" if floor else ""
    return "\n".join([_rule(rule, loaded, plan_of), f"In this policy it {level}. It can be set to: {_settable(rule)}."])


def _settable(rule: Rule) -> str:
    return _words(SETTABLE[rule.id])


def _words(words: Sequence[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _example(example: Example) -> str:
    shown = "" if example.script is None else "\n" + _block("bash", "\n".join(example.script))
    return f"- {example.name}{shown}\n"


def _refused(rule: Rule, example: Example, loaded: LoadedPolicy, plan_of: ReadExample) -> str:
    result = rule.check(plan_of(example, loaded), example.under(loaded.policy))
    return f"{_example(example)}{_block('text', format_result(result))}\n"


def _block(language: str, text: str) -> str:
    lines = [f"```{language}", *text.splitlines(), "```"]
    return "\n".join(["", *(f"  {line}".rstrip() for line in lines)])


def _fields() -> str:
    rows = [f"| `{name}` | {text} |" for name, text in _described(Policy, "")]
    return "\n".join(["| field | meaning |", "|---|---|", *rows, ""])


def _described(model: type[BaseModel], path: str) -> Iterator[tuple[str, str]]:
    for name, field in model.model_fields.items():
        kind = field.annotation
        if field.description is None and isinstance(kind, type) and issubclass(kind, BaseModel):
            yield from _described(kind, f"{path}{name}.")
        else:
            bands = isinstance(kind, type) and issubclass(kind, BaseModel)
            more = " (`free`: passes, `justify`: with a written reason, beyond: a person)" if bands else ""
            yield f"{path}{name}", f"{field.description}{more}"
