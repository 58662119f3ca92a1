"""What a person at a terminal sees: tables and colours, and of what a job wrote nothing but the text."""

from __future__ import annotations

import io
import re
import sys

import pytest

from slurm_agent_tools.api import drawing, printing, render
from slurm_agent_tools.api.render import Line

JOBS = [
    {"job_id": "7", "name": "[red]train[/red] :smile:", "state": "RUNNING", "reason": None},
    {"job_id": "8", "name": "\x1b[31mx\x9b2J\u202e [link=http://a]b[/link]", "state": "PENDING", "reason": "Priority"},
]
BODY = {"status": "ok", "summary": "Two [bold]jobs[/bold].", "slurm": {"active_jobs": 2, "jobs": JOBS}, "alerts": []}
COLOUR = re.compile("\x1b\\[[0-9;]*m")


class Screen(io.TextIOWrapper):
    """A terminal as far as a program sees."""

    def __init__(self, encoding: str = "utf-8") -> None:
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, encoding=encoding, newline="\n")

    def isatty(self) -> bool:
        return True

    def text(self) -> str:
        self.flush()
        return self.bytes.getvalue().decode()


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    return Screen()


def test_a_list_of_jobs_is_a_table_with_a_column_for_what_is_known(screen: Screen) -> None:
    drawing.draw(render.pieces(BODY), screen)
    rows = [line.split() for line in COLOUR.sub("", screen.text()).splitlines()]
    assert ["job_id", "name", "state", "reason"] in rows
    assert ["7", "[red]train[/red]", ":smile:", "RUNNING"] in rows


@pytest.mark.proves("text-is-data")
def test_what_a_job_wrote_is_no_markup_and_steers_nothing(screen: Screen) -> None:
    drawing.draw(render.pieces(BODY), screen)
    shown = COLOUR.sub("", screen.text())
    for text in (
        "[red]train[/red] :smile:",
        r"\x1b[31mx\x9b2J\u202e [link=http://a]b[/link]",
        "Two [bold]jobs[/bold].",
    ):
        assert text in shown
    assert not set("\x1b\x9b\u202e") & set(shown)
    assert "\x1b[31m" not in screen.text()


def test_a_line_longer_than_the_terminal_stays_one_line(screen: Screen) -> None:
    drawing.draw([Line("x" * 500)], screen)
    assert screen.text() == "x" * 500 + "\n"


def test_a_refusal_is_red_and_a_person_who_wants_no_colours_gets_none(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawing.draw([Line("verdict: deny", "deny")], screen)
    assert screen.text() == "\x1b[31mverdict: deny\x1b[0m\n"
    monkeypatch.setenv("NO_COLOR", "1")
    plain = Screen()
    drawing.draw([Line("verdict: deny", "deny")], plain)
    assert plain.text() == "verdict: deny\n"


def test_what_the_terminal_cannot_encode_is_escaped(screen: Screen) -> None:
    narrow = Screen("ascii")
    drawing.draw([Line("größe"), render.table(("größe",), [("ü",)], ())], narrow)
    assert narrow.text().count(r"gr\xf6\xdfe") == 2
    assert r"\xfc" in narrow.text()


def test_where_there_is_no_terminal_the_same_pieces_are_plain_lines(
    screen: Screen, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    printing.show(render.pieces(BODY))
    told = capsys.readouterr().out
    assert told.splitlines()[:3] == ["ok: Two [bold]jobs[/bold].", "slurm:", "  active_jobs: 2"]
    assert "    - job_id=7  name=[red]train[/red] :smile:  state=RUNNING" in told
    monkeypatch.setattr(sys, "stdout", screen)
    printing.show(render.pieces(BODY))
    assert "job_id=7" not in screen.text()
