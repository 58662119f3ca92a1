"""The tool that puts faults in: each kind, what is left alone, and that an unnoticed one is never taken for noticed."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture
def sites(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    yield importlib.import_module("fault_sites")
    sys.modules.pop("fault_sites", None)


@pytest.fixture
def faults(sites):
    yield importlib.import_module("faults")
    sys.modules.pop("faults", None)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = a < b", {"x = a <= b"}),
        ("x = a == 'b'", {"x = a != 'b'", "x = a == 'b-'"}),
        ("x = a in ('b', 'c')", {"x = a not in ('b', 'c')", "x = a in ('b-', 'c')"}),
        ("x = a is None", {"x = a is not None"}),
        ("x = a and b", {"x = a or b"}),
        ("x = not a", {"x = a"}),
        ("x = a + b", {"x = a - b"}),
        ("x = 3", {"x = 4"}),
        ("x = True", {"x = False"}),
        ("x = f(a, b)", {"x = f(b)", "x = f(a)", "x = f(b, a)"}),
        ("x = f(a, b=c)", {"x = f(b=c)", "x = f(a)"}),
        ("x = min(a, b)", {"x = min(a)", "x = min(b)"}),
        ("x = a.split(b, 1)", {"x = a.split(b)", "x = a.split(1)", "x = a.split(1, b)"}),
        ("x = [a for a in b if a]", {"x = [a for a in b if not a]"}),
        ("def f():\n    return a", {"def f():\n    return None"}),
        ("if a:\n    b", {"if not a:\n    b", "if a:\n    pass"}),
        ("if a:\n    b\nelse:\n    c", {"if not a:\n    b\nelse:\n    c", "if a:\n    pass\nelse:\n    c", "if a:\n    b\nelse:\n    pass"}),
        ("match a:\n    case 'b':\n        c", {"match a:\n    case 'b-':\n        c"}),
    ],
)  # fmt: skip
def test_every_kind_of_fault_is_put_where_it_can_be(sites, before, after):
    found = {sites.faulty(before, number) for number in range(len(sites.sites(ast.parse(before))))}
    assert found == after


@pytest.mark.parametrize(
    "text",
    [
        '"""A text."""',
        "x: Literal[3]",
        "def f(a: list[3]) -> g(4, b):\n    pass",
        "@dataclass(frozen=True)\nclass A:\n    pass",
        "if TYPE_CHECKING:\n    x = 3",
        "_log.info('done', seconds=3)",
        "Example('two', gpus=2)",
        "f('a text for people')",
        "_THREE = 3\n\ndef _two():\n    return (2, _THREE)\n\nrule((Example('two', _two()),))",
        "class Example:\n    counted = True",
        "a.split(' ', 1)[x]",
        "a.split(' ', maxsplit=1)[x]",
    ],
)
def test_what_changes_no_behaviour_is_left_alone(sites, text):
    assert sites.sites(ast.parse(text)) == []


def test_what_not_only_examples_use_is_not_left_alone(sites):
    assert sites.sites(ast.parse("_TWO = 2\nf(Example('two', _TWO), _TWO)")) != []


def test_a_seed_draws_the_same_again_and_another_seed_something_else(sites):
    text = "\n".join(f"x{number} = {number}" for number in range(50))
    drawn = [sites.draw([("a.py", text)], 5, seed) for seed in ("1", "1", "2")]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(drawn[0])) == 5


MARKED = '''"""About."""

from __future__ import annotations

LIMIT = 3

def f(a):
    """About f."""
    if a > LIMIT:
        return 1
    elif a:
        return 2
'''


def test_a_statement_is_marked_as_reached_also_where_it_is_a_branch_or_a_constant(sites):
    numbers = {site.change: number for number, site in enumerate(sites.sites(ast.parse(MARKED)))}
    marked = sites.marked(
        MARKED, {7: numbers["3", "4"], 8: numbers["return 2", "return None"], 9: numbers["a", "not a"]}
    )
    body = [line.strip() for line in marked.splitlines()]
    assert (
        body.index("from fault_marks import reached as _fault_reached")
        == body.index("from __future__ import annotations") + 1
    )
    assert body.index("_fault_reached(7)") == body.index('"""About f."""') + 1
    assert body.index("_fault_reached(8)") == body.index("return 2") - 1
    assert body.index("_fault_reached(9)") == body.index("if a:") - 1


PROJECT = {
    "src/slurm_agent_tools/__init__.py": "",
    "src/slurm_agent_tools/policy/__init__.py": "",
    "src/slurm_agent_tools/policy/sums.py": "def more(number):\n    return number + 1\n\n\ndef less(number):\n    return number - 1\n\n\ndef until(number):\n    while number > 0:\n        number = number - 1\n    return number\n",
    "tests/unit/policy/test_sums.py": "from slurm_agent_tools.policy.sums import less, more\n\n\ndef test_more():\n    assert more(2) == 3\n\n\ndef test_less():\n    less(2)\n\n\ndef test_red():\n    assert more(2) == 4\n",
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = ['--import-mode=importlib']\n",
}  # fmt: skip


@pytest.fixture
def project(faults, tmp_path, monkeypatch):
    """A repository with one module: the copy of it that the tests run in."""
    files = {**PROJECT, "scripts/fault_marks.py": (SCRIPTS / "fault_marks.py").read_text()}
    for name, text in files.items():
        (tmp_path / "root" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "root" / name).write_text(text)
    monkeypatch.setattr(faults, "ROOT", tmp_path / "root")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path / "root", check=True)
    return faults.copied(tmp_path)


def test_a_fault_meets_the_tests_that_reach_it_and_a_test_that_fails_anyway_notices_nothing(faults, project):
    drawn = {(fault.function, fault.before): fault for fault in faults.drawn(["policy"], 99, "1")}
    more, less = drawn["more", "number + 1"], drawn["less", "number - 1"]
    text = (project / more.path).read_text()
    notes = faults.unharmed(project, [more, less], ["tests/unit"])
    assert (project / more.path).read_text() == text
    tests = {name: f"tests/unit/policy/test_sums.py::test_{name}" for name in ("more", "less")}
    assert set(notes.seconds) == set(tests.values())
    assert notes.reaching[less.number] == {tests["less"]}
    told = []
    for fault in (more, less):
        faults.put(project, fault.path, faults.fault_sites.faulty(text, fault.site))
        told.append(faults.noticed(project, notes, fault))
        faults.put(project, fault.path, text)
    assert told == [f"by {tests['more']}", None]


def test_too_few_noticed_or_a_wrong_word_about_one_that_changes_nothing_is_a_failure(faults, capsys):
    drawn = [
        faults.Fault(number, "a.py", "", 0, 1, "sum", "f", f"a + {number}", f"a - {number}") for number in range(20)
    ]
    known = [{"file": "a.py", "function": "f", "before": "a + 0", "after": "a - 0", "why": "a is never used"}]
    by = "by tests/unit/test_a.py::test_a"
    assert faults.report(drawn, [None] * 4 + [by] * 16, known) == 1
    assert faults.report(drawn, [None] * 3 + [by] * 17, known) == 0
    assert faults.report(drawn, [by] * 20, known) == 1
    assert "said to change nothing, and noticed" in capsys.readouterr().out
