"""Attacks by files that somebody else wrote: each of them went through before, or kept the guard for minutes."""

import ast
import json
import os
import re
import socket
from itertools import count
from pathlib import Path

import pytest
from tests.unit.counting import counted
from tests.watchdog import ends

import slurm_agent_tools
from slurm_agent_tools import settings
from slurm_agent_tools.cli import main
from slurm_agent_tools.errors import ConfigError, InputError, StorageError
from slurm_agent_tools.policy import loading, policy_files
from slurm_agent_tools.programs.program import cost
from slurm_agent_tools.programs.task_files import read_tasks
from slurm_agent_tools.programs.workflow_files import read_makefile, read_notebook
from slurm_agent_tools.scripts.configs.checks.schema_check import checked_apart
from slurm_agent_tools.scripts.configs.experiment_config import parse_config
from slurm_agent_tools.scripts.reading_state import for_bash
from slurm_agent_tools.store import decision_log

SOURCE = Path(slurm_agent_tools.__file__).parent
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----"
STEPS = 2_500_000

MANY_PARTS = ".".join("a" * 20_000) + " = 1\n"
BASE_60 = "a: 1" + ":1" * 100_000 + "\n"
ALIASES = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{','.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(8)
)
MERGES = "a: &a {k: 1}\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} {{<<: [{','.join([f'*{chr(97 + n)}'] * 9)}]}}\n" for n in range(7)
)
ONE_PLACE = "\n".join(f"{number * (2**61 - 1)}: 1" for number in range(1, 20_000))
DEEP = "[" * 100_000
LONG_PLACES = (
    '{"' + '": {"'.join(letter * 900 for letter in "abcdefghijklmnopqrst") + '": [' + "1," * 5000 + "1]" + "}" * 20
)
BLANKS = 'a = """\n[a' + " " * 20_000 + '\n"""\n'


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project beside a private key."""
    folder = tmp_path / "project"
    (folder / "policies").mkdir(parents=True)
    (tmp_path / "id_rsa").write_text(KEY + "\n")
    monkeypatch.setenv("SLURM_AGENT_PROJECT_ROOT", str(folder))
    monkeypatch.setattr(policy_files, "SITE", tmp_path / "no-site.yaml")
    return folder


def bounded(work) -> object:
    """What it answers, in a bounded number of steps."""
    found, steps = counted(work)
    assert steps < STEPS, steps
    return found


# --- texts that cost a parser gigabytes or minutes ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("suffix", "text", "said"),
    [
        (".toml", MANY_PARTS, "32 parts"), (".yaml", BASE_60, "more than 1000 characters"),
        (".yaml", ALIASES, "more than 50000 values"), (".yaml", MERGES, "more than 50000 values"),
        (".yaml", ONE_PLACE, "key is a number"), (".yaml", DEEP, "deeper than 50"), (".json", DEEP, "deeper than 50"),
        (".toml", "a = " + DEEP, "deeper than 50"), (".json", LONG_PLACES, "more than 500 characters"),
        (".yaml", LONG_PLACES, "more than 500 characters"), (".yaml", 'a: "\\uD83D"', "line 1"),
        (".json", '{"a": "\\uD83D"}', "half of a character"), (".yaml", "a: !!bool soon", "line 1"),
        (".yaml", "a: !!timestamp soon", "line 1"), (".yaml", f"%TAG !a! {'x' * 9000}\n---\na: !a!b c", "the tag x+ is not read"),
    ],
    ids=count(),
)  # fmt: skip
def test_a_configuration_that_would_unfold_is_an_input_error(suffix, text, said):
    def work() -> str:
        with pytest.raises(InputError, match=said) as caught:
            parse_config(text.encode(), suffix, "configs/a")
        return caught.value.message

    assert len(bounded(work)) < 1000


def test_lines_of_a_text_in_a_configuration_are_searched_once():
    with ends(5):
        assert parse_config(BLANKS.encode(), ".toml", "a").lines == {"a": 1}


def test_a_schema_that_would_unfold_is_told_as_unusable():
    found = bounded(lambda: checked_apart(".json", b"{}", DEEP.encode()))
    assert "deeper than 50" in found["problem"]


@pytest.mark.parametrize(
    "text",
    ["a: " + BASE_60[3:], DEEP, "- " * 50_000, "{" * 50_000, "? " * 50_000, "limits: " + "[" * 300],
    ids=range(6),
)
def test_a_policy_that_would_unfold_is_told_with_its_line(text):
    def work() -> str:
        with pytest.raises(ConfigError, match="line 1") as caught:
            loading.read("policies/a.yaml", text.encode())
        return caught.value.message

    assert "policies/a.yaml" in bounded(work)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("pixi",), MANY_PARTS), (("poe", "x"), "[tool.poe.tasks]\n" + MANY_PARTS), (("task",), BASE_60),
        (("dvc", "repro"), "stages:\n  a: {cmd: [1" + ":1" * 50_000 + "]}"), (("task",), MERGES), (("npm",), DEEP),
        (("task",), "tasks: !!timestamp x"), (("dvc",), "stages: !!bool x"), (("task",), ONE_PLACE),
    ],
    ids=count(),
)  # fmt: skip
def test_a_file_of_tasks_that_would_unfold_is_text_that_cannot_be_analysed(words, text):
    found = bounded(lambda: read_tasks(text, words, "pixi.toml"))
    assert [finding[0] for finding in found.findings] == ["opaque-code"]


def test_a_notebook_that_would_unfold_is_text_that_cannot_be_analysed():
    assert bounded(lambda: read_notebook(DEEP)).findings


@pytest.mark.parametrize("text", [MANY_PARTS, "a = " + DEEP, "a = [" + "1," * 200_000, "#" * 300_000], ids=range(4))
def test_settings_that_would_unfold_are_told_with_file_and_mend(project, text):
    (project / "slurm-agent.toml").write_text(text)

    def work() -> ConfigError:
        with pytest.raises(ConfigError, match="cannot be read") as caught:
            settings.load()
        return caught.value

    found = bounded(work)
    assert found.value == str(project / "slurm-agent.toml")
    assert found.hint


def test_a_client_file_that_is_nested_deeply_does_not_end_init(project, capsys):
    (project / ".mcp.json").write_text(DEEP)
    assert main.main(["init", str(project)]) == 0
    assert ".mcp.json is not plain JSON" in capsys.readouterr().out


def test_cases_of_a_policy_that_would_unfold_are_told(project, capsys):
    (project / "cases.yaml").write_text(BASE_60)
    assert bounded(lambda: main.main(["policy", "test", str(project / "cases.yaml")])) == 2
    assert "more than 1000 characters" in capsys.readouterr().err


@pytest.mark.parametrize("line", [" " * 2**20, ":" * 2**20, "a" + " " * 2**20 + ":", " :" * 2**19], ids=range(4))
def test_a_makefile_of_one_sign_is_looked_at_once(line):
    with ends():
        assert [kind for kind, *_ in read_makefile(line, ()).findings] == ["opaque-code"]  # too long to be read
        assert len(read_makefile(f"{line}\nCUDA_VISIBLE_DEVICES   ::= 1\n", ()).findings) == 2


def test_empty_lines_of_a_script_are_looked_at_once():
    with ends():
        assert cost(b"x=1;" * 2000 + b"\n " * 2**19, "shell") < cost(b"x=1;" * 2000 + b"+\n \n " * 1000, "shell")


def test_brackets_without_a_word_are_looked_at_once_in_a_script():
    text = b"<<- \\ : [ \n" * 80_000
    with ends():
        assert for_bash(text) == text
        assert for_bash(b"M=([/a/b]=1)") == b"M=([_a_b]=1)"


def test_python_of_tasks_that_is_too_much_for_pythons_own_parser_cannot_be_analysed():
    text = "rule a:\n  input: 'x'\n" + "x = " + "(" * 5000 + "a " * 5000 + "\n"
    assert [text.language for text in read_tasks(text, ("snakemake",), "Snakefile").texts] == ["other"]
    for words in (("inv", "a"), ("doit",)):
        assert read_tasks(text, words, "tasks.py").findings
        assert read_tasks("x = 1\n" * 100_000, words, "tasks.py").findings


@pytest.mark.parametrize(
    "text", ["{0}: 1", "limits: {{gpus: {{{0}: 1}}}}", "rules: {{{0}: deny}}", "version: [{0}]"], ids=range(4)
)
def test_what_is_quoted_of_a_policy_is_short(project, text):
    (project / "policies" / "a.yaml").write_text(text.format("k" * 900 + ".x" * 60))
    (project / "policies" / "b.yaml").write_text(
        "rules: {" + ", ".join(f"r{number}: deny" for number in range(5000)) + "}"
    )
    for name in ("a.yaml", "b.yaml"):
        with pytest.raises(ConfigError) as caught:
            policy_files.load_for(project, None)
        assert len(caught.value.message) + len(caught.value.hint) < 4000
        (project / "policies" / name).unlink()


# --- links out of the project -------------------------------------------------------------------------------------------


@pytest.mark.proves("paths-stay-inside")
@pytest.mark.parametrize("target", ["../id_rsa", "{}/id_rsa"])
def test_settings_that_are_a_link_out_of_the_project_are_not_read(project, target):
    (project / "slurm-agent.toml").symlink_to(target.format(project.parent))
    with pytest.raises(ConfigError, match="is a link that leads out of") as caught:
        settings.load()
    assert "id_rsa" not in caught.value.message
    assert "BEGIN" not in caught.value.message + caught.value.hint


@pytest.mark.proves("paths-stay-inside")
@pytest.mark.parametrize("name", ["policies/a.yaml", "mine.yaml"])
def test_a_policy_that_is_a_link_out_of_the_project_is_not_read_and_not_quoted(project, name):
    (project.parent / "secret.yaml").write_text("password: hunter2-of-ada\n")
    (project / name).symlink_to("../../secret.yaml" if "/" in name else "../secret.yaml")
    with pytest.raises(ConfigError, match="is a link that leads out of") as caught:
        policy_files.load_for(project, Path(name))
    assert "hunter2" not in caught.value.message
    assert "secret.yaml" not in caught.value.message


@pytest.mark.proves("paths-stay-inside")
def test_a_folder_of_policies_that_is_a_link_out_of_the_project_is_not_read(project):
    (project / "policies").rmdir()
    (project.parent / "elsewhere").mkdir()
    (project.parent / "elsewhere" / "a.yaml").write_text("limits: {}\n")
    (project / "policies").symlink_to("../elsewhere")
    with pytest.raises(ConfigError, match="is a link that leads out of"):
        policy_files.load_for(project, None)


def test_a_link_inside_of_the_project_and_a_policy_that_people_name_are_read(project):
    (project / "shared.yaml").write_text("limits: {max_concurrent_jobs: 3}\n")
    (project / "policies" / "a.yaml").symlink_to("../shared.yaml")
    assert policy_files.load_for(project, None).policy.limits.max_concurrent_jobs == 3
    (project.parent / "group.yaml").write_text("limits: {max_concurrent_jobs: 2}\n")
    assert policy_files.load_for(project, project.parent / "group.yaml").policy.limits.max_concurrent_jobs == 2


def test_more_policies_than_anybody_has_are_told(project):
    for number in range(70):
        (project / "policies" / f"{number}.yaml").touch()
    with pytest.raises(ConfigError, match="more than 64 files"):
        policy_files.load_for(project, None)


# --- what is no file ----------------------------------------------------------------------------------------------------


def put(path: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(str(path))
    elif kind == "huge":
        with path.open("wb") as file:
            file.truncate(2**40)
    else:
        path.symlink_to(kind)


KINDS = pytest.mark.parametrize("kind", ["pipe", "socket", "huge", "/dev/zero", "/dev/random", "/proc/self/maps"])


@KINDS
def test_settings_that_are_no_file_are_told_without_waiting(project, kind):
    put(project / "slurm-agent.toml", kind)
    with ends(), pytest.raises(ConfigError, match=r"cannot be read"):
        settings.load()


@KINDS
def test_a_policy_that_is_no_file_is_told_without_waiting(project, kind):
    put(project / "policies" / "a.yaml", kind)
    with ends(), pytest.raises(ConfigError, match=r"cannot be read"):
        policy_files.load_for(project, None)


@KINDS
def test_a_trusted_policy_that_became_no_file_counts_for_nothing(project, kind):
    path = project.parent / "mine.yaml"
    path.write_text("limits: {}\n")
    policy_files.trust(path, path.read_bytes())
    path.unlink()
    put(path, kind)
    with ends():
        assert any("cannot be read" in note for note in policy_files.load_for(project, None).notes)


@KINDS
def test_a_record_of_trust_that_is_no_file_is_told_without_waiting(project, kind):
    policy_files.trust_record().parent.mkdir(parents=True)
    put(policy_files.trust_record(), kind)
    with ends(), pytest.raises(ConfigError, match="no" if kind == "none" else "record of trust"):
        policy_files.load_for(project, None)


@KINDS
def test_files_that_a_command_names_are_told_without_waiting(project, kind, capsys):
    put(project / "a.sh", kind)
    with ends():
        assert main.main(["policy", "check", "--json", str(project / "a.sh")]) == 3
        verdict = json.loads(capsys.readouterr().out)
        assert "script-exists" in [rule["id"] for rule in verdict["rules"] if rule["outcome"] == "deny"]
        assert main.main(["policy", "test", str(project / "a.sh")]) == 2
        assert main.main(["save_result", "--name", "a", "--status", "success", "--metrics", str(project / "a.sh")]) == 2


@KINDS
def test_a_client_file_that_is_no_file_does_not_keep_init(project, kind, capsys):
    put(project / ".mcp.json", kind)
    with ends():
        assert main.main(["init", str(project)]) == 0
    assert ".mcp.json is not plain JSON" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["pipe", "/dev/zero"])
def test_a_log_of_decisions_that_became_no_file_is_told_without_waiting(tmp_path, kind):
    put(tmp_path / "decisions.jsonl", kind)
    for read in (lambda path: list(decision_log.read(path)), lambda path: decision_log.walk(path, None)):
        with ends(), pytest.raises(StorageError):
            read(tmp_path / "decisions.jsonl")


def test_a_line_of_the_log_that_is_nested_deeply_is_a_damaged_one(tmp_path):
    (tmp_path / "decisions.jsonl").write_text(DEEP + "\n")
    assert [line.entry for line in decision_log.read(tmp_path / "decisions.jsonl")] == [None]


# --- one reader -----------------------------------------------------------------------------------------------------------

OWN = {  # where else files are opened, and why what is in them is bounded, or nobody else's
    "text/safe_open.py": "is the reader, makes files, and opens folders",
    "transport/local.py": "reads parts of what safe_open opened; the others write what it made",
    "transport/ssh/sftp_files.py": "files of a login node, by SFTP, with a time limit",
    "transport/process.py": "pipes that it made, in a private folder of its own",
    "backends/sync_sides.py": "hashes piece by piece what safe_open opened",
    "store/decision_log.py": "our own log, in our private folder; made by append",
    "store/ledger_location.py": "/proc/self/mounts, which the kernel makes up",
    "models/allowed_signers.py": "/etc/localtime, which is root's",
    "policy/policy_files.py": "writes the record of trust",
    "server/web/dashboard_app.py": "listed files of the package",
    "policy/loading.py": "the policy in the package", "policy/for_others.py": "a template in the package", "api/schemas.py": "the schemas in the package",
    "diagnosis/signatures.py": "the signatures in the package", "cli/commands/init_command.py": "assets in the package",
    "cli/commands/policy_show.py": "writes a new file", "cli/commands/backends_command.py": "writes a new file",
    "backends/page_templates.py": "the templates in the package", "settings/workstation_place.py": "our own record", "settings/devcluster_place.py": "/proc, our own record", "cli/terminal.py": "the terminal", "store/enrolled_passkeys.py": "writes a draft",
    "cli/commands/plan_command.py": "writes a new file", "cli/commands/watch_command.py": "writes a draft",
    "cli/commands/simulate_command.py": "writes a new file",
    "cli/main.py": "/dev/null", "insights/memory_server.py": "/dev/null",
    "store/tokens.py": "makes the empty database", "transport/private_files.py": "a lock, of which nothing is read",
    "slurm/answer_cache.py": "writes a draft", "store/plan_files.py": "writes a draft",
    "store/ticket_folder.py": "writes a draft", "transport/site_files.py": "writes drafts as root, and opens folders",
}  # fmt: skip
FOR_TESTS = ("devcluster/", "cli/commands/demo_")
"""They read what they wrote themselves, in a folder of their own, and files of the machine."""


NO_FILES = {"read_text", "Toolbox.open", "ScopedToolbox.open", "ShellSession.open", "self.logs.open"}
"""Names that are called alike: of a log that was read, of a toolbox, of a session."""


BY_PATH = {"open", "read_text", "read_bytes", "fdopen"}


def calls(path: Path, *names: str) -> list[ast.Call]:
    """Calls of what has one of these names, behind the last dot."""
    text = path.read_text()
    nodes = ast.walk(ast.parse(text)) if any(f"{name}(" in text for name in names) else ()
    found = (node for node in nodes if isinstance(node, ast.Call))
    return [call for call in found if getattr(call.func, "attr", getattr(call.func, "id", "")) in names]


def opened(path: Path) -> set[str]:
    """Names of calls that open or read a file by its path."""
    found = {ast.unparse(call.func) for call in calls(path, *BY_PATH, "load", "loads", "safe_load")}
    readers = {"tomllib.load", "tomllib.loads", "yaml.load", "yaml.safe_load", "json.load"}
    return {name for name in found if name.rpartition(".")[2] in BY_PATH or name in readers} - NO_FILES


def test_files_are_opened_by_one_reader_and_where_a_reason_stands_here():
    found = {
        str(path.relative_to(SOURCE)): names
        for path in sorted(SOURCE.rglob("*.py"))
        if not path.relative_to(SOURCE).as_posix().startswith(FOR_TESTS) and (names := opened(path))
    }
    assert found.pop("text/bounded_documents.py") == {"tomllib.loads"}
    assert set(found) == set(OWN)


def test_every_read_of_a_file_where_jobs_run_has_a_size():
    bare = []
    for path in sorted(SOURCE.rglob("*.py")):
        of_files = (call for call in calls(path, "read") if re.search(r"(?:^|\.)files\.read$", ast.unparse(call.func)))
        bare += [(path.name, call.lineno) for call in of_files if "size" not in {word.arg for word in call.keywords}]
    assert bare == []
