"""`slurm-agent-tools campaign` over a Slurm in memory: what a person sees, and the exit codes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.unit.api.campaigns import FILE, CampaignScene, go_on

from slurm_agent_tools.cli import main
from slurm_agent_tools.cli.commands import campaign_command, campaign_feeding
from slurm_agent_tools.devcluster.fake.endings import Ending

MISSING = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'torch'\n"


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CampaignScene:
    made = CampaignScene(tmp_path)
    made.slurm.on_start(lambda _: Ending(after=30, output="val_loss=0.5\n"))
    monkeypatch.setenv("SLURM_AGENT_PROJECT_ROOT", str(made.project))

    class Kept:
        """The scene's toolbox, which outlives a command."""

        registry = made.box.registry

        @classmethod
        def open(cls, _: object) -> Kept:
            return cls()

        async def call(self, *words: Any, **more: Any) -> Any:
            return await made.box.call(*words, **more)

        async def close(self) -> None:
            return None

    monkeypatch.setattr(campaign_command, "Toolbox", Kept)
    return made


def test_a_plan_shows_each_round_and_submits_nothing(scene: CampaignScene, capsys):
    assert main.main(["campaign", "plan", "rates"]) == 0
    shown = capsys.readouterr().out
    assert "at most 0.00 GPU hours" in shown
    assert not scene.sent()


def test_run_stays_to_the_end_and_says_what_happens_beside_its_answer(scene: CampaignScene, capsys):
    assert main.main(["campaign", "run", "rates", "--json"]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["status"] == "finished"
    assert "sent as job" in told.err
    assert main.main(["campaign", "report", "rates"]) == 0
    assert (scene.project / "campaigns/rates.report.html").is_file()
    capsys.readouterr()
    assert main.main(["campaign", "status", "rates", "--json"]) == 0
    table = json.loads(capsys.readouterr().out)["table"]
    assert table[0][:2] == ["trial", "lr"]


LONG = "A larger rate learns faster. " * 5


def test_a_person_reads_every_sentence_whole(scene: CampaignScene, capsys):
    losses = (f"val_loss={0.1 + number / 10:.1f}\n" for number in range(9))
    scene.slurm.on_start(lambda _: Ending(after=30, output=next(losses)))
    assert main.main(["campaign", "run", "rates"]) == 0
    told = capsys.readouterr()
    assert "one run does not tell how much of it is chance." in told.err
    assert "Round 0 was designed: 1 trial." in told.err
    assert "..." not in told.err + told.out
    assert "happened:" not in told.out  # that was told on the way


def test_why_it_was_stopped_is_read_whole(scene: CampaignScene, capsys):
    anyio.run(go_on, scene)
    words = ["campaign", "stop", "rates", "--reason", LONG]
    assert main.main(words) == 0
    assert f"Stopped: {LONG.strip()}" in capsys.readouterr().out


def test_a_document_has_the_sentences_short_but_in_full(scene: CampaignScene, capsys):
    anyio.run(go_on, scene)
    words = ["campaign", "stop", "rates", "--reason", LONG, "--json"]
    assert main.main(words) == 0
    lines = json.loads(capsys.readouterr().out)["happened"]
    assert any(line.endswith("...") for line in lines)
    assert all(len(line) <= 110 for line in lines)


def test_at_a_terminal_a_bar_for_each_stage_is_drawn(scene: CampaignScene, capsys, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert main.main(["campaign", "run", "rates", "--json"]) == 0
    assert "training" in capsys.readouterr().err


def test_a_question_ends_run_with_3_and_its_answer_goes_on(scene: CampaignScene, capsys):
    scene.slurm.on_start(lambda _: Ending(after=5, exit_code=1, errors=MISSING))
    scene.change(FILE.replace("  - {kind: smoke}\n", ""))
    assert main.main(["campaign", "run", "rates", "--json"]) == 3
    told = capsys.readouterr()
    assert "stop" in json.loads(told.out)["question"]["choices"]
    assert "campaign run rates --decide CHOICE, one of leave_out | stop" in told.err
    assert main.main(["campaign", "run", "rates", "--decide", "stop", "--json"]) == 0


def test_a_campaign_that_is_left_says_how_it_goes_on_and_one_that_has_not_begun_cannot_be_stopped(
    scene: CampaignScene, capsys, monkeypatch
):
    async def left(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(campaign_command, "_run", left)
        assert main.main(["campaign", "run", "rates"]) == 4
    assert "campaign run rates goes on with it" in capsys.readouterr().err
    assert main.main(["campaign", "stop", "rates", "--json"]) == 2  # it has not begun


def test_a_toolset_that_is_off_has_no_command(scene: CampaignScene, capsys, monkeypatch: pytest.MonkeyPatch):
    (scene.project / "slurm-agent.toml").write_text('toolsets = ["core"]\n')
    assert main.main(["campaign", "status", "rates", "--json"]) == 2
    assert "campaigns" in json.loads(capsys.readouterr().out)["error"]["message"]


def test_all_campaigns_are_kept_going_to_their_end(scene: CampaignScene, monkeypatch, capsys):
    async def moved(*_: object) -> None:
        scene.slurm.clock.move(30)

    monkeypatch.setattr(campaign_feeding, "until_next", moved)
    scene.write("campaigns/second.yaml", FILE)
    assert main.main(["campaign", "run", "--all", "--json"]) == 0
    told = capsys.readouterr()
    reply = json.loads(told.out)
    assert (reply["status"], [one["name"] for one in reply["campaigns"]]) == ("finished", ["rates", "second"])
    assert "rates: " in told.err


@pytest.mark.parametrize(
    "words", [[], ["rates", "--all"], ["--all", "--decide", "stop"], ["--all", "--window", "soon"]]
)
def test_what_is_not_clear_is_refused(scene: CampaignScene, capsys, words: list[str]):
    assert main.main(["campaign", "run", *words]) == 2
    assert not scene.sent()
    assert capsys.readouterr().err
