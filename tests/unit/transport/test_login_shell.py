import json
import os
import shutil
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import tries

from slurm_agent_tools.transport import login_shell
from slurm_agent_tools.transport.login_shell import FramedOutput

MARK = "0123abcd"
SHELLS = [shell for shell in ("sh", "bash", "dash", "zsh", "tcsh", "fish") if shutil.which(shell)]
SHOW = """import os, sys, json
words = [os.fsencode(word).hex() for word in sys.argv[1:]]
print(json.dumps([words, dict(os.environ), sys.stdin.buffer.read().hex(), os.getcwd()]))"""
NASTY = [
    "", " ", "a b", "!!", "!x", "'", '"', "\\", "\\n", "\n", "a\n\n", "\t\r", "$(id)", "`id`", "$HOME", "*", "~", "-n", "--",
    "%s%d", "é漢", "\udcff\udc81\udc88", "\x01\x7f\x1b[31m", "#", ";|&<>(){}[]^", "=", "a=b", "history ^a^b",
]  # fmt: skip


def through(shell: str, line: bytes, stdin: bytes = b"") -> tuple[int, FramedOutput, bytes]:
    done = subprocess.run([shell, "-c", login_shell.START], input=line + stdin, capture_output=True, timeout=30)
    out = FramedOutput(MARK, 2**20)
    out.feed(done.stdout)
    return done.returncode, out, done.stderr


def line(*words: str, env: dict[str, str] | None = None, cwd: str | None = None, program: str = "") -> bytes:
    search = env or {"PATH": os.environ["PATH"]}
    return login_shell.line(program or sys.executable, ["x", *words], search, cwd, MARK)


@pytest.mark.proves("login-shell-does-not-matter")
@pytest.mark.parametrize("shell", SHELLS)
def test_every_argument_arrives_through_every_login_shell(shell, tmp_path):
    env = {"PATH": os.environ["PATH"], "ODD": "two\nlines ' ! $x", "LC_ALL": "C.UTF-8"}
    folder = tmp_path / "a 'folder'\n!"
    folder.mkdir()
    code, out, errors = through(shell, line("-c", SHOW, *NASTY, env=env, cwd=str(folder)), b"script\n\0\xff")
    words, found, stdin, cwd = json.loads(bytes(out.data))
    assert (code, out.word, errors.strip()) == (0, "ok", f"{MARK} ok".encode())
    assert words == [login_shell.as_bytes(word).hex() for word in NASTY]
    assert (found, stdin, cwd) == (env, b"script\n\0\xff".hex(), str(folder))


@settings(max_examples=tries(30), deadline=None)
@given(st.lists(st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"])), max_size=5))
def test_any_words_arrive(words):
    _, out, _ = through("sh", line("-c", SHOW, *words))
    assert json.loads(bytes(out.data))[0] == [word.encode().hex() for word in words]


def test_the_fixed_line_holds_nothing_that_a_shell_reads_between_single_quotes():
    inner = login_shell.START.split("'")
    assert len(inner) == 3
    assert not set("\\!\n") & set(inner[1])


def test_the_line_itself_is_plain():
    text = line("!", "\n", "\udcff")
    assert text.endswith(b"\n")
    assert set(text[:-1]) <= login_shell._PLAIN | set(b"\\")


@pytest.mark.parametrize("name", ["", "A-B", "1A", "A=B", "A\n"])
def test_a_variable_that_cannot_be_is_an_error(name):
    with pytest.raises(ValueError, match="variable"):
        login_shell.line("x", ["x"], {name: "1"}, None, MARK)


def test_a_nul_is_an_error():
    with pytest.raises(ValueError, match="NUL"):
        line("a\0b")


@pytest.mark.parametrize(("program", "cwd", "word"), [("nothing", None, "missing"), ("/etc/passwd", None, "missing"),
                                                      ("/", None, "missing"), ("true", "/no/such", "folder")])  # fmt: skip
def test_what_cannot_run_is_told_apart_from_what_ran(program, cwd, word):
    code, out, errors = through("sh", line(program=program, cwd=cwd))
    assert (code, out.word, errors.strip()) == (126, word, f"{MARK} {word}".encode())


def test_builtins_and_functions_of_sh_are_no_programs(tmp_path):
    for name in ("cd", "say", "export", "."):
        assert through("sh", line(program=name, env={"PATH": f"{tmp_path}:"}))[1].word == "missing"


def test_half_a_line_runs_nothing(tmp_path):
    whole = line("-c", f"open({str(tmp_path / 'x')!r}, 'w')")
    for size in (0, 10, len(whole) // 2, len(whole) - 1):
        _, out, _ = through("sh", whole[:size])
        assert (out.word, list(tmp_path.iterdir())) == (None, [])


def test_the_environment_of_a_login_is_read_without_bash_functions():
    raw = b"A=1\0BASH_FUNC_module%%=() {  x\n}\0B=two\nlines=\0C=\xff\0"
    assert login_shell.variables(raw) == {"A": "1", "B": "two\nlines=", "C": "\udcff"}


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_what_start_up_files_print_is_left_out(size):
    whole = b"Welcome!\nnot 0123abcd ok\n0123abcd" + b"\n0123abcd ok\nout\n0123abcd no\n"
    framed = FramedOutput(MARK, 100)
    for start in range(0, len(whole), size):
        framed.feed(whole[start : start + size])
    assert (framed.word, bytes(framed.data), framed.full) == ("ok", b"out\n0123abcd no\n", False)


def test_output_is_bounded_and_noise_too():
    framed = FramedOutput(MARK, 10)
    for _ in range(100):
        framed.feed(b"x" * 10_000)
    assert (framed.word, len(framed.noise) <= 256 * 1024, bytes(framed.data)) == (None, True, b"")
    framed.feed(f"\n{MARK} ok\n".encode() + b"y" * 8)
    assert (bytes(framed.data), framed.full) == (b"y" * 8, False)
    framed.feed(b"yyy")
    assert (bytes(framed.data), framed.full) == (b"y" * 10, True)
