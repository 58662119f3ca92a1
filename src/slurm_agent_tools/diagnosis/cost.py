"""What a job took up in hours, and its price by the rates of the settings. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from slurm_agent_tools.config import RateSettings
from slurm_agent_tools.history import given
from slurm_agent_tools.model import Job
from slurm_agent_tools.replies.report import Cost

_HOUR = 3600
_OTHER = "other"


def cost(parts: Sequence[Job], rates: RateSettings) -> Cost:
    """Allocated hours of all parts that ran, and their price where every kind of them has a rate."""
    cpus = given.total(given.seconds(part, "cpu") for part in parts)
    gpus = given.total(given.seconds(part, given.GPUS) for part in parts)
    kinds: dict[str, float] = {}
    for part in parts:
        for kind, count in given.gpu_kinds(part).items():
            kinds[kind or _OTHER] = kinds.get(kind or _OTHER, 0.0) + count * (part.elapsed_seconds or 0) / _HOUR
    hours = None if cpus is None else cpus / _HOUR
    amount, note = _price(hours, kinds, rates) if gpus is not None else (None, "the GPUs of this job are not known")
    return Cost(
        cpu_hours=_rounded(hours),
        gpu_hours=None if gpus is None else _rounded(gpus / _HOUR),
        gpu_hours_by_type={kind: round(value, 4) for kind, value in kinds.items()},
        amount=None if amount is None else round(amount, 4),
        currency=rates.currency,
        note=note,
    )


def _price(cpu_hours: float | None, kinds: dict[str, float], rates: RateSettings) -> tuple[float | None, str | None]:
    """The price, or why there is none. Without a rate for CPUs a job with GPUs is priced by its GPUs alone."""
    if rates.cpu_hour is None and not rates.gpu_hour:
        return None, "no rates are set"
    prices = {kind: rates.gpu_hour.get(kind, rates.gpu_hour.get(_OTHER)) for kind in kinds}
    missing = [kind for kind, price in prices.items() if price is None]
    if missing:
        return None, f"no rate is set for GPUs of type {', '.join(missing)}"
    amount = sum(hours * (prices[kind] or 0.0) for kind, hours in kinds.items())
    if rates.cpu_hour is None:
        return (amount, "GPUs alone: no rate is set for CPUs") if kinds else (None, "no rate is set for CPUs")
    if cpu_hours is None:
        return None, "the CPU time is not known"
    return amount + cpu_hours * rates.cpu_hour, None


def _rounded(hours: float | None) -> float | None:
    return None if hours is None else round(hours, 4)
