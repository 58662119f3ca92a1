"""What a stage runs as one hash: read again only where a file changed, and never trusted a moment after a write."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.unit.api.campaigns import CampaignScene

from slurm_agent_tools.api.stage_code import StageHashes, stage_code
from slurm_agent_tools.models.campaign_file import CampaignStage, MetricSource
from slurm_agent_tools.transport.local import LocalFiles

LATER = 3600.0


class CountedFiles(LocalFiles):
    """Files of this machine, and how many reads of them there were."""

    def __init__(self) -> None:
        self.reads = 0

    async def read(self, path: str, *, offset: int = 0, size: int | None = None) -> bytes | None:
        self.reads += 1
        return await super().read(path, offset=offset, size=size)


class Watched:
    """A project with a stage, and its hash as it is asked for again and again, `after` seconds from now."""

    def __init__(self, folder: Path, after: float = LATER) -> None:
        self.scene = CampaignScene(folder)
        self.scene.write("data/a.csv", "1\n")
        self.scene.write("data/b.csv", "2\n")
        self.files = CountedFiles()
        self.hashes = StageHashes(lambda: time.time() + after)

    @property
    def stage(self) -> CampaignStage:
        return self.scene.file.stages[0].model_copy(update={"reads": ("data",)})

    async def asked(self) -> tuple[str, int]:
        """The hash, and how many files were read for it."""
        before = self.files.reads
        found = await self.hashes.of(self.files, str(self.scene.project), self.stage)
        return found, self.files.reads - before


async def test_what_did_not_change_is_not_read_again(tmp_path: Path):
    watched = Watched(tmp_path)
    first, read = await watched.asked()
    assert read >= 3
    assert await watched.asked() == (first, 0)


@pytest.mark.parametrize("change", ["contents", "one more", "gone", "program", "a link"])
async def test_what_changed_is_read_again_and_is_another(tmp_path: Path, change: str):
    watched = Watched(tmp_path)
    first, _ = await watched.asked()
    data = watched.scene.project / "data"
    if change == "contents":
        (data / "a.csv").write_text("3\n")  # as many bytes as before
    elif change == "one more":
        (data / "c.csv").write_text("")
    elif change == "gone":
        (data / "b.csv").unlink()
    elif change == "program":
        watched.scene.write("train.py", "print('val_loss=0.25')\n")
    else:
        (data / "b.csv").unlink()
        (data / "b.csv").symlink_to("a.csv")
    again, read = await watched.asked()
    assert again != first
    assert read > 0
    assert await watched.asked() == (again, 0)


async def test_a_file_that_was_written_a_moment_before_is_read_again(tmp_path: Path):
    watched = Watched(tmp_path, after=0)
    first, read = await watched.asked()
    assert await watched.asked() == (first, read)


async def test_another_stage_has_a_hash_of_its_own(tmp_path: Path):
    watched = Watched(tmp_path)
    first, _ = await watched.asked()
    other = watched.stage.model_copy(update={"setup": ("module load python",)})
    assert await watched.hashes.of(watched.files, str(watched.scene.project), other) != first
    assert await watched.asked() == (first, 0)


async def test_what_a_program_reads_beside_the_files_of_its_trials_is_part_of_what_runs(tmp_path: Path):
    """Only names that a trial's own file can have are its outputs: r1-t3.json, and not model.json beside it."""
    watched = Watched(tmp_path)
    watched.scene.write("train.py", "import json\nmodel = json.load(open('model.json'))\nprint('val_loss=0.5')\n")
    watched.scene.write("model.json", '{"layers": 2}')
    stage = watched.stage.model_copy(update={"metrics": MetricSource(file="{trial}.json")})
    root = str(watched.scene.project)
    first = await stage_code(watched.files, root, stage)
    watched.scene.write("r1-t3.json", '{"val_loss": 0.5}')
    assert await stage_code(watched.files, root, stage) == first
    watched.scene.write("model.json", '{"layers": 3}')
    assert await stage_code(watched.files, root, stage) != first
