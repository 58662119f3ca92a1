"""The audit never takes silence for "nothing found"."""

import json
from pathlib import Path

import pytest
from tests.unit.shipped_scripts import script

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def audit(monkeypatch):
    module = script("audit")
    monkeypatch.setattr(module, "differing", lambda _: [])
    return module


CLEAN = json.dumps({"dependencies": [{"name": "a", "version": "1", "vulns": []}]})
HOLE = json.dumps({"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "PYSEC-1"}]}]})
SKIPPED = json.dumps({"dependencies": [{"name": "a", "skip_reason": "not found"}]})


@pytest.mark.parametrize(
    ("report", "npm", "code", "said"),
    [
        (CLEAN, '{"vulnerabilities": {}}', 0, "no known hole"),
        (HOLE, '{"vulnerabilities": {}}', 1, "FOUND: a 1: PYSEC-1"),
        (SKIPPED, '{"vulnerabilities": {}}', 0, "NOT AUDITED: 1 Python packages"),
        ("", '{"vulnerabilities": {}}', 0, "NOT AUDITED: no Python package"),
        (CLEAN, '{"message": "405"}', 0, "NOT AUDITED: no npm package"),
        (CLEAN, "", 0, "NOT AUDITED: no npm package"),
        (CLEAN, '{"vulnerabilities": {"x": {"severity": "high"}}}', 1, "FOUND: npm x: high"),
    ],
    ids=["clean", "hole", "unknown package", "no source", "npm refuses", "npm silent", "npm hole"],
)
def test_what_is_found_fails_and_what_is_not_known_is_loud(audit, monkeypatch, capsys, report, npm, code, said):
    monkeypatch.setattr(audit, "_output", lambda argv, _=ROOT: npm if "audit" in argv else report)
    assert audit.main() == code
    out = capsys.readouterr().out
    assert said in out
    assert ("no known hole" in out) == (said == "no known hole")


def test_a_requirement_without_version_or_hash_is_found(audit):
    good = "# a comment\na==1.0 \\\n    --hash=sha256:00\nb==2 ; sys_platform == 'win32' \\\n    --hash=sha256:11\n"
    assert list(audit.unpinned(good)) == []
    assert len(list(audit.unpinned(good + "c>=1 \\\n    --hash=sha256:22\nd==1\n"))) == 2


def test_an_npm_package_without_a_hash_is_found(audit):
    lock = {"packages": {"": {}, "node_modules/a": {"integrity": "sha512-x"}, "node_modules/b": {"version": "1"}}}
    assert list(audit.unlocked(lock)) == ["package-lock.json: node_modules/b has no integrity"]


def test_the_committed_pins_are_whole(audit):
    for name in ("requirements.txt", "requirements-run.txt"):
        assert list(audit.unpinned((ROOT / name).read_text(), name)) == []
    assert list(audit.unlocked(json.loads((ROOT / "tests/conformance/package-lock.json").read_text()))) == []
