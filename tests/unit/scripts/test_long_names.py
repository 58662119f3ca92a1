"""A short script may join folders to names of any length, and tell of hundreds of them."""

from __future__ import annotations

import pytest
from tests.unit.scripts.project import ROOT, MemoryFiles, project, read

from slurm_agent_tools.scripts.reader import MAX_PATH
from slurm_agent_tools.scripts.reading_state import MAX_TOLD, as_told

LONG = "/".join(["d" * 200] * 30)


async def test_a_path_that_no_file_can_have_is_not_looked_at_and_a_person_is_asked():
    files = project(a__py="print(1)\n")
    seen, real = list[str](), files.real_path

    async def noted(path: str) -> str:
        seen.append(path)
        return await real(path)

    files.real_path = noted  # type: ignore[method-assign]
    reading = await read(f"cd {LONG}\npython a.py\n", files)
    assert f"{ROOT}/a.py" in seen
    assert max(map(len, seen)) <= MAX_PATH
    assert set(reading.files) == {"a.py"}
    (found,) = reading.findings
    assert (found.rule, found.level) == ("opaque-code", "approve")
    assert found.what.startswith("it runs dddd")
    assert found.what.endswith("a.py, which has a path too long for a file")


async def test_what_is_told_of_findings_has_a_bound():
    name = "x" * 3000
    reading = await read("".join(f"python {name}{n}.py\n" for n in range(150)), files_of_a_gibibyte())
    assert len(reading.findings) == 100
    assert max(len(found.what) for found in reading.findings) <= MAX_TOLD + 50
    assert all(found.what.startswith("it runs xxx") for found in reading.findings)
    assert reading.findings[0].what.endswith("0.py, which is too large to be read")


@pytest.mark.parametrize("text", ["it runs sbatch", "y" * MAX_TOLD])
def test_what_is_told_in_few_words_stays_as_it_is(text: str):
    assert as_told(text) == text


def files_of_a_gibibyte() -> MemoryFiles:
    """A project that has whatever is asked for."""
    files = project()

    async def stat(path: str):
        return type("Stat", (), {"kind": "file", "size": 2**30})()

    files.stat = stat  # type: ignore[method-assign]
    return files
