"""The command passkey: a person at a terminal enrols what a browser made; a pipe enrols nothing."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.unit.authenticators import Authenticator
from tests.unit.cli.person import Person

from slurm_agent_tools.cli import main
from slurm_agent_tools.policy import policy_files
from slurm_agent_tools.server.web import dashboard_server, passkey_enrolment
from slurm_agent_tools.store import enrolled_passkeys


@pytest.fixture
def home(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    monkeypatch.setenv("SLURM_AGENT_PROJECT_ROOT", str(tmp_path))
    monkeypatch.setattr(policy_files, "SITE", tmp_path / "site.yaml")
    return tmp_path


@pytest.fixture
def person(monkeypatch) -> Iterator[Person]:
    made, real = Person(monkeypatch), os.open
    monkeypatch.setattr(
        os, "open", lambda path, *more, **names: real(made.name if path == "/dev/tty" else path, *more, **names)
    )
    yield made
    made.leaves()


@pytest.fixture
def made(monkeypatch) -> Authenticator:
    """What the browser makes, whoever asks."""
    key = Authenticator()

    async def make(_, name: str, origin: str, say):
        say("http://localhost:1/enrol/x")
        return key.allowed(name, origin)

    monkeypatch.setattr(dashboard_server, "make_passkey", make)
    return key


def test_a_person_enrols_what_the_browser_made_after_comparing_it(home, person, made, capsys):
    person.types("yes")
    assert main.main(["passkey", "add", "ada"]) == 0
    assert enrolled_passkeys.enrolled() == (made.allowed().line,)
    assert enrolled_passkeys.place().stat().st_mode & 0o777 == 0o600
    assert passkey_enrolment.fingerprint(made.allowed()) in person.sees()
    assert main.main(["passkey", "list"]) == 0
    assert "ada  http://localhost  enrolled\n" in capsys.readouterr().out


def test_anything_else_enrols_nothing(home, person, made, capsys):
    person.types("y")
    assert main.main(["passkey", "add", "ada"]) == 3
    assert enrolled_passkeys.enrolled() == ()
    assert capsys.readouterr().out == "Nothing was changed.\n"


def test_a_pipe_is_no_person(home, made, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdin", io.StringIO("yes\n"))
    assert main.main(["passkey", "add", "ada"]) == 1
    assert "enrolling a passkey needs a person at a terminal, and this is none" in capsys.readouterr().err
    assert enrolled_passkeys.enrolled() == ()


@pytest.mark.parametrize("words", [["a b"], ["ada", "--origin", "http://127.0.0.1"], ["ada", "--origin", "https://x"]])
def test_a_name_or_an_origin_that_no_browser_takes_is_refused(home, person, made, words):
    person.sits()
    assert main.main(["passkey", "add", *words]) == 2


def test_keys_of_a_name_are_removed_and_the_others_stay(home, capsys):
    ada, grace = Authenticator().allowed(), Authenticator(b"other").allowed("grace")
    for key in (ada, grace, ada):
        enrolled_passkeys.enrol(key)
    assert main.main(["passkey", "remove", "ada"]) == 0
    assert enrolled_passkeys.enrolled() == (grace.line,)
    assert main.main(["passkey", "remove", "ada"]) == 2


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="a site's file is root's")
def test_where_a_site_decides_the_line_is_for_its_administrator(home, person, made, capsys):
    (home / "site.yaml").write_text("version: site\n")
    person.sits()
    assert main.main(["passkey", "add", "ada"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == made.allowed().line
    assert enrolled_passkeys.enrolled() == ()
    enrolled_passkeys.enrol(made.allowed())
    assert main.main(["passkey", "list"]) == 0
    assert "does not count: the site's policy decides" in capsys.readouterr().out


def test_a_file_that_cannot_be_read_is_an_error_not_an_empty_list(home):
    enrolled_passkeys.enrol(Authenticator().allowed())
    enrolled_passkeys.place().write_text("ada\n")
    assert main.main(["passkey", "list"]) == 1
