"""Where the server over HTTP listens, and what it says of itself."""

from __future__ import annotations

import ssl
import stat
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest
from tests.system.web import HEADERS, Web, call, refused, serving, stateless

from slurm_agent_tools.api.catalogue import TOOLS
from slurm_agent_tools.store.tokens import Tokens

pytestmark = pytest.mark.proves("http-lets-nobody-in")


def test_health_is_told_to_everybody_and_the_reason_only_to_a_token(web: Web, reader: str):
    assert (web.ask("GET", "/healthz").status_code, web.ask("GET", "/healthz").json()) == (200, {"status": "ok"})
    answer = web.ask("GET", "/readyz")
    assert (answer.status_code, answer.json()) == (503, {"status": "unavailable"})
    told = web.ask("GET", "/readyz", reader).json()
    assert told["ledger"] == "ok"
    assert "not installed" in told["slurm"]
    assert web.ask("GET", "/readyz", "sat_wrong").status_code == 401
    assert web.ask("POST", "/readyz").status_code == 405
    assert web.ask("GET", "/secrets").status_code == 404


# --- where it listens -------------------------------------------------------------------------------------------


async def test_by_default_it_is_a_socket_that_only_its_user_can_reach(env: dict[str, str], home: Path, reader: str):
    with serving([], env, home / "project") as web:
        assert web.path == home / "state" / "slurm-agent-tools" / "http" / "mcp.sock"
        assert stat.S_IMODE(web.path.stat().st_mode) == 0o600
        assert stat.S_IMODE(web.path.parent.stat().st_mode) == 0o700
        assert web.ask("POST", json=call("get_status"), headers=HEADERS).status_code == 401
        async with web.client(reader) as client:
            assert len((await client.list_tools()).tools) == len(TOOLS)
        assert "in use by another server" in refused([], env, home / "project")
        assert web.stop() == 0
        assert not web.path.exists()


def test_a_socket_that_a_killed_server_left_is_taken_over(env: dict[str, str], home: Path, tokens: Tokens):
    with serving([], env, home / "project") as web:
        web.process.kill()
        web.process.wait(10)
        assert web.path.exists()
    with serving([], env, home / "project") as web:
        assert web.ask("GET", "/healthz").status_code == 200


def test_a_socket_in_a_folder_of_everybody_is_refused(env: dict[str, str], home: Path, tmp_path: Path):
    tmp_path.chmod(0o755)
    said = refused(["--listen", f"unix:{tmp_path}/mcp.sock"], env, home / "project")
    assert "http.listen" in said
    assert f"chmod 700 {tmp_path}" in said


@pytest.mark.parametrize(
    ("words", "field", "mend"),
    [
        (["--listen", "0.0.0.0:0"], "http.listen", "--behind-proxy"),
        (["--listen", "0.0.0.0:0", "--behind-proxy", "hpc.example.org"], "http.listen", "token new"),
        (["--tls-cert", "none.pem"], "http.tls_cert", "PEM"),
    ],
)
def test_it_does_not_listen_where_it_should_not(
    env: dict[str, str], home: Path, tmp_path: Path, words: list[str], field: str, mend: str
):
    said = refused(words, env | {"XDG_STATE_HOME": str(tmp_path)}, home / "project")
    assert field in said
    assert mend in said


def test_behind_a_declared_proxy_its_public_name_is_answered(env: dict[str, str], home: Path, reader: str):
    with serving(["--listen", "0.0.0.0:0", "--behind-proxy", "hpc.example.org"], env, home / "project") as web:
        web.url = f"http://127.0.0.1:{web.port}"
        body, headers = call("validate_config", config_path="train.yaml"), stateless("validate_config")
        public = {"host": "hpc.example.org", "origin": "https://hpc.example.org"}
        assert web.post(reader, body, **public, **headers).status_code == 200
        assert web.post(reader, body, host="other.example.org", **headers).status_code == 421


def test_with_a_certificate_it_speaks_tls(env: dict[str, str], home: Path, tmp_path: Path, reader: str):
    key, cert = tmp_path / "key.pem", tmp_path / "cert.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(cert)]
    subprocess.run([*made, *names], check=True, capture_output=True)
    words = ["--listen", "0.0.0.0:0", "--public-host", "login1", "--tls-cert", str(cert), "--tls-key", str(key)]
    with serving(words, env, home / "project") as web:
        context = ssl.create_default_context(cafile=str(cert))
        with httpx2.Client(verify=context) as client:
            url = f"https://localhost:{web.port}"
            assert client.get(url + "/healthz").json() == {"status": "ok"}
            assert client.get(url + "/mcp").status_code == 401
            assert client.get(url + "/healthz", headers={"host": "login1"}).status_code == 200


def test_options_for_http_are_not_taken_without_it(env: dict[str, str], home: Path):
    argv = [sys.executable, "-m", "slurm_agent_tools", "serve", "--listen", "127.0.0.1:0"]
    done = subprocess.run(argv, env=env, cwd=home / "project", capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "--listen: is only for --http" in done.stderr or "only for --http" in done.stderr
