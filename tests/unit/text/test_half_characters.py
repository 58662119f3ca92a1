"""A text that was cut in the middle of a character gets an answer that names it, by every way in."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarks import start
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.server.http.test_guard import Scene

from slurm_agent_tools.api import catalogue, serialize
from slurm_agent_tools.cli.main import main
from slurm_agent_tools.errors import InputError
from slurm_agent_tools.text.bounded_documents import WholeLines, half_place, is_half, without_halves

pytestmark = pytest.mark.proves("bad-input-names-the-field")

COMMAND = str(Path(sys.executable).parent / "slurm-agent-tools")
TOOLS = {tool.name: tool for tool in catalogue.TOOLS}
NEEDED = {
    "submit_job": {"script": "a.sh"}, "wait_for_job": {"job_id": "1"}, "cancel_job": {"job_id": "1", "reason": "x"},
    "validate_config": {"config_path": "a.yaml"}, "save_result": {"name": "a", "status": "success"},
    "compare_results": {"baseline": "a", "target": "b"}, "generate_script": {"name": "a", "command": "true"}, "choose_backend": {"script": "a.sh"},
    "get_campaign": {"name": "a"}, "advance_campaign": {"name": "a"},
    "plan_jobs": {"jobs": [{"name": "a"}]},
}  # fmt: skip


@given(st.text(max_size=20))
def test_whole_text_is_left_as_it_is(text: str):
    for written in (json.dumps(text), json.dumps(text, ensure_ascii=False)):
        data = written.encode("utf-8", "surrogatepass")

        assert without_halves(data) == data


@pytest.mark.parametrize("half", ["\\ud83d", "\\uDE00", "\\ud83dx", "\\ud83d\\ud83d", "\\ude00\\ud83d", "a\\\\\\uD800"])
def test_half_a_character_becomes_a_sign_that_is_none(half: str):
    written = f'{{"a": "{half}"}}'.encode()
    mended = without_halves(written)

    assert len(mended) == len(written)
    assert half_place("x", json.loads(mended)) is not None
    assert not any("\ud800" <= sign <= "\udfff" for sign in json.loads(mended)["a"])


@pytest.mark.parametrize("whole", ["\\ud83d\\ude00", "\\\\ud83d", "\\\\\\\\ud83d", "\\u00e4", "ud83d", "\\n\\\\"])
def test_what_only_looks_like_half_a_character_stays(whole: str):
    written = f'{{"a": "{whole}"}}'.encode()

    assert without_halves(written) == written
    assert half_place("x", json.loads(written)) is None


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ("\ud800", "x"), ({"a": ["ok", "\udcff"]}, "x.a[1]"), ({"\udcff": 1}, "x"), ([{"b": {"c": "\ufdd0"}}], "x[0].b.c"),
        ("\uffff", "x"), ("\U0001f600 ä \ufffd", None), ({"a": [1, None, True, 2.5]}, None),
    ],
)  # fmt: skip
def test_the_place_of_half_a_character_is_named(value: object, place: str | None):
    found = half_place("x", value)

    assert (found and found[0]) == place


def fields() -> list[tuple[str, str]]:
    return [
        (tool.name, name)
        for tool in catalogue.TOOLS
        for name, info in tool.ask.model_fields.items()
        if info.annotation not in {int, float, bool}
    ]


@pytest.mark.parametrize(("tool", "field"), fields())
@pytest.mark.parametrize("form", ["\ud83d", ["ok", "\ud83d"], {"a": {"b": "\ud83d"}}], ids=str)
def test_every_argument_with_half_a_character_is_an_error_that_names_it(tool: str, field: str, form: object):
    with pytest.raises(InputError) as caught:
        serialize.parse(TOOLS[tool], NEEDED.get(tool, {}) | {field: form})

    assert caught.value.field.split(".")[0].split("[")[0] == field
    json.dumps(serialize.failure(caught.value, tool), ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("tool", "field"), [("save_result", "metrics"), ("save_result", "config"), ("submit_job", "args")]
)
def test_a_structure_that_comes_as_its_text_is_looked_into(tool: str, field: str):
    text = '["\\ud83d"]' if field == "args" else '{"a": "\\ud83d"}'
    with pytest.raises(InputError, match=rf"^{field}[.\[].*half of a character"):
        serialize.parse(TOOLS[tool], NEEDED[tool] | {field: text})


def test_lines_come_whole_and_as_soon_as_they_are_there():
    read, write = os.pipe()
    with os.fdopen(read, "rb") as ours, os.fdopen(write, "wb", buffering=0) as theirs:
        lines = io.TextIOWrapper(io.BufferedReader(WholeLines(ours)), encoding="utf-8", errors="replace")
        for text in ('{"a": "\\ud800"}\n', '{"b": 1}\n', "{}\n"):
            theirs.write(text.encode())
            assert lines.readline() == text.replace("\\ud800", "\\ufdd0")
        theirs.close()
        assert lines.readline() == ""


def test_a_long_line_is_the_same_behind_the_mend():
    text = '{"a": "' + "ä\\ud83d\\ude00" * 100_000 + '"}\n'

    assert io.TextIOWrapper(io.BufferedReader(WholeLines(io.BytesIO(text.encode()))), encoding="utf-8").read() == text


# --- The ways in --------------------------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "slurm-agent.toml").write_text("")
    return folder


def environment(project: Path) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": str(project.parent), "XDG_STATE_HOME": str(project.parent / "state")}


def test_over_mcp_each_call_with_half_a_character_is_answered(project: Path):
    """The SDK passes such a line by, so that its caller would wait for ever."""
    calls = [
        json.dumps(start.INITIALIZE),
        '{"jsonrpc":"2.0","method":"notifications/initialized"}',
        '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"validate_config","arguments":{"config_path":"a\\ud83d"}}}',
        '{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"save_result","arguments":{"name":"a","status":"success","metrics":{"b":{"\\ude00":1}}}}}',
        '{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"no\\ud83d","arguments":{}}}',
        '{"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"uri":"slurm://\\ud83d"}}',
        '{"jsonrpc":"2.0","id":6,"method":"ping"}',
    ]
    answers = {}
    with subprocess.Popen(
        [COMMAND, "serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(project), cwd=project
    ) as server:
        for call in calls:
            server.stdin.write(f"{call}\n".encode())
            server.stdin.flush()
            if '"id"' in call:
                answer = json.loads(server.stdout.readline())
                answers[answer["id"]] = answer
        server.stdin.close()

    assert sorted(answers) == [1, 2, 3, 4, 5, 6]
    assert answers[2]["result"]["structuredContent"]["error"]["message"].startswith("config_path: ")
    assert answers[3]["result"]["structuredContent"]["error"]["message"].startswith("metrics.b: ")
    assert answers[4]["result"]["isError"] is True
    assert "error" in answers[5]


async def test_over_http_half_a_character_reaches_the_tools_as_a_sign_that_is_none(tmp_path: Path):
    scene = Scene(tmp_path)
    answer = await scene.post(scene.writer, '{"a": "\\ud83d", "b": "\\ud83d\\ude00"}')

    assert answer.text == 'w write {"a": "\\ufdd0", "b": "\\ud83d\\ude00"}'


@pytest.mark.parametrize(
    "words",
    [
        ["validate-config", "--config-path", b"a\xff.yaml"], ["save-result", b"a\xff", "--status", "success"],
        ["submit-job", "a.sh", "--", b"\xff"], ["policy", "check", b"\xff.sh"], ["approve", b"\xff"], ["report", b"\xff"],
        ["init", b"\xff"], ["doctor", "--cluster", b"\xff"], ["history", "--query", b"\xff"], ["get-status", b"\xff"],
        [b"\xff"], ["token", "revoke", b"\xff"],
    ],
    ids=repr,
)  # fmt: skip
def test_bytes_that_are_no_text_are_wrong_input_of_every_command(
    project: Path, words: list[str | bytes], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    for name, value in environment(project).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(project)

    assert main([os.fsdecode(word) for word in words]) == 2
    assert "invalid_input" in capfd.readouterr().err
    assert [path.name for path in project.iterdir()] == ["slurm-agent.toml"]


def test_bytes_that_are_no_text_are_wrong_input_of_a_process(project: Path):
    done = subprocess.run([COMMAND, "report", b"\xff"], env=environment(project), cwd=project, capture_output=True)

    assert done.returncode == 2, done.stderr
    assert b"invalid_input" in done.stderr


@pytest.mark.parametrize(
    "value",
    [[{}] * 1_300_000, {"a": [[0]] * 200_000}, {str(n): n for n in range(100_001)}],
    ids=["list", "inner", "wide"],
)
def test_what_is_too_much_to_look_through_is_said_to_be_that(value: object):
    with pytest.raises(InputError, match=r"^metrics.*(is too long|holds more than 100000 values)"):
        serialize.parse(TOOLS["save_result"], NEEDED["save_result"] | {"metrics": value})


def test_a_name_of_another_alphabet_is_whole():
    assert not is_half("größer-模型-😀")
