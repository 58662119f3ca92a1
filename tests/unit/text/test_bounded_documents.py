"""Small texts that cost a parser gigabytes or minutes are refused before it sees them; ordinary ones are read as ever."""

import contextlib
import json
import tomllib
import tracemalloc
from datetime import date

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import some, tries
from tests.unit.counting import counted

from slurm_agent_tools.text import bounded_documents, yaml_documents
from slurm_agent_tools.text.bounded_documents import DEPTH, PARTS, VALUES, WORD, DocumentError

STEPS = 2_500_000
"""Calls that no refusal may cost: 50,000 values are read with about as many."""


def refused(read, text: str) -> str:
    """What is said, after a number of steps that is small."""

    def work() -> str:
        try:
            read(text)
        except (DocumentError, yaml.YAMLError) as error:
            return str(error)
        return ""

    said, steps = counted(work)
    assert steps < STEPS, steps
    assert said, "it was read"
    assert len(said) < 1000
    return said


TOML_BOMBS = {
    "a key of many parts": ".".join("a" * 100_000) + " = 1",
    "a table of many parts": "[" + ".".join("a" * 100_000) + "]",
    "a list of tables of many parts": "[[" + ".".join("a" * 100_000) + "]]",
    "quoted parts": ".".join(['"a"'] * 100_000) + " = 1",
    "parts in single quotes, spaced": " . ".join(["'a'"] * 100_000) + " = 1",
    "an inline table with such a key": "a = {" + ".".join("a" * 100_000) + " = 1}",
    "such a key behind a text": 'x = """\n[a]"""\n' + ".".join("a" * 100_000) + " = 1",
    "such a key behind a text with quotes at its end": 'x = """a"""""\n' + ".".join("a" * 100_000) + " = 1",
    "such a key behind a plain text": "x = '''\n'' '''\n" + ".".join("a" * 100_000) + " = 1",
    "such a key behind an escaped quote": 'x = "\\""\n' + ".".join("a" * 100_000) + " = 1",
    "such a key behind a comment": '# "\n' + ".".join("a" * 100_000) + " = 1",
    "many keys of many parts": "\n".join(".".join(["a"] * 30) + f".k{number} = 1" for number in range(50_000)),
    "lists in lists": "a = " + "[" * 100_000,
    "tables in tables": "a = " + "{a = " * 100_000,
    "tables of several parts in tables": "a = " + "{a.a.a.a.a.a.a = " * 49 + "1" + "}" * 49,
    "many values": "a = [" + "1," * 500_000 + "]",
    "many keys": "\n".join(f"k{number} = 1" for number in range(200_000)),
    "a long number": "a = 0x" + "f" * 100_000,
    "brackets that nothing opened": "}" * 5_000_000,
    "words without a sign between": "a " * 2_500_000,
}  # fmt: skip


@pytest.mark.parametrize("kind", some(list(TOML_BOMBS)))
def test_toml_that_would_unfold_is_refused_in_a_few_steps(kind):
    assert refused(bounded_documents.toml, TOML_BOMBS[kind])


JSON_BOMBS = {
    "lists in lists": "[" * 1_000_000,
    "objects in objects": '{"a":' * 500_000,
    "lists that are closed": "[" * 60 + "]" * 60,
    "many values": "[" + "1," * 1_000_000 + "1]",
    "a long number": "9" * 5000,
    "brackets that nothing opened": "}" * 5_000_000,
    "words without a sign between": "1 " * 2_500_000,
}


@pytest.mark.parametrize("text", JSON_BOMBS.values(), ids=JSON_BOMBS)
def test_json_that_would_unfold_is_refused_in_a_few_steps(text):
    assert refused(bounded_documents.json_value, text)


def unfolding(first: str, more: str) -> str:
    """Ten anchors, each nine times the one before."""
    lines = [f"a: &a {first}"]
    for number in range(1, 10):
        below = ",".join([f"*{chr(96 + number)}"] * 9)
        lines.append(f"{chr(97 + number)}: &{chr(97 + number)} " + more.format(below))
    return "\n".join(lines)


def test_many_tables_of_several_parts_are_refused_before_they_are_made():
    text = "\n".join(f"[a.b{number}.c.d.e.f.g.h.i.j.k.l]" for number in range(10_000))
    with pytest.raises(DocumentError, match=f"{2 * VALUES} dots .line 9091."):
        bounded_documents.toml(text)


YAML_BOMBS = {
    "a number in base 60": "a: 1" + ":1" * 200_000,
    "a number in base 60 by its tag": 'a: !!int "1' + ":1" * 200_000 + '"',
    "a long number": "a: 0x" + "f" * 100_000,
    "lists in lists": "[" * 1_000_000,
    "lists in lines": "- " * 100_000,
    "keys in keys": "? " * 100_000,
    "tables in tables": "{" * 100_000,
    "indents": "".join(" " * depth + "a:\n" for depth in range(2000)),
    "aliases of aliases": unfolding("[x, x, x]", "[{}]"),
    "merges of merges": unfolding("{k: 1}", "{{<<: [{}]}}"),
    "an alias to itself": "a: &a [*a]",
    "levels by aliases": "\n".join(["a0: &a0 [1]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, 100))]),
    "many values": "[" + "a," * 1_000_000 + "]",
    "many keys": "\n".join(f"{number:x}:" for number in range(200_000)),
    "keys that fall into one place": "\n".join(f"{number * (2**61 - 1)}: 1" for number in range(1, 40_000)),
    "a name that is no anchor": "a: *b",
    "two documents": "a: 1\n---\nb: 1",
    "a tag of any length": f"%TAG !a! {'x' * 100_000}\n---\na: !a!b c",
    "a program by its tag": "a: !!python/object/apply:os.system [id]",
    "a character of no set": 'a: "\\UFFFFFFFF"',
    "half of a character": 'a: "\\ud800"',
    "a control character": "a: \x00",
    "a day that is none": "a: 2001-13-45",
    "a time that is none": "a: !!timestamp soon",
    "a truth that is none": "a: !!bool maybe",
    "a number that is none": "a: !!int x",
    "a list as a key": "? [a]\n: 1",
    "bytes that are none": "a: !!binary 'x'",
}


@pytest.mark.parametrize("kind", some(list(YAML_BOMBS)))
def test_yaml_that_would_unfold_or_is_odd_is_refused_in_a_few_steps(kind):
    assert refused(yaml_documents.load, YAML_BOMBS[kind])


@pytest.mark.parametrize(
    "text", ["{" + "0:" * 2_000_000 + "!", "a: " + "0:" * 2_000_000 + "0", "a: " + "0_" * 2_000_000]
)
def test_a_text_of_many_parts_takes_memory_by_its_length_and_no_more(text):
    tracemalloc.start()
    try:
        with contextlib.suppress(yaml.MarkedYAMLError):
            yaml_documents.load(text)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 4 * len(text)


@pytest.mark.parametrize("kind", some(list(YAML_BOMBS)))
def test_the_same_holds_where_pyyaml_came_without_libyaml(kind, monkeypatch):
    monkeypatch.setattr(yaml_documents, "_QUICK", None)
    with pytest.raises(yaml.MarkedYAMLError):
        yaml_documents.load(YAML_BOMBS[kind][:250_000])


def test_a_large_text_is_refused_where_pyyaml_came_without_libyaml(monkeypatch):
    monkeypatch.setattr(yaml_documents, "_QUICK", None)
    with pytest.raises(yaml.MarkedYAMLError, match="larger than 262144"):
        yaml_documents.load("#" * 300_000)


def lists(depth: int) -> str:
    return "[" * depth + "]" * depth


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (bounded_documents.json_value, lists(DEPTH)),
        (bounded_documents.toml, f"a = {lists(DEPTH - 1)}"),
        (yaml_documents.load, lists(DEPTH)),
        (bounded_documents.json_value, json.dumps([1] * VALUES)),
        (bounded_documents.json_value, json.dumps({f"k{number}": 1 for number in range(VALUES)})),
        (bounded_documents.toml, f"a = {[1] * (VALUES - 1)}"),
        (yaml_documents.load, str([1] * VALUES)),
        (yaml_documents.load, "\n".join(f"k{number}: 1" for number in range(VALUES))),
        (bounded_documents.toml, ".".join("a" * PARTS) + " = 1"),
        (bounded_documents.json_value, "9" * WORD),
        (yaml_documents.load, "9" * WORD),
    ],
)  # fmt: skip
def test_what_is_just_within_a_limit_is_read(read, text):
    assert read(text) is not None


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        (bounded_documents.json_value, "\n" + lists(DEPTH + 1), rf"deeper than {DEPTH} levels \(line 2\)"),
        (bounded_documents.toml, f"\na = {lists(DEPTH + 1)}", rf"deeper than {DEPTH} levels \(line 2\)"),
        (yaml_documents.load, "\n" + lists(DEPTH + 1), rf"deeper than {DEPTH} levels; flatten it.*\n.*line 2"),
        (bounded_documents.json_value, json.dumps([1] * (VALUES + 1)), f"more than {VALUES} values"),
        (bounded_documents.toml, f"a = {[1] * VALUES}", f"more than {VALUES} values"),
        (yaml_documents.load, str([1] * (VALUES + 1)), f"more than {VALUES} values"),
        (bounded_documents.toml, "\n\n" + ".".join("a" * (PARTS + 1)) + " = 1", rf"{PARTS} parts.*\(line 3\)"),
        (bounded_documents.json_value, "\n" + "9" * (WORD + 1), rf"more than {WORD} characters \(line 2\)"),
        (yaml_documents.load, "\n" + "9" * (WORD + 1), f"more than {WORD} characters; shorten it"),
        (yaml_documents.load, "a: 1\nb: !!bool x", "not what its tag says\n.*line 2"),
    ],
)  # fmt: skip
def test_what_is_just_beyond_is_told_with_its_line_and_limit(read, text, said):
    with pytest.raises((DocumentError, yaml.MarkedYAMLError), match=said):
        read(text)


@pytest.mark.parametrize(
    ("text", "mend"),
    [("a = [" * 60, "Flatten"), ("a = [" + "1," * 200_000, "file of its own"), ("a = " + "1" * 2000, "Shorten")],
)
def test_a_limit_is_told_with_its_mend(text, mend):
    with pytest.raises(DocumentError) as caught:
        bounded_documents.toml(text)
    assert mend in caught.value.mend


def test_a_text_that_is_no_utf8_is_told_with_its_line():
    with pytest.raises(DocumentError, match=r"not UTF-8 \(line 3\)"):
        bounded_documents.decoded(b"a\nb\n\xff")
    assert bounded_documents.decoded(b"\xef\xbb\xbfa") == "a"


def test_a_key_that_an_object_has_twice_is_told_where_that_is_asked_for():
    assert bounded_documents.json_value('{"a": 1, "a": 2}') == {"a": 2}
    with pytest.raises(DocumentError, match="'a' twice"):
        bounded_documents.json_value('{"a": 1, "a": 2}', once=True)


def test_quotes_and_comments_hide_what_would_count_outside_of_them():
    many = "." * 100 + "[" * 100
    text = f'a = \'{many}\'\nb = "{many}\\"{many}" # {many}\nc = """\n{many}"" {many}""""\nd = \'\'\'{many}\'\'\''
    assert bounded_documents.toml(text) == tomllib.loads(text)
    assert bounded_documents.json_value(json.dumps({"a": many, "b": f'"{many}'})) == {"a": many, "b": f'"{many}'}


def test_anchors_and_merges_of_ordinary_size_mean_what_they_mean():
    text = "base: &b {lr: 0.1, when: 2026-01-02}\nrun:\n  <<: *b\n  seeds: [1, 2]\nagain: *b\n"
    assert yaml_documents.load(text) == yaml.safe_load(text)
    assert yaml_documents.load(text)["run"] == {"lr": 0.1, "when": date(2026, 1, 2), "seeds": [1, 2]}
    with pytest.raises(yaml.MarkedYAMLError, match="anchors and aliases are not accepted"):
        yaml_documents.node(text, aliases=False)
    with pytest.raises(yaml.MarkedYAMLError, match="anchors and aliases are not accepted"):
        yaml_documents.node("a: *b", aliases=False)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**17), 10**17) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=tries(150), deadline=None, derandomize=True)
@given(value=PLAIN)
def test_an_ordinary_value_comes_back_as_the_parsers_of_others_read_it(value):
    assert bounded_documents.json_value(json.dumps(value)) == value
    text = yaml.safe_dump(value, allow_unicode=True)
    assert yaml_documents.load(text) == yaml.safe_load(text)


@settings(max_examples=tries(150), deadline=None, derandomize=True)
@given(
    text=st.lists(
        st.sampled_from(
            [
                "a",
                ": ",
                "\n",
                "  ",
                "- ",
                "[",
                "]",
                "{",
                "}",
                ", ",
                "'",
                '"',
                "&x ",
                "*x",
                "!!int ",
                "1",
                "<<: ",
                "|\n",
                "? ",
                "#",
                "2001-01-01",
            ]
        ),
        max_size=12,
    ).map("".join)
)
def test_what_is_made_of_signs_by_chance_is_read_as_ever_or_refused(text):  # fmt: skip
    try:
        found = yaml_documents.load(text)
    except yaml.MarkedYAMLError:
        return
    assert repr(found) == repr(yaml.safe_load(text))


@settings(max_examples=tries(300), deadline=None, derandomize=True)
@given(
    text=st.lists(
        st.sampled_from(
            ["a", "b", " = ", "\n", "[", "]", "{", "}", ",", "'", '"', "'''", '"""', "\\", ".", "1", "#", "2001-01-01"]
        ),
        max_size=12,
    ).map("".join)
)
def test_toml_by_chance_is_read_as_ever(text):  # fmt: skip
    try:
        wanted = tomllib.loads(text)
    except ValueError:
        with pytest.raises(DocumentError):
            bounded_documents.toml(text)
        return
    assert bounded_documents.toml(text) == wanted
