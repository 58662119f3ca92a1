"""What a search of a large log asks and makes of the answers, and which parts are read where nothing can be searched."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from slurm_agent_tools.diagnosis import log_signs
from slurm_agent_tools.diagnosis.log_signs import LogSearch, SignPosition, plan
from slurm_agent_tools.errors import SlurmMissing
from slurm_agent_tools.services import log_parts
from slurm_agent_tools.services.log_parts import SMALL, LogFileSource
from slurm_agent_tools.services.log_search import look
from slurm_agent_tools.transport.base import Completed
from slurm_agent_tools.transport.local import LocalFiles

KIB, MIB = 2**10, 2**20


def answer(*lines: str, code: int = 0, stderr: bytes = b"", exit_code: int | None = 0) -> Completed:
    return Completed(
        ("sh",), exit_code if code == 0 else code, "".join(f"{line}\n" for line in lines).encode(), stderr, 0.1
    )


class Prepared:
    """One answer after the other; `asked` holds (script, words, environment, seconds)."""

    def __init__(self, *answers: Completed | Exception) -> None:
        self.answers, self.asked = list(answers), list[tuple[str, tuple[str, ...], Any, float]]()

    async def run(self, argv: Sequence[str], *, env: Any = None, timeout: float = 0, **_: Any) -> Completed:
        self.asked.append((argv[2], tuple(argv[4:]), env, timeout))
        told = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(told, Exception):
            raise told
        return told


SEARCH = LogSearch({"error": "error", "cuda": "cuda", "cuda error": "cuda error"}, (), plain=True)


async def searched(
    *answers: Completed | Exception, size: int = 1000, span: tuple[int, int] | None = None, search=SEARCH
):
    runner = Prepared(*answers)
    return await look(runner, "/p/a.out", size, span or (0, size), search), runner.asked


# --- answers --------------------------------------------------------------------------------------------------------


async def test_places_are_told_in_their_order_with_line_and_offset():
    found, asked = await searched(answer("7:200:5:oops", "3:100:0:an error: here", "lines:2"))
    assert found is not None
    assert found.places == (SignPosition(3, 100, "an error: here"), SignPosition(7, 205, "oops"))
    assert (found.lines, found.ordinary, found.stopped) == (2, (), None)
    ((_, words, env, seconds),) = asked
    assert (words[0], words[1], words[4:]) == ("/p/a.out", "error|cuda", ("0", "1000"))
    assert env == {"LC_ALL": "C", "SIGNS": "error|cuda"}
    assert seconds == pytest.approx(30, abs=0.1)


@pytest.mark.parametrize(
    ("size", "seconds"), [(40 * MIB, 31), (400 * MIB, 40), (40 * MIB * 870, 900), (40 * MIB * 9000, 900)]
)
async def test_a_search_has_time_by_its_size_and_fifteen_minutes_at_most(size: int, seconds: int):
    _, asked = await searched(answer("lines:0"), size=size)
    assert asked[0][3] == seconds


@pytest.mark.parametrize("span", [(100, 300), (100, 900)])
async def test_lines_of_a_part_are_not_numbered_and_offsets_are_those_of_the_file(span):
    found, _ = await searched(answer("3:50:1:error", "lines:1"), span=span)
    assert found is not None
    assert found.places == (SignPosition(0, 151, "error"),)


async def test_each_reach_has_a_script_of_its_own():
    scripts = set()
    for span in ((0, 1000), (100, 900), (0, 500)):
        for search in (SEARCH, LogSearch(SEARCH.kept, (), plain=False)):
            _, asked = await searched(answer("lines:0"), span=span, search=search)
            scripts.add(asked[0][0])
    assert len(scripts) == 6


@pytest.mark.parametrize(
    "told",
    [answer("lines:0", exit_code=2), answer("lines:0", stderr=b"no"), answer("3:1:0:x"), answer(), SlurmMissing("sh")],
)
async def test_what_is_no_whole_answer_is_none(told):
    found, asked = await searched(told, search=LogSearch(SEARCH.kept, (), plain=False))
    assert (found, len(asked)) == (None, 1)


async def test_a_line_that_is_too_long_for_the_memory_is_searched_in_pieces():
    found, asked = await searched(answer(exit_code=2), answer("0:9:0:error", "lines:1"))
    assert found is not None
    assert found.places == (SignPosition(0, 9, "error"),)
    assert asked[0][0] != asked[1][0]


async def test_a_search_that_takes_too_long_is_an_error():
    with pytest.raises(TimeoutError):
        await searched(Completed(("sh",), None, b"", b"", 900.0))


async def test_a_flood_is_gone_on_behind_without_the_words_that_make_it():
    flood = [f"{number}:{number * 10}:0:error {number}" for number in range(1, 9)]
    found, asked = await searched(answer(*flood, "flood:20000"), answer("1:5:0:rest", "3:40:0:cuda", "lines:2"))
    assert found is not None
    assert (found.lines, found.ordinary, found.stopped, len(asked)) == (20_002, ("error",), None, 2)
    assert asked[1][1][1] == "cuda"
    assert asked[1][1][4:] == ("81", "919")
    assert found.places[-2:] == (SignPosition(8, 86, "rest"), SignPosition(10, 121, "cuda"))


async def test_a_search_that_never_ends_in_order_says_how_far_it_came():
    found, asked = await searched(answer("1:5:0:something", "flood:9"))
    assert found is not None
    assert (len(asked), found.stopped, found.lines) == (8, 48, 72)


# --- what is a sign ---------------------------------------------------------------------------------------------------


def test_a_word_that_fills_the_samples_is_no_sign():
    samples = [b"error again\n", b"error once more\n", b"error and cuda\n"]
    found = plan(samples)
    assert "error" in found.ordinary
    assert "error" not in found.kept
    assert plan(samples[:2]).ordinary == ()
    assert plan([*samples, b"well\n", b"well\n"]).ordinary == ()


def test_a_word_whose_longer_forms_fill_the_samples_counts_where_it_ends():
    found = plan([b"loss=information\n"] * 3)
    assert found.kept["=inf"] == "=inf[^a-z]|=inf$"
    assert found.kept["error"] == "error"
    assert set(found.kept) | set(found.ordinary) == set(log_signs.words())
    assert plan([b"loss=inf 3\n"] * 3).ordinary == ("=inf",)


@pytest.mark.parametrize(
    ("sample", "plain"),
    [(b"a\nb\n", True), (b"a\r\nb\r\n", True), (b"a\rb\rc\n", False), (b"no end", False), (b"a\n\0b\n", False)],
)
def test_lines_are_numbered_where_they_end_as_lines_do(sample, plain):
    assert plan([sample]).plain == plain


# --- parts ----------------------------------------------------------------------------------------------------------


def source(folder: Path, size: int, runner: Any = None) -> LogFileSource:
    path = folder / "a.out"
    path.write_bytes((b"x" * 63 + b"\n") * (size // 64) + b"y" * (size % 64))
    return LogFileSource(runner or Prepared(SlurmMissing("sh")), LocalFiles(), str(path), size)


@pytest.mark.parametrize(("size", "asked"), [(SMALL, 0), (SMALL + 1, 1)])
async def test_a_small_file_is_read_whole_without_a_command(tmp_path: Path, size: int, asked: int):
    runner = Prepared(SlurmMissing("sh"))
    found = await log_parts.read(source(tmp_path, size, runner), whole=False)
    assert found is not None
    assert bool(runner.asked) == bool(asked)
    assert sum(len(piece.data) for piece in found.pieces) == size
    assert (found.pieces[0].offset, found.pieces[0].end, bool(found.notes)) == (0, min(size, 256 * KIB), bool(asked))


async def test_where_nothing_can_be_searched_both_ends_are_read_and_that_is_told(tmp_path: Path):
    size = 3 * MIB
    found = await log_parts.read(source(tmp_path, size), whole=False)
    assert found is not None
    assert [(piece.offset, piece.end) for piece in found.pieces] == [(0, 256 * KIB), (2 * MIB, size)]
    assert [len(piece.data) for piece in found.pieces] == [256 * KIB, MIB]
    assert found.left == "were not read"
    assert found.notes[0].startswith("only its first 256K and its last 1M were read: it could not be searched there")


async def test_a_file_of_utf_16_is_not_searched(tmp_path: Path):
    path = tmp_path / "a.out"
    path.write_bytes(b"\xff\xfe" + "error\n".encode("utf-16-le") * 40_000)
    runner = Prepared(SlurmMissing("sh"))
    size = 2 + 12 * 40_000
    found = await log_parts.read(LogFileSource(runner, LocalFiles(), str(path), size), whole=False)
    assert found is not None
    assert runner.asked == []
    assert "it is in UTF-16" in found.notes[0]
    assert all(piece.offset % 2 == 0 for piece in found.pieces)


@pytest.mark.parametrize(("size", "start", "first"), [(10, 90, 0), (99, 1, 0), (100, 0, 1), (500, 0, 1)])
async def test_the_last_bytes_are_read_alone(tmp_path: Path, size: int, start: int, first: int):
    found = await log_parts.last(source(tmp_path, 100), size)
    assert found is not None
    (piece,) = found.pieces
    assert (piece.offset, piece.end, len(piece.data), piece.number) == (start, 100, 100 - start, first)
    assert found.left == "were not read"


async def test_a_file_that_is_gone_is_none(tmp_path: Path):
    gone = LogFileSource(Prepared(SlurmMissing("sh")), LocalFiles(), str(tmp_path / "none"), 10)
    assert await log_parts.read(gone, whole=False) is None
    assert await log_parts.last(gone, 5) is None
    large = LogFileSource(Prepared(SlurmMissing("sh")), LocalFiles(), str(tmp_path / "none"), 10 * MIB)
    assert await log_parts.read(large, whole=True) is None


async def test_around_a_sign_more_is_read_behind_a_traceback(tmp_path: Path):
    size = 4 * MIB
    at = 2 * MIB
    for text, behind in (("an error", 3 * KIB), ("Traceback (most recent call last):", 12 * KIB)):
        runner = Prepared(answer(f"9:{at}:0:{text}", "lines:1"))
        found = await log_parts.read(source(tmp_path, size, runner), whole=False)
        assert found is not None
        spans = [(piece.offset, piece.end) for piece in found.pieces]
        assert spans == [(0, 32 * KIB), (at - 6 * KIB, at + behind), (size - 160 * KIB, size)]
        assert found.pieces[0].number == 1
        assert found.pieces[1].number == 9 - found.pieces[1].data.count(b"\n", 0, 6 * KIB)
        assert found.notes[0].startswith("all 4M of it were searched: 1 line holds a word of a failure")


async def test_signs_that_lie_near_each_other_are_one_part(tmp_path: Path):
    at = 2 * MIB
    runner = Prepared(
        answer(
            f"9:{at}:0:an error", f"19:{at + 10 * KIB}:0:other error", f"99:{at + 20 * KIB + 1}:0:last error", "lines:3"
        )
    )
    found = await log_parts.read(source(tmp_path, 4 * MIB, runner), whole=False)
    assert found is not None
    spans = [(piece.offset - at, piece.end - at) for piece in found.pieces[1:-1]]
    assert spans == [(-6 * KIB, 13 * KIB), (14 * KIB + 1, 23 * KIB + 1)]
