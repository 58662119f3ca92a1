"""How busy a job's GPUs were, from a Prometheus that collects DCGM's figures: one instant query at the job's end.

Of jobs that run, a series for each GPU (`/api/v1/query_range`, resultType `matrix`).

The answer is that of Prometheus' HTTP API, `/api/v1/query`: {"status": "success", "data": {"resultType": "vector",
"result": [{"metric": {}, "value": [TIME, "87.5"]}]}}, or a `scalar`. Anything else is no measurement.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from string import Template
from typing import Any

import anyio
import httpx2

from slurm_agent_tools.insights import usage
from slurm_agent_tools.insights.usage import GpuUse
from slurm_agent_tools.models.job import Job
from slurm_agent_tools.settings import GpuMetricsSettings
from slurm_agent_tools.slurm import node_list

_MOST_JOBS, _MOST_NODES, _LARGEST = 500, 500, 2**20

_POINTS, _LARGEST_SERIES = 240, 2**23

_DIGITS = 10  # of the number of a job


class _Unusable(Exception):
    """Why there is no figure."""


async def utilization(wanted: GpuMetricsSettings, parts: Sequence[Job]) -> GpuUse:
    """The mean over the run of the parts that had GPUs; never an error, but a note why nothing was measured."""
    try:
        having = [part for part in parts if usage.amount(part, usage.GPUS)]
        with anyio.fail_after(wanted.timeout):
            body = await _asked(f"{(wanted.url or '').rstrip('/')}/api/v1/query", _words(wanted.query, having))
        return GpuUse(utilization=_percent(body) / 100, source="prometheus")
    except _Unusable as problem:
        return GpuUse(note=f"Prometheus: {problem}")
    except TimeoutError:
        return GpuUse(note=f"Prometheus: no answer within {wanted.timeout:g} s")
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        return GpuUse(note=f"Prometheus: it cannot be reached ({type(error).__name__})")


def _words(query: str, parts: Sequence[Job]) -> dict[str, str]:
    """The query with what is known of the job, and the time to ask for."""
    ids = sorted({part.raw_id or part.job_id.base for part in parts})
    nodes = sorted({name for part in parts for name in _nodes(part)})
    started = [part.started for part in parts if part.started is not None]
    ended = [part.ended for part in parts if part.ended is not None]
    if len(ids) > _MOST_JOBS or len(nodes) > _MOST_NODES:
        raise _Unusable(f"a job of {len(ids)} tasks on {len(nodes)} nodes is not asked for")
    if not started or not ended:
        raise _Unusable("start and end of the job are not known")
    values = {
        "jobs": "|".join(map(str, ids)),
        "nodes": "|".join(name.replace(".", "\\\\.") for name in nodes),
        "seconds": str(max(1, round((max(ended) - min(started)).total_seconds()))),
    }
    return {"query": Template(query).safe_substitute(values), "time": str(round(max(ended).timestamp()))}


def _nodes(part: Job) -> frozenset[str]:
    """Its nodes; names with a sign that means something in a query are left out."""
    try:
        found = node_list.expand(part.nodes) if part.nodes else frozenset()
    except ValueError:
        return frozenset()
    return frozenset(name for name in found if re.fullmatch(r"[A-Za-z0-9._-]+", name))


async def _asked(url: str, words: dict[str, str], largest: int = _LARGEST) -> bytes:
    """The body, of bounded size. Nothing of this machine's proxies, passwords or redirects comes into play."""
    async with (
        httpx2.AsyncClient(trust_env=False, follow_redirects=False) as client,
        client.stream("GET", url, params=words) as answer,
    ):
        if answer.status_code != httpx2.codes.OK:
            raise _Unusable(f"it answered with HTTP {answer.status_code}")
        body = b""
        async for piece in answer.aiter_bytes():
            body += piece
            if len(body) > largest:
                raise _Unusable(f"its answer is larger than {largest} bytes")
        return body


def _percent(body: bytes) -> float:
    """The one value of the answer, 0..100."""
    data = _data(body)
    value = _number(_pair(data.get("resultType"), data.get("result")))
    if not 0 <= value <= 100:
        raise _Unusable("its value is no share in per cent")
    return value


def _data(body: bytes) -> dict[str, Any]:
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        raise _Unusable("its answer is no JSON") from None
    data = told.get("data") if isinstance(told, dict) and told.get("status") == "success" else None
    if not isinstance(data, dict):
        raise _Unusable("it refused the query")
    return data


def _pair(kind: object, result: Any) -> Any:
    """[time, value] of a scalar, or of a vector of one series."""
    if kind == "scalar":
        return result
    if kind != "vector" or not isinstance(result, list):
        raise _Unusable("its answer is neither a vector nor a scalar")
    if not result:
        raise _Unusable("it knows nothing of this job")
    if len(result) > 1:
        raise _Unusable(f"it has {len(result)} series where one is needed")
    return result[0].get("value") if isinstance(result[0], dict) else None


def _number(pair: Any) -> float:
    try:
        value = float(pair[1])
    except (TypeError, ValueError, OverflowError, IndexError, KeyError):
        raise _Unusable("its value is no number") from None
    if not math.isfinite(value):
        raise _Unusable("it knows nothing of this job")
    return value


# --- Series of jobs that run ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GpuSeries:
    """By the number of the job a series for each of its GPUs: moments and shares 0..1. `note`: why there is none."""

    jobs: Mapping[int, tuple[tuple[tuple[datetime, float], ...], ...]] = field(default_factory=dict)
    note: str | None = None


async def series(wanted: GpuMetricsSettings, jobs: Collection[int], since: datetime, now: datetime) -> GpuSeries:
    """How busy the GPUs of these jobs were; never an error, but a note why nothing was measured."""
    if wanted.url is None:
        return GpuSeries(note="no Prometheus is set (gpu_metrics.url)")
    try:
        with anyio.fail_after(wanted.timeout):
            url = f"{wanted.url.rstrip('/')}/api/v1/query_range"
            body = await _asked(url, _range(wanted.series, jobs, since, now), _LARGEST_SERIES)
        return GpuSeries(_series_of(body, wanted.job_label, frozenset(jobs)))
    except _Unusable as problem:
        return GpuSeries(note=f"Prometheus: {problem}")
    except TimeoutError:
        return GpuSeries(note=f"Prometheus: no answer within {wanted.timeout:g} s")
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        return GpuSeries(note=f"Prometheus: it cannot be reached ({type(error).__name__})")


def _range(query: str, jobs: Collection[int], since: datetime, now: datetime) -> dict[str, str]:
    if len(jobs) > _MOST_JOBS:
        raise _Unusable(f"{len(jobs)} jobs at once are not asked for")
    step = max(30, math.ceil((now - since).total_seconds() / _POINTS))
    asked = Template(query).safe_substitute({"jobs": "|".join(map(str, sorted(jobs)))})
    return {
        "query": asked, "start": f"{since.timestamp():.0f}", "end": f"{now.timestamp():.0f}", "step": f"{step}s",
    }  # fmt: skip


def _series_of(
    body: bytes, label: str, jobs: frozenset[int]
) -> dict[int, tuple[tuple[tuple[datetime, float], ...], ...]]:
    """The series of these jobs; what is no share in per cent is left out of them, as not measured."""
    data = _data(body)
    if data.get("resultType") != "matrix" or not isinstance(data.get("result"), list):
        raise _Unusable("its answer is no matrix")
    found: dict[int, tuple[tuple[tuple[datetime, float], ...], ...]] = {}
    for one in data["result"]:
        labels, values = (one.get("metric"), one.get("values")) if isinstance(one, dict) else (None, None)
        name = str(labels.get(label, "")) if isinstance(labels, dict) else ""
        if not name.isdecimal() or len(name) > _DIGITS or int(name) not in jobs or not isinstance(values, list):
            continue
        found[int(name)] = (*found.get(int(name), ()), tuple(_points(values)))
    return found


def _points(values: list[Any]) -> Iterator[tuple[datetime, float]]:
    for pair in values:
        try:
            moment, percent = float(pair[0]), float(pair[1])
        except (TypeError, ValueError, OverflowError, IndexError, KeyError):
            continue
        if 0 <= moment < 2**33 and 0 <= percent <= 100:
            yield datetime.fromtimestamp(moment, UTC), percent / 100
