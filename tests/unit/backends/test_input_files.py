"""Which files of a project a job reads, as far as texts name them, and what they count by."""

from __future__ import annotations

import contextlib
import os
import threading
import tracemalloc
from pathlib import Path
from types import ModuleType

import pytest
from tests.watchdog import ends

from slurm_agent_tools.backends import input_files, input_words, stages
from slurm_agent_tools.backends.input_files import InputFile
from slurm_agent_tools.errors import StorageError
from slurm_agent_tools.scripts.reader import read_script
from slurm_agent_tools.transport.local import LocalFiles


async def found(folder: Path, *lines: str, args: tuple[str, ...] = (), far: bool = False) -> dict[str, InputFile]:
    """What a script of these lines reads."""
    root = str(folder)
    text = "\n".join(["#!/bin/bash", *lines, ""]).encode()
    reading = await read_script(text, "job.sh", project=root, files=LocalFiles(), args=args)
    return await input_files.read_inputs(LocalFiles(), root, reading, args, far=far)


def write(folder: Path, **files: str) -> None:
    """Files by their names, `__` for a dot and `_IN_` for a slash."""
    for name, text in files.items():
        path = folder / name.replace("_IN_", "/").replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("cat a.csv", {"a.csv"}),
        ("cat ./sub/../a.csv 'sub/b.csv'", {"a.csv", "sub/b.csv"}),
        ("prog --data=a.csv --more sub/b.csv", {"a.csv", "sub/b.csv"}),
        ("prog < a.csv > sub/b.csv", {"a.csv"}),
        ("prog a.csv | tee -a sub/b.csv", {"a.csv"}),
        ("prog --output a.csv --log-file=sub/b.csv", set()),
        ("# a.csv is told of in a comment", {"a.csv"}),
        ("cat sub /etc/passwd ../a.csv https://b/a.csv", set()),
        ("python p.py", {"p.py", "a.csv", "q.py"}),
        ("python w.py", {"w.py"}),
        ("python both.py", {"both.py", "a.csv"}),
        ("bash sub/inner.sh", {"sub/inner.sh", "a.csv"}),
    ],
)
async def test_files_that_texts_name_are_found_and_what_is_written_is_left_out(
    tmp_path: Path, line: str, names: set[str]
):
    write(tmp_path, a__csv="1", sub_IN_b__csv="2", sub_IN_inner__sh="cat a.csv > sub/b.csv\n")
    write(
        tmp_path, p__py="import q\nopen('a.csv')\n", q__py="x = 1\n", w__py="x.save('a.csv')\nopen('sub/b.csv', 'w')\n"
    )
    write(tmp_path, both__py="read_csv('a.csv').to_csv('sub/b.csv')\n")

    assert set(await found(tmp_path, line)) == names


async def test_arguments_and_the_folder_of_the_job_count(tmp_path: Path):
    write(tmp_path, sub_IN_b__csv="2", c__yaml="x: 1\n")

    assert set(await found(tmp_path, "#SBATCH --chdir=sub", "cat b.csv")) == {"sub/b.csv"}
    assert set(await found(tmp_path, 'prog "$@"', args=("--config=c.yaml",))) == {"c.yaml"}


async def test_modules_are_followed_however_deep_they_are(tmp_path: Path):
    for number in range(60):
        (tmp_path / f"m{number}.py").write_text(f"from m{number + 1} import x\n")
    write(tmp_path, m60__py="x = 1\n")

    assert set(await found(tmp_path, "python m0.py")) == {f"m{number}.py" for number in range(61)}


async def test_a_large_file_counts_by_its_size_and_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(input_files, "_HASHED", 10)
    write(tmp_path, a__csv="1" * 11)
    before = (await found(tmp_path, "cat a.csv"))["a.csv"]
    os.utime(tmp_path / "a.csv", (1, 1))
    after = (await found(tmp_path, "cat a.csv"))["a.csv"]

    assert (before.size, "11 bytes of" in before.identity) == (11, True)
    assert before.identity != after.identity


async def test_over_a_connection_less_is_read(tmp_path: Path):
    write(tmp_path, a__csv="1" * (2**20 + 1))

    near, far = [(await found(tmp_path, "cat a.csv", far=far))["a.csv"] for far in (False, True)]

    assert len(near.identity) == 64
    assert "bytes of" in far.identity


async def test_where_a_link_leads_is_a_part_of_what_a_file_is(tmp_path: Path):
    write(tmp_path, a__csv="1", b__csv="1")
    (tmp_path / "link.csv").symlink_to("a.csv")
    one = (await found(tmp_path, "cat link.csv"))["link.csv"]
    (tmp_path / "link.csv").unlink()
    (tmp_path / "link.csv").symlink_to("b.csv")
    other = (await found(tmp_path, "cat link.csv"))["link.csv"]

    assert one.identity != other.identity


async def test_more_files_than_are_looked_at_are_an_error_and_words_that_are_none_cost_nothing(tmp_path: Path):
    lines = [f"cat part{number}.csv" for number in range(500)]

    assert await found(tmp_path, *lines) == await found(tmp_path, *lines, far=True) == {}
    for number in range(500):
        write(tmp_path, **{f"part{number}__csv": "1"})
    assert len(await found(tmp_path, *lines)) == 500
    with pytest.raises(ValueError, match="more than 400 files"):
        await found(tmp_path, *lines, far=True)


async def test_a_file_that_changes_while_it_is_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    write(tmp_path, a__csv="1")

    async def shorter(self: LocalFiles, path: str, *, offset: int = 0, size: int | None = None) -> bytes:
        return b""

    monkeypatch.setattr(LocalFiles, "read", shorter)
    with pytest.raises(StorageError, match=r"a\.csv changed"):
        await found(tmp_path, "cat a.csv")


async def test_a_length_in_settings_is_no_part_of_what_the_file_is(tmp_path: Path):
    write(tmp_path, c__yaml="solver:\n  max_steps: 7\n  lr: 1\n", d__py="max_steps = 7\n")
    head, line = "#SMOKE length: solver.max_steps", "prog --config c.yaml d.py"
    before = await found(tmp_path, head, line)
    write(tmp_path, c__yaml="solver:\n  max_steps: 100\n  lr: 1\n", d__py="max_steps = 100\n")
    longer = await found(tmp_path, head, line)
    write(tmp_path, c__yaml="solver:\n  max_steps: 100\n  lr: 2\n")
    other = await found(tmp_path, head, line)

    assert before["c.yaml"].identity == longer["c.yaml"].identity != other["c.yaml"].identity
    assert before["d.py"].identity != longer["d.py"].identity, "a program is what it is"


@pytest.mark.parametrize(("large", "by_contents"), [(15, True), (16, False)])
async def test_behind_512_mib_in_all_a_file_is_told_by_its_size_and_time(tmp_path: Path, large: int, by_contents: bool):
    """What a configuration reads is looked at within bounds; a file of more than 32 MiB counts as 32, unread."""
    names = [f"l{number}.bin" for number in range(large)]
    for name in names:
        with (tmp_path / name).open("wb") as file:
            file.truncate(32 * 2**20 + 1)
    write(tmp_path, z__csv="1")

    read = await found(tmp_path, f"cat {' '.join(names)}", "cat z.csv")

    assert all("bytes of" in read[name].identity for name in names)
    assert ("bytes of" not in read["z.csv"].identity) is by_contents


MIB = 2**20

HOSTILE = {
    "a word": "a" * MIB,
    "filled in": "%0" * (MIB // 2),
    "stars": "*a" * (MIB // 2) + "/",
    "open and quotes": "open(" + "'w'" * (MIB // 3),
    "open and brackets": "open(" + "(a)'" * (MIB // 4),
    "saved and brackets": "save(" * (MIB // 5),
    "saved and pairs": "save(" + "()" * (MIB // 2),
    "tee": "tee -" * (MIB // 5),
    "blanks behind from": "from" + " " * MIB + "\n" + "from a" + " " * MIB,
    "dots behind from": "from " + "." * MIB,
    "blanks between quotes": ("'a'" + " " * 30_000) * (MIB // 30_000),
    "quotes": "'" + "a." * (MIB // 2),
    "arrows": ">" * MIB,
    "blanks behind an option": "--out" + " " * MIB,
    "a long option": "--out" + "file" * (MIB // 4),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_text_of_a_megabyte_is_searched_in_one_pass(text: str):
    """A quadratic expression takes hours for it, and nobody else of the service is answered meanwhile."""
    with ends():
        for find in (input_words.all_named, input_words.program, input_words.settings_words, input_words.made_anew):
            find(text)
        input_words.targets(text), input_words.started_modules(text)
        stages.without_lengths(f"steps{' ' * MIB}", ("steps",), apart=True)
        stages.declared(f"#SMOKE writes:{' ' * MIB}x{' ' * MIB}y")


HUGE = {
    "words": {f"c{file}__yaml": "".join(f"w{file}x{number}: a\n" for number in range(7000)) for file in range(8)},
    "paths and modules": {
        "c__py": f"sys.path += {[f'p{number}' for number in range(300)]}\nimport {','.join(f'm{one}' for one in range(200))}"
    },
    "patterns and files": {
        "c__sh": "".join(f"cat x{number}*.yaml\n" for number in range(2000)),
        **{f"x{number}__txt": "" for number in range(500)},
    },
}


@pytest.mark.parametrize("files", HUGE.values(), ids=HUGE)
async def test_more_places_than_anybody_looks_at_are_told(tmp_path: Path, files: dict[str, str], monkeypatch):
    """Two lines of a program, 48 KB, or a thousand patterns, kept the others of a site's service for ten seconds."""
    monkeypatch.setattr(input_files, "_MOST_LOOKS", 50_000)
    write(tmp_path, **files)
    with pytest.raises(ValueError, match="more than 50000 places"):
        await found(tmp_path, *(f"prog {name.replace('__', '.')}" for name in files if not name.endswith("txt")))


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("data/part_{i}.csv", "data/part_{i}.csv"), ("x/${NAME}/y.txt", "x/${NAME}"), ("a%03d.yaml", "a%03d.yaml"),
        ("50%sure", None), ("*.csv~old", "*.csv"), ("plain.csv", None), ("a?b/c*d", "a?b/c*d"),
    ],
)  # fmt: skip
def test_a_pattern_of_names_goes_to_the_last_place_that_is_filled_in(text: str, pattern: str | None):
    words = dict.fromkeys(word for word in input_words.named(text) if input_words.is_filled_in(word))
    assert list(words) == ([pattern] if pattern else [])


@pytest.mark.parametrize(
    "text",
    [
        f"from {'.' * 30_000} import {','.join(f'a{number}' for number in range(10_000))}",
        f"from {'b' * 30_000} import {','.join(f'a{number}' for number in range(10_000))}",
        f"from {'.' * 20}{'b' * 200} import {','.join(f'a{number}' for number in range(200_000))}",
    ],
    ids=["dots", "a long name", "many names"],
)
def test_imports_that_would_unfold_take_no_more_memory_than_any_program_does(text: str):
    """Fifty kilobytes of dots and names took 1.8 GB in a site's service."""
    tracemalloc.start()
    try:
        with contextlib.suppress(ValueError):
            list(input_words.modules(text))
        assert tracemalloc.get_traced_memory()[1] < 256 * MIB
    finally:
        tracemalloc.stop()


async def test_many_settings_that_name_a_folder_of_many_files_are_no_more_than_anybody_has(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(input_files, "_MOST_LOOKS", 20_000)
    write(tmp_path, **{f"conf_IN_exp{number}__yaml": "data: data/train\n" for number in range(20)})
    write(tmp_path, **{f"data_IN_train_IN_{number}__bin": "" for number in range(2000)}, train__py="import torch\n")
    names = await found(tmp_path, "python train.py --config-dir conf --config-name exp1")
    assert "conf/exp1.yaml" in names


@pytest.mark.parametrize(("lines", "beside"), [(3, False), (3000, True)])
async def test_a_large_script_is_searched_beside_the_event_loop(
    tmp_path: Path, lines: int, beside: bool, monkeypatch: pytest.MonkeyPatch
):
    """Half a megabyte of comments kept everybody who asked the site's service waiting for seconds."""
    seen: dict[str, bool] = {}

    def noted(module: ModuleType, name: str) -> None:
        real = getattr(module, name)

        def call(*words: str):
            seen[name] = threading.current_thread() is not threading.main_thread()
            return real(*words)

        monkeypatch.setattr(module, name, call)

    for name in ("made_anew", "started_modules", "all_named"):
        noted(input_words, name)
    noted(stages, "declared")
    await found(tmp_path, *["# python -m a"] * lines)
    assert seen == dict.fromkeys(("made_anew", "started_modules", "all_named", "declared"), beside)


async def test_a_pattern_counts_by_its_signs_and_by_the_names_that_it_is_compared_with(tmp_path: Path, monkeypatch):
    """Two hundred patterns of stars and a folder of 45,000 names kept others waiting for two seconds."""
    monkeypatch.setattr(input_files, "_MOST_LOOKS", 20_000)
    write(tmp_path, **{f"d_IN_{'a' * 20}{number}__txt": "" for number in range(1000)})
    assert len(await found(tmp_path, "cat d/*1.txt")) == 100
    with pytest.raises(ValueError, match="more than 20000 places"):
        await found(tmp_path, *(f"cat d/{'a*' * 60}{number}z.txt" for number in range(20)))


async def test_names_of_a_large_folder_are_compared_beside_the_event_loop(tmp_path: Path, monkeypatch):
    seen: list[bool] = []
    real = input_files.translate

    def noted(pattern: str) -> str:
        seen.append(threading.current_thread() is not threading.main_thread())
        return real(pattern)

    monkeypatch.setattr(input_files, "translate", noted)
    write(tmp_path, **{f"few_IN_{number}__txt": "" for number in range(20)})
    write(tmp_path, **{f"many_IN_{number}__txt": "" for number in range(200)})
    await found(tmp_path, "cat few/*.txt")
    await found(tmp_path, "cat many/*.txt")
    assert seen == [False, True]
