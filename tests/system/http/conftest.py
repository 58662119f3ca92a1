"""A server over HTTP without Slurm, and tokens for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.http.slow import BODY, HEAD, LARGEST, PER_MINUTE
from tests.system.web import Web, serving

from slurm_agent_tools.store.tokens import Tokens


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("http")
    (folder / "project").mkdir()
    (folder / "bin").mkdir()
    (folder / "project" / "slurm-agent.toml").write_text("")
    (folder / "project" / "train.yaml").write_text("lr: 0.1\n")
    return folder


@pytest.fixture(scope="module")
def env(home: Path) -> dict[str, str]:
    limits = {
        "HEAD_TIMEOUT": str(HEAD),
        "BODY_TIMEOUT": str(BODY),
        "PER_MINUTE": str(PER_MINUTE),
        "MAX_BODY": str(LARGEST),
    }
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / "state"),
        "SLURM_AGENT_SLURM__BIN_DIR": str(home / "bin"),
    } | {f"SLURM_AGENT_HTTP__{name}": value for name, value in limits.items()}


@pytest.fixture(scope="module")
def tokens(home: Path) -> Tokens:
    return Tokens(home / "state" / "slurm-agent-tools")


@pytest.fixture(scope="module")
def web(env: dict[str, str], home: Path) -> Iterator[Web]:
    with serving(["--listen", "127.0.0.1:0"], env, home / "project") as made:
        yield made


@pytest.fixture
def writer(tokens: Tokens, request: pytest.FixtureRequest) -> Iterator[str]:
    yield tokens.new("writer", "write")
    tokens.revoke("writer")


@pytest.fixture
def reader(tokens: Tokens) -> Iterator[str]:
    yield tokens.new("reader", "read")
    tokens.revoke("reader")
