"""Debian's Prometheus over the real server on the real cluster: its own judge of the text, its scrapes, its alerts."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from tests.system.faces import Place
from tests.system.web import Web, serving
from tests.unit.test_deploy import DEPLOY, RULES, everything, expressions
from tests.watchdog import SECONDS

GPU_JOB = ["--partition=gpu", "--gres=gpu:2", "--time=10", "--output=/dev/null", "--wrap=sleep 600"]
QUICK = {"SLURM_AGENT_FLEET__IDLE_MINUTES": "0.05", "SLURM_AGENT_SLURM__CACHE_SECONDS": "1"}


def promtool(*words: str, stdin: str = "", cwd: Path | None = None) -> str:
    """What it says; it must be content."""
    done = subprocess.run(["promtool", *words], input=stdin, capture_output=True, text=True, timeout=60, cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def token(fresh: Place) -> str:
    words = [sys.executable, "-m", "slurm_agent_tools", "token", "new", "--name", "prometheus", "--scope", "scrape"]
    return fresh.run(words).stdout.decode().strip()


@pytest.fixture
def idle(fresh: Place) -> Iterator[str]:
    """A job that holds two GPUs and sleeps."""
    job = fresh.slurm("sbatch", "--parsable", "--chdir", str(fresh.project), *GPU_JOB)
    for _ in range(100):
        if fresh.slurm("squeue", "-h", "-j", job, "-o", "%T") == "RUNNING":
            break
    yield job
    fresh.slurm("scancel", job)


@pytest.fixture
def web(fresh: Place, token: str, idle: str) -> Iterator[Web]:
    place = replace(fresh, extra=QUICK)
    with serving(["--listen", "127.0.0.1:0"], place.environment(), place.project, place.cluster.as_user) as made:
        yield made


def test_promtool_takes_the_rules_their_tests_and_the_dashboard(tmp_path: Path):
    promtool("check", "rules", str(RULES))
    promtool("test", "rules", "slurm-agent-tools.rules.test.yaml", cwd=RULES.parent)
    promtool("check", "config", "--syntax-only", str(RULES.with_name("prometheus.yaml")))
    found = expressions(json.loads((DEPLOY / "grafana" / "slurm-agent-tools.json").read_text()))
    plain = [
        re.sub(r"\$\w+", ".*", text.replace("$__rate_interval", "5m")) for text in found if "label_values" not in text
    ]
    rules = [{"record": f"panel:{number}", "expr": text} for number, text in enumerate(plain)]
    (tmp_path / "board.yaml").write_text(yaml.safe_dump({"groups": [{"name": "board", "rules": rules}]}))
    assert f"{len(rules)} rules found" in promtool("check", "rules", str(tmp_path / "board.yaml"))


@pytest.mark.proves("not-measured-is-no-series")
def test_the_text_of_the_real_server_is_what_prometheus_takes(fresh: Place, web: Web, token: str, idle: str):
    answer = web.ask("GET", "/metrics", token)
    assert answer.status_code == 200, answer.text
    promtool("check", "metrics", stdin=answer.text)
    figures = dict(line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#"))
    assert figures['slurm_agent_jobs{partition="gpu",state="RUNNING"}'] == "1.0"
    assert figures["slurm_agent_own_gpus"] == "2.0"
    assert "slurm_agent_own_gpu_use_ratio" not in answer.text  # nobody measures it here
    health = web.ask("GET", "/daemons/health", token)
    assert health.json()["daemons"] == {"server": "ok", "ledger": "ok", "slurmctld": "ok", "slurmdbd": "ok"}


class Heard(BaseHTTPRequestHandler):
    """What stands where an Alertmanager would, or a target of Apprise: it keeps what it is sent."""

    alerts: list[dict[str, Any]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        told = json.loads(body)
        self.alerts.extend(told if isinstance(told, list) else [told])
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None: ...


@contextmanager
def listening() -> Iterator[tuple[int, list[dict[str, Any]]]]:
    heard: list[dict[str, Any]] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Heard", (Heard,), {"alerts": heard}))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_port, heard
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def settings(folder: Path, port: int, manager: int, token: str) -> Path:
    """The files of `deploy/`, with this server's address and token, and with shorter times."""
    rules = re.sub(r"for: \d+m", "for: 2s", RULES.read_text())
    (folder / RULES.name).write_text(rules)
    (folder / "token").write_text(token)
    told = yaml.safe_load(RULES.with_name("prometheus.yaml").read_text())
    told["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    (scrape,) = told["scrape_configs"]
    scrape["authorization"]["credentials_file"] = str(folder / "token")
    scrape["static_configs"] = [{"targets": [f"127.0.0.1:{port}"]}]
    told["alerting"] = {"alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{manager}"]}]}]}
    path = folder / "prometheus.yaml"
    path.write_text(yaml.safe_dump(told))
    return path


@contextmanager
def prometheus(config: Path) -> Iterator[int]:
    """Its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [
        f"--config.file={config}",
        f"--storage.tsdb.path={config.parent / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (config.parent / "said").open("wb") as said:
        process = subprocess.Popen(["prometheus", *words], stdout=said, stderr=said)
        try:
            yield port
        finally:
            process.terminate()
            process.wait(30)


@pytest.mark.proves("idle-gpus-raise-an-alert")
def test_an_alert_fires_on_a_job_that_sleeps_on_its_gpus(web: Web, token: str, tmp_path: Path):
    with listening() as (manager, heard), prometheus(settings(tmp_path, web.port, manager, token)):
        end = time.monotonic() + 2 * SECONDS
        found: list[dict[str, Any]] = []
        while not found and time.monotonic() < end:
            found = [one for one in heard if one["labels"]["alertname"] == "SlurmAgentGpusUnused"]
            time.sleep(0.2)
    assert found, (heard, (tmp_path / "said").read_text()[-3000:], web.ask("GET", "/metrics", token).text)
    assert found[0]["annotations"]["summary"] == "2 GPUs are held and not used"
    assert not [one for one in heard if one["labels"]["alertname"] in {"SlurmAgentServerDown", "SlurmAgentGpuUseLow"}]


class Told(BaseHTTPRequestHandler):
    """A server of which every family has a sample; what it counted goes up from one scrape to the next."""

    scrapes = 0

    def do_GET(self) -> None:
        type(self).scrapes += 1
        body = everything(self.scrapes).encode()
        self.send_response(200)
        self.send_header("content-type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


def asked(port: int, path: str, **query: str) -> Any:
    """The data that Prometheus' HTTP API answers, as Grafana asks it; None while it does not answer."""
    try:
        answer = httpx2.get(f"http://127.0.0.1:{port}/api/v1/{path}", params=query, timeout=10)
    except httpx2.TransportError:
        return None
    assert answer.status_code == 200, answer.text
    return answer.json()["data"]


@pytest.mark.proves("deployed-names-are-real")
def test_every_query_of_every_panel_is_answered_with_a_series_by_a_real_prometheus(tmp_path: Path):
    board = json.loads((DEPLOY / "grafana" / "slurm-agent-tools.json").read_text())
    kept = {"$__rate_interval": "5m", "$instance": ".*"}
    queries = {text: text for panel in board["panels"] for text in expressions(panel)}
    for name, value in kept.items():
        queries = {text: query.replace(name, value) for text, query in queries.items()}
    assert len(queries) > 25
    assert not [query for query in queries.values() if "$" in query]
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Told", (Told,), {}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    empty: list[str] = [*queries]
    with prometheus(settings(tmp_path, server.server_port, 9, "none")) as port:
        end = time.monotonic() + 2 * SECONDS
        while empty and time.monotonic() < end:
            time.sleep(0.5)
            empty = [
                text for text, query in queries.items() if not (asked(port, "query", query=query) or {}).get("result")
            ]
        for variable in board["templating"]["list"]:
            for series in re.findall(r"label_values\((\w+), instance\)", str(variable["query"])):
                assert asked(port, "label/instance/values", **{"match[]": series}) == [
                    f"127.0.0.1:{server.server_port}"
                ]
    server.shutdown()
    server.server_close()
    assert empty == []
