"""What goes there and what comes back, as pure plans: patterns, secrets, links, and what is in the way."""

from __future__ import annotations

import pytest

from slurm_agent_tools.backends.sync_plan import (
    SyncEntry,
    leads_out,
    matches,
    pattern,
    plan_pull,
    plan_push,
    read_rules,
    secret_content,
    secret_name,
    starts,
)
from slurm_agent_tools.text import sanitize


@pytest.mark.parametrize(
    ("one", "path", "expected"),
    [
        ("logs", "logs/a/b", True), ("logs", "logs2", False), ("*.out", "a.out", True), ("*.out", "b/a.out", False),
        ("**/*.out", "b/c/a.out", True), ("**/*.out", "a.out", True), ("ck/**", "ck/a/b", True), ("ck/**", "ck", False),
        ("ck/*/x", "ck/b/x", True), ("ck/*/x", "ck/b/c/x", False), ("a/**/b", "a/b", True), ("a/**/b", "a/x/y/b", True),
        ("a?c", "abc", True), ("a?c", "a/c", False), ("a[b-d]", "ac", True), ("a[!b]", "ab", False), ("a[!b]", "ac", True),
        ("a[/]b", "a/b", False), ("a[^b]", "a^", True), ("a[", "a[", True), ("a.b", "axb", False), ("a+", "aa", False),
        ("*", "two\nlines", True), (".", "anything/at all", True), ("**", "x/y", True),
    ],
)  # fmt: skip
def test_a_pattern_names_what_it_says_and_no_more(one: str, path: str, expected: bool):
    assert matches([one], path) is expected


def test_looking_begins_at_the_folders_that_the_patterns_name():
    assert starts(["logs", "logs/a*", "ck/*/x", "a/b"]) == ["a/b", "ck", "logs"]
    assert starts(["logs", "*.py"]) == ["."]
    assert starts(["ab", "a"]) == ["a", "ab"]


@pytest.mark.parametrize("text", ["", " ", "/a", "../a", "a/../../b", "a/..", "a\0"])
def test_a_pattern_that_leaves_the_project_is_none(text: str):
    with pytest.raises(ValueError, match="name"):
        pattern(text)


def test_a_rules_file_says_what_goes_what_comes_and_what_stays():
    rules = read_rules("# a\n\n  data/ \npull: out/*.csv\n! notes\n!x\n")
    assert (rules.sent, rules.brought, rules.left) == (("data",), ("out/*.csv",), ("notes", "x"))
    left = ["notes", "notes/a", ".git/config", "sub/.git/x", "a/.b.0123.slurm-agent-part", ".slurm-agent-part/a"]
    assert all(rules.leave_alone(name) for name in left)
    assert not any(rules.leave_alone(name) for name in ["data/a", "anotes", ".gitignore"])


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        (".env", True), ("a/.env.local", True), ("prod.env", True), (".ENV", True), ("id_rsa", True), ("id_ecdsa_sk", True),
        ("_netrc", True), ("store.P12", True), (".config/gcloud/x.json", True), (".ssh/id", True), ("home/.ssh/key", True),
        ("kaggle.json", True), (".env.example", False), (".env.sample", False), ("env", False), ("id_rsa.pub", False),
        (".ssh/config", False), (".ssh/key.pub", False), ("x.ssh/key", False), ("environment.py", False),
    ],
)  # fmt: skip
def test_a_secret_is_known_by_its_name(name: str, secret: bool):
    assert (secret_name(name) is not None) is secret


def test_a_secret_is_known_by_what_it_holds_and_not_by_what_is_said_of_one():
    rows = {row.id: row for row in sanitize.ROWS}
    for kind in ("netrc", "own-token", "github", "gitlab", "hugging-face", "slack", "package-host", "model-host"):
        for sample in rows[kind].samples:
            assert kind in str(secret_content(sample.encode()))
        assert secret_content(rows[kind].near_miss.encode()) is None
    key = "-----BEGIN RSA " + "PRIVATE KEY-----\n" + "MIIEowIBAAKCAQEA0123456789abcdef\n" * 5
    assert "private-key" in str(secret_content(key.encode()))
    assert secret_content(key[:60].encode()) is None
    assert secret_content(b"\xff\xfe\x00" * 1000) is None
    assert secret_content(b"x" * 256 * 2**10 + key.encode()) is None  # behind what is looked at


@pytest.mark.parametrize(
    ("path", "leads", "out"),
    [("a", "b", False), ("a/b", "../c", False), ("a/b", "../../c", True), ("a", "..", True), ("a", "/x", True),
     ("a", "b/../../c", True), ("d/a", "./x/../y", False)],
)  # fmt: skip
def test_a_link_is_followed_on_paper(path: str, leads: str, out: bool):
    assert leads_out(path, leads) is out


def file(path: str, digest: str = "1", **more: object) -> SyncEntry:
    return SyncEntry(path, "file", 5, sha256=digest, **more)  # type: ignore[arg-type]


def test_what_is_the_same_stays_and_the_rest_moves():
    there = {
        "a": file("a"),
        "b": file("b", "2"),
        "x": file("x", executable=True),
        "l": SyncEntry("l", "link", leads="a"),
    }
    here = [file("a"), file("b"), file("c"), file("x"), SyncEntry("l", "link", leads="b")]
    plan = plan_push(here, there)
    assert ([entry.path for entry in plan.moves], plan.unchanged, plan.size) == (["b", "c", "x", "l"], 1, 15)
    assert plan.refused == ()


def test_a_file_that_could_not_be_read_there_is_sent():
    assert len(plan_push([file("a")], {"a": SyncEntry("a", "file", 5)}).moves) == 1
    assert len(plan_push([SyncEntry("a", "file", 5)], {"a": SyncEntry("a", "file", 5)}).moves) == 1


@pytest.mark.parametrize(
    ("entry", "there", "why"),
    [
        (file(".env"), {}, "secrets"), (SyncEntry("l", "link", leads="../x"), {}, "leads out"),
        (SyncEntry("sub", "dir"), {}, "another repository"), (SyncEntry("p", "other"), {}, "neither"),
        (file("d/a"), {"d": SyncEntry("d", "link", leads="/x")}, "d is a link there"),
        (file("d/e/a"), {"d": SyncEntry("d", "file")}, "d is a file there"),
        (file("a"), {"a": SyncEntry("a", "dir")}, "a folder has this name"),
        (file("a"), {"a": SyncEntry("a", "other")}, "a special file has this name"),
    ],
)  # fmt: skip
def test_what_must_not_go_is_refused_with_its_reason(entry: SyncEntry, there: dict[str, SyncEntry], why: str):
    plan = plan_push([entry], there)
    assert (plan.moves, [kept.path for kept in plan.refused]) == ((), [entry.path])
    assert why in plan.refused[0].why


def test_only_what_may_be_written_here_comes_back():
    names = ["new", "same", "mine", "named", "safe.py", ".slurm-agent-sync", "gone"]
    there = {name: file(name, "there") for name in names if name != "gone"}
    here = {"same": file("same", "there"), "mine": file("mine"), "named": file("named")}
    plan = plan_pull(
        names, there, here, tracked=frozenset({"mine", "named", "same"}), named=frozenset({"named", "safe.py"}),
        protected={"safe.py": "*.py"},
    )  # fmt: skip
    assert ([entry.path for entry in plan.moves], plan.unchanged) == (["new", "named"], 1)
    assert [kept.path for kept in plan.refused] == ["mine", "safe.py", ".slurm-agent-sync"]
    assert "`*.py`" in plan.refused[1].why
