"""Tokens: kept as hashes in a private file, named once, ended at once."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from slurm_agent_tools.cli.main import main
from slurm_agent_tools.errors import InputError, StorageError
from slurm_agent_tools.store.tokens import Tokens


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    return Tokens(tmp_path / "state")


def test_a_token_is_found_by_itself_alone(tokens: Tokens):
    token = tokens.new("alice", "read", 3)
    found = tokens.find(token)
    assert found is not None
    assert (found.name, found.scope) == ("alice", "read")
    assert found.expires is not None
    assert not found.expired(found.created + timedelta(days=2.9))
    assert found.expired(found.created + timedelta(days=3))
    for wrong in ("", token[:-1], token + "A", token[:-1] + ("A" if token[-1] != "A" else "B"), token.upper(), "sät"):
        assert tokens.find(wrong) is None


@pytest.mark.parametrize(("what", "mode"), [("tokens.sqlite3", 0o666), ("tokens.sqlite3", 0o660), (".", 0o777)])
def test_tokens_that_others_could_have_written_count_for_nothing(tokens: Tokens, what: str, mode: int):
    token = tokens.new("alice", "read")
    path = tokens.path.parent / what
    path.chmod(mode)
    for use in (lambda: tokens.find(token), tokens.all, lambda: tokens.new("bob", "write")):
        with pytest.raises(StorageError, match="not yours alone") as error:
            use()
        assert "chmod" in error.value.hint
    path.chmod(0o700)
    assert tokens.find(token) is not None


def test_nothing_of_the_token_is_in_the_file_and_only_its_user_can_read_it(tokens: Tokens):
    token = tokens.new("alice", "write")
    assert token[21:].encode() not in tokens.path.read_bytes()
    assert stat.S_IMODE(tokens.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(tokens.path.parent.stat().st_mode) == 0o700


def test_a_revoked_token_is_gone_and_its_name_is_free(tokens: Tokens):
    old = tokens.new("alice", "write")
    with pytest.raises(InputError, match="has a token already"):
        tokens.new("alice", "read")
    tokens.revoke("alice")
    new = tokens.new("alice", "read")
    assert tokens.find(old) is None
    assert tokens.find(new) is not None


def test_looking_makes_no_file_and_an_unknown_name_is_said(tokens: Tokens):
    assert tokens.all() == []
    assert tokens.find("sat_" + "0" * 16 + "_" + "A" * 43) is None
    with pytest.raises(InputError, match="names no token"):
        tokens.revoke("nobody")
    assert not tokens.path.exists()


@pytest.mark.parametrize("name", ["", " ", "a b", "../x", "a" * 65, "-x", "a\n", "ä"])
def test_a_name_that_could_spoil_a_log_is_refused(tokens: Tokens, name: str):
    with pytest.raises(InputError, match="name"):
        tokens.new(name, "read")


@pytest.mark.parametrize("days", [0, -1, 100_000])
def test_days_have_bounds(tokens: Tokens, days: int):
    with pytest.raises(InputError, match="days"):
        tokens.new("alice", "read", days)


def test_many_at_once_lose_nothing(tokens: Tokens):
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda number: tokens.new(f"n{number}", "read"), range(24)))
    assert len(tokens.all()) == 24
    assert all(tokens.find(token) for token in made)


def test_the_command_prints_a_token_once_and_lists_everything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLURM_AGENT_STATE_DIR", str(tmp_path / "state"))
    assert main(["token", "new", "--name", "alice", "--scope", "write"]) == 0
    token = capsys.readouterr().out.strip()
    assert Tokens(tmp_path / "state").find(token) is not None
    assert main(["token", "list", "--json"]) == 0
    listed = capsys.readouterr().out
    assert '"alice"' in listed
    assert token[4:] not in listed
    assert main(["token", "revoke", "alice"]) == 0
    assert main(["token", "revoke", "alice"]) == 2
    assert main(["token", "list"]) == 0
    assert "There is no token." in capsys.readouterr().out
