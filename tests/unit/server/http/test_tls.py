"""Certificates that cannot be used are told before anything listens."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from slurm_agent_tools.errors import ConfigError
from slurm_agent_tools.server.http import listener
from slurm_agent_tools.settings import HttpSettings

pytestmark = pytest.mark.proves("http-lets-nobody-in")


def pair(folder: Path, name: str, *words: str) -> tuple[Path, Path]:
    """A certificate and its key; `words` say how the key is kept."""
    cert, key = folder / f"{name}.pem", folder / f"{name}.key"
    argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-days", "1"]
    rest = ["-subj", f"/CN={name}", "-out", str(cert), "-keyout", str(key)]
    subprocess.run([*argv, *(words or ("-nodes",)), *rest], check=True, capture_output=True)
    return cert, key


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return pair(tmp_path_factory.mktemp("tls"), "a")


def test_a_good_pair_is_taken_and_none_is_fine(made: tuple[Path, Path]):
    listener.check_certificate(HttpSettings(tls_cert=made[0], tls_key=made[1]))
    listener.check_certificate(HttpSettings())


def test_one_without_the_other_is_named(made: tuple[Path, Path]):
    with pytest.raises(ConfigError, match=r"http\.tls_key.* is needed"):
        listener.check_certificate(HttpSettings(tls_cert=made[0]))
    with pytest.raises(ConfigError, match=r"http\.tls_cert.* is needed"):
        listener.check_certificate(HttpSettings(tls_key=made[1]))


def test_what_is_no_certificate_is_said_with_the_field(made: tuple[Path, Path], tmp_path: Path):
    junk = tmp_path / "junk.pem"
    junk.write_text("junk")
    junk.chmod(0o600)
    other = pair(tmp_path, "b")
    for cert, key in ((junk, made[1]), (made[0], junk), (made[0], other[1])):
        with pytest.raises(ConfigError, match=r"^http\.tls_cert: .* cannot be used") as error:
            listener.check_certificate(HttpSettings(tls_cert=cert, tls_key=key))
        assert str(key) in error.value.hint
    with pytest.raises(ConfigError, match=r"^http\.tls_cert: .* cannot be read"):
        listener.check_certificate(HttpSettings(tls_cert=tmp_path, tls_key=made[1]))


def test_a_key_with_a_passphrase_is_not_asked_for(tmp_path: Path):
    cert, key = pair(tmp_path, "c", "-passout", "pass:word")
    with pytest.raises(ConfigError, match=r"^http\.tls_key: .* needs a passphrase"):
        listener.check_certificate(HttpSettings(tls_cert=cert, tls_key=key))


def test_a_key_that_everybody_can_read_is_refused(tmp_path: Path):
    cert, key = pair(tmp_path, "d")
    key.chmod(0o644)
    with pytest.raises(ConfigError, match=r"^http\.tls_key: .*can be read by everybody") as error:
        listener.check_certificate(HttpSettings(tls_cert=cert, tls_key=key))
    assert error.value.hint == f"chmod 600 {key}"
