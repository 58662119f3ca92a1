"""Cost and efficiency: what was spent on what, and how much of what was asked for was used."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from markupsafe import Markup

from slurm_agent_tools.fleet.sections import spending
from slurm_agent_tools.insights import run_sizes
from slurm_agent_tools.insights.accounting_history import DAYS, accounting_history
from slurm_agent_tools.models.job import JobRecord
from slurm_agent_tools.models.toolset_arguments import GetFleet
from slurm_agent_tools.server.web import fragments
from slurm_agent_tools.server.web.web_page import SLOW, PageAsked, WebPage
from slurm_agent_tools.services import fleet_look
from slurm_agent_tools.services.context import ClusterContext
from slurm_agent_tools.settings import RateSettings
from slurm_agent_tools.text import sanitize, svg_plots

_MOST, _SHOWN = 10_000, 30

_HOUR, _G = 3600.0, 2.0**30


async def gather(context: ClusterContext, _: PageAsked) -> dict[str, Any]:
    """The record of the page. Raises StorageError."""
    ask = GetFleet(sections=["cost", "shares"], detail="full")
    told = (await fleet_look.get_fleet(context, ask)).model_dump(mode="json")
    facts, unread = await fleet_look.look(context, {"ran", "queue", "prices"}, ask)
    known = await accounting_history(context, limit=_MOST)
    done = [record for record in known.records if record.usage is not None and record.ended is not None]
    record = fragments.plain(
        {
            "cost": told["cost"],
            "shares": told["shares"],
            "weeks": _grouped(done, lambda one: [f"{one.submitted:%G, week %V}"])[:_SHOWN],
            "names": sorted(_grouped(done, lambda one: [one.name]), key=lambda row: -row["cpu_hours_asked"])[:_SHOWN],
            "tags": [] if unread else [one.model_dump(mode="json") for one in spending.by_tag(facts)[:_SHOWN]],
            "sizes": [_size(one, facts.rates) for one in run_sizes.savings(done)[:_SHOWN]],
            "days": DAYS,
            "problem": known.silent,
            "not_measured": told["not_measured"],
        }
    )
    return record | {"plot": _plot(told["cost"])}


def _grouped(records: Iterable[JobRecord], named: Callable[[JobRecord], Sequence[str]]) -> list[dict[str, Any]]:
    """Jobs by what they are named by, in the order in which the names come."""
    groups: defaultdict[str, list[JobRecord]] = defaultdict(list)
    for record in records:
        for name in named(record):
            groups[name].append(record)
    return [_efficiency(name, members) for name, members in groups.items()]


def _efficiency(name: str, members: Sequence[JobRecord]) -> dict[str, Any]:
    """What these asked for and used. A figure that was not measured of one job is left out on both sides."""
    uses = [one.usage for one in members if one.usage is not None]
    cpus = [(use.cpu_seconds, use.cpu_allocated_seconds) for use in uses]
    both = [(used, given) for used, given in cpus if used is not None and given]
    memory = [
        (use.memory_peak_bytes, use.memory_allocated_bytes, use.elapsed_seconds or 0)
        for use in uses
        if use.memory_peak_bytes is not None and use.memory_allocated_bytes
    ]
    held = sum(given or 0.0 for _, given in cpus)
    asked = sum(given * seconds for _, given, seconds in memory)
    unused = sum(max(0, given - peak) * seconds for peak, given, seconds in memory)
    return {
        "name": sanitize.line(name),
        "jobs": len(members),
        "gpu_hours": sum(use.gpu_allocated_seconds or 0.0 for use in uses) / _HOUR,
        "cpu_hours_asked": held / _HOUR,
        "cpu_share": sum(used for used, _ in both) / sum(given for _, given in both) if both else None,
        "memory_share": 1 - unused / asked if asked else None,
        "memory_unused_gb_hours": unused / _G / _HOUR if memory else None,
    }


def _size(one: run_sizes.SizeSavings, rates: RateSettings) -> dict[str, Any]:
    """What another request would have saved; the price is that of the CPUs, which alone have one by the hour."""
    price = None if rates.cpu_hour is None or one.cpu_hours is None else rates.cpu_hour * one.cpu_hours
    asked, sizing = one.asked, one.sizing
    pairs = {
        "memory": (asked.memory_bytes, sizing.memory.recommended),
        "cpus": (asked.cpus, sizing.cpus.recommended),
        "time": (asked.time_limit_seconds, sizing.time.recommended),
    }
    return {"name": sanitize.line(one.name), "runs": sizing.basis, "sizes": pairs, "gb_hours": one.gb_hours,
            "cpu_hours": one.cpu_hours, "amount": price, "short": one.short}  # fmt: skip


def _plot(cost: Any) -> Markup | None:
    """GPU hours of a week by campaign, or CPU hours where no GPU was held; None where nothing is known."""
    campaigns = (cost or {}).get("campaigns", [])[:_SHOWN]
    kind = "gpu_hours" if any(one["gpu_hours"] for one in campaigns) else "cpu_hours"
    known = [one for one in campaigns if one[kind] is not None]
    if not known:
        return None
    unit = "GPU hours" if kind == "gpu_hours" else "CPU hours"
    shown = [(sanitize.shown(sanitize.line(str(one["what"]))), {unit: one[kind]}) for one in known]
    picture = svg_plots.stacked_bars(shown, title=f"{unit} in 7 days by campaign", unit=unit)
    return Markup(svg_plots.unstyled(picture))  # noqa: S704 - every text in it is escaped there


PAGE = WebPage("cost", "Cost and efficiency", gather, age=SLOW)
