import re
from pathlib import Path

from tests.behaviours import BEHAVIOURS

FOLDER = Path(__file__).parents[1]
MARK = re.compile(r"mark\.proves\(([^)]*)\)")


def named() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for path in FOLDER.rglob("test_*.py"):
        for words in MARK.findall(path.read_text()):
            for name in re.findall(r'"([^"]+)"', words):
                found.setdefault(name, set()).add(path.name)
    return found


def test_every_promised_behaviour_has_a_test():
    assert sorted(set(BEHAVIOURS) - set(named())) == []


def test_no_test_names_an_unknown_behaviour():
    assert sorted(set(named()) - set(BEHAVIOURS)) == []
