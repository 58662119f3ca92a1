"""GPU figures from a Prometheus: a real HTTP server that answers as its documentation says, and as it should not."""

from __future__ import annotations

from datetime import timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from tests.unit.insights.parts import NOON, job, step
from tests.unit.services.metrics import prometheus, vector

from slurm_agent_tools.insights.gpu_metrics import series, utilization
from slurm_agent_tools.settings import GpuMetricsSettings
from slurm_agent_tools.units import JobId

TWO = {"gres/gpu": 2}


async def asked(body: object, *, timeout: float = 5, query: str | None = None, parts=None, **more):
    with prometheus(body, **more) as (url, seen):
        given = {"url": url, "timeout": timeout} | ({"query": query} if query else {})
        found = await utilization(GpuMetricsSettings(**given), parts or [job(step(), allocated=TWO)])
    return found, seen


@pytest.mark.parametrize(
    ("body", "share"),
    [
        (vector("87.5"), 0.875),
        (vector("0"), 0.0),
        ({"status": "success", "data": {"resultType": "scalar", "result": [1435781451.781, "100"]}}, 1.0),
    ],
)
async def test_one_value_in_per_cent_is_the_share(body, share):
    found, seen = await asked(body)
    assert (found.utilization, found.source, found.note) == (share, "prometheus", None)
    assert len(seen) == 1


async def test_the_query_names_the_jobs_the_nodes_and_the_time():
    parts = [
        job(step(), allocated=TWO, job_id=JobId(9, task=number), raw_id=9 + number, nodes="gpu[01-02].site", seconds=60)
        for number in (0, 1)
    ]
    _, seen = await asked(vector("1"), query='q{j=~"$jobs",n=~"$nodes",e=~"a$"}[${seconds}s]', parts=parts)
    url = urlsplit(seen[0])
    words = parse_qs(url.query)
    assert url.path == "/prom/api/v1/query"
    assert words["query"] == [r'q{j=~"9|10",n=~"gpu01\\.site|gpu02\\.site",e=~"a$"}[60s]']
    assert words["time"] == [str(int(NOON.timestamp()) + 60)]


@pytest.mark.parametrize(
    ("body", "more", "note"),
    [
        (vector(), {}, "it knows nothing of this job"),
        (vector("NaN"), {}, "it knows nothing of this job"),
        (vector("1", "2"), {}, "2 series where one is needed"),
        (vector("250"), {}, "no share in per cent"),
        (vector("-1"), {}, "no share in per cent"),
        (vector("much"), {}, "no number"),
        (vector(10**400), {}, "no number"),
        ({"status": "error", "errorType": "bad_data", "error": "parse error"}, {}, "refused the query"),
        ({"status": "success", "data": {"resultType": "matrix", "result": []}}, {}, "neither a vector nor a scalar"),
        ({"status": "success", "data": {"resultType": "vector", "result": [7]}}, {}, "no number"),
        (b"<html>", {}, "no JSON"),
        (b"[" * 5000, {}, "no JSON"),
        (b" " * (2**20 + 1), {}, "larger than"),
        (vector("5"), {"code": 503}, "HTTP 503"),
        (vector("5"), {"code": 302, "head": {"Location": "http://127.0.0.1:1/"}}, "HTTP 302"),
        (vector("5"), {"late": True, "timeout": 0.2}, "no answer within 0.2 s"),
    ],
)
async def test_anything_else_is_no_measurement_and_says_why(body, more, note):
    found, _ = await asked(body, **more)
    assert (found.utilization, found.source) == (None, None)
    assert note in found.note


async def test_a_server_that_is_not_there_is_no_measurement():
    with prometheus(vector("1")) as (url, _):
        pass
    found = await utilization(GpuMetricsSettings(url=url), [job(step(), allocated=TWO)])
    assert found.utilization is None
    assert "cannot be reached" in found.note


@pytest.mark.parametrize(
    ("facts", "note"), [({"ended": None}, "not known"), ({"nodes": "gpu[0001-0900]"}, "900 nodes is not asked for")]
)
async def test_a_job_that_cannot_be_named_is_not_asked_for(facts, note):
    found, seen = await asked(vector("1"), parts=[job(step(), allocated=TWO, **facts)])
    assert (found.utilization, seen) == (None, [])
    assert note in found.note


async def test_names_of_nodes_that_mean_something_in_a_query_are_left_out():
    part = job(step(), allocated=TWO, nodes='a"b')
    _, seen = await asked(vector("1"), query='q{n=~"$nodes"}', parts=[part])
    assert parse_qs(urlsplit(seen[0]).query)["query"] == ['q{n=~""}']


# --- series of jobs that run ------------------------------------------------------------------------------------------


def matrix(*series: tuple[dict[str, str], list[list[object]]]) -> dict[str, object]:
    result = [{"metric": labels, "values": values} for labels, values in series]
    return {"status": "success", "data": {"resultType": "matrix", "result": result}}


async def series_of(body: object, jobs=(7,), **settings):
    with prometheus(body) as (url, seen):
        found = await series(GpuMetricsSettings(url=url, timeout=5, **settings), jobs, NOON, NOON + timedelta(hours=2))
    return found, seen


async def test_each_gpu_of_a_running_job_has_its_series():
    moment = NOON.timestamp()
    told = matrix(
        ({"hpc_job": "7", "gpu": "0"}, [[moment, "50"], [moment + 60, "0"], [moment + 120, "NaN"]]),
        ({"hpc_job": "7", "gpu": "1"}, [[moment, "100"]]),
        ({"hpc_job": "8"}, [[moment, "1"]]), ({}, []), ({"hpc_job": "x"}, [["y", "z"]]),
    )  # fmt: skip
    found, seen = await series_of(told)
    assert found.jobs == {7: (((NOON, 0.5), (NOON + timedelta(minutes=1), 0.0)), ((NOON, 1.0),))}
    words = parse_qs(urlsplit(seen[0]).query)
    assert words["query"] == ['DCGM_FI_DEV_GPU_UTIL{hpc_job=~"7"}']
    assert (urlsplit(seen[0]).path, words["step"]) == ("/prom/api/v1/query_range", ["30s"])


async def test_a_label_of_any_length_is_no_number_of_a_job():
    told = matrix(({"hpc_job": "7" * 5000}, [[0, "1"]]), ({"hpc_job": "7"}, [[NOON.timestamp(), "50"]]))
    assert (await series_of(told))[0].jobs == {7: (((NOON, 0.5),),)}


@pytest.mark.parametrize("body", [vector("1"), b"<html>", {"status": "error"}])
async def test_what_is_no_series_is_no_measurement_and_says_why(body):
    found, _ = await series_of(body)
    assert (found.jobs, found.note is not None) == ({}, True)


async def test_without_an_address_nobody_is_asked():
    found = await series(GpuMetricsSettings(), (7,), NOON, NOON)
    assert "no Prometheus is set" in (found.note or "")
