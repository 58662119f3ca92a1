"""What completes a line in bash, zsh and fish, in the shells themselves."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from slurm_agent_tools.cli import main
from slurm_agent_tools.cli.commands import command_tree

LINES = [
    (["pol"], "policy"),
    (["policy", "ch"], "check"),
    (["policy", "check", "--js"], "--json"),
    (["submit_job", "--time-l"], "--time-limit"),
    (["get_status", "--sections", "g"], "gpu"),
    (["devcluster", "up", "--s"], "--sshd"),
    (["completion", "fi"], "fish"),
]

BASH = """source "$1"; shift
COMP_WORDS=(slurm-agent-tools "$@"); COMP_CWORD=$#; COMPREPLY=()
_slurm_agent_tools; printf '%s\\n' "${COMPREPLY[@]}"
"""

# A terminal of its own, as a person has: the line is typed, TAB is pressed, then a key that shows the line whole.
ZSH = """zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "fpath=($1 \\$fpath); autoload -U compinit; compinit -u -D; bindkey '^I' complete-word"
zpty -w shell "show() { print -r -- '<'\\$BUFFER'>' }; zle -N show; bindkey '^X' show; echo READ''Y"
zpty -r shell shown '*READY*'
zpty -n -w shell "slurm-agent-tools $2"$'\\t\\x18'
zpty -r shell shown '*<*>*'
print -r -- "$shown"
"""


@pytest.fixture
def script(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Path]:
    """The script for each shell, by the name that it has where shells look for it."""
    names = {"bash": "slurm-agent-tools", "zsh": "_slurm-agent-tools", "fish": "slurm-agent-tools.fish"}
    for shell, name in names.items():
        assert main.main(["completion", shell]) == 0
        (tmp_path / name).write_text(capsys.readouterr().out)
    return {shell: tmp_path / name for shell, name in names.items()}


def printed(*argv: str | Path) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rror" not in done.stderr
    return done.stdout


def needs(shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")


def test_the_tree_has_every_command_with_a_line_about_it() -> None:
    found = command_tree.tree()

    assert {one.path[0] for one in found.inner} >= {*main.COMMANDS, "submit_job", "get_status"}
    assert [one.path for one in found.all() if one.path and not one.about] == []


@pytest.mark.parametrize(("words", "expected"), LINES)
def test_bash_completes(words: list[str], expected: str, script: dict[str, Path]) -> None:
    assert expected in printed("bash", "-c", BASH, "bash", script["bash"], *words).splitlines()


def test_bash_offers_nothing_that_does_not_begin_so(script: dict[str, Path]) -> None:
    assert printed("bash", "-c", BASH, "bash", script["bash"], "policy", "--zzz").split() == []


@pytest.mark.parametrize(("words", "expected"), LINES)
def test_fish_completes(words: list[str], expected: str, script: dict[str, Path]) -> None:
    needs("fish")
    line = " ".join(["slurm-agent-tools", *words])
    said = printed("fish", "--no-config", "-c", f"source {script['fish']}; complete -C '{line}'")

    assert expected in [offer.partition("\t")[0] for offer in said.splitlines()]


@pytest.mark.parametrize(("words", "expected"), LINES[:5])
def test_zsh_completes(words: list[str], expected: str, script: dict[str, Path], tmp_path: Path) -> None:
    needs("zsh")
    driver = tmp_path / "driver.zsh"
    driver.write_text(ZSH)

    shown = printed("zsh", "-f", driver, script["zsh"].parent, " ".join(words))
    assert f"<slurm-agent-tools {' '.join([*words[:-1], expected])}" in shown
