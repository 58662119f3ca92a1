"""The image of the Containerfile, built on a bare system in place of the base image, which is not downloaded."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from tests.install.conftest import BARE_ALONE, ROOT, ran

from slurm_agent_tools.api.catalogue import TOOLS

pytestmark = BARE_ALONE


@pytest.fixture
def buildah(bare_system: Path) -> Callable[..., list[str]]:
    """Command lines of the builder, whose images lie beside the system."""
    if shutil.which("buildah") is None:
        pytest.skip("no builder is at hand: Debian and Ubuntu have one in the package buildah")
    images = bare_system / "images"
    storage = ["--storage-driver", "vfs", "--root", f"{images}/all", "--runroot", f"{images}/running"]
    return lambda word, *words: ["buildah", *storage, word, *map(str, words)]


async def test_the_image_is_built_and_serves_as_an_ordinary_user(
    bare_system: Path, buildah: Callable[..., list[str]], tmp_path: Path
) -> None:
    archive = bare_system / "base.tar"
    left_out = [f"--exclude=./{name}" for name in ("src", "home/*", "dev/*")]
    ran("tar", "-C", bare_system / "system", *left_out, "-cf", archive, ".")
    empty = ran(*buildah("from", "scratch")).strip()
    ran(*buildah("add", empty, archive, "/"))
    ran(*buildah("commit", "--rm", empty, "localhost/bare"))
    folders = [f"--volume={name}:{name}:ro" for name in (bare_system / "binds").read_text().splitlines()]
    words = ["--isolation=chroot", "--pull-never", "--build-arg=BASE=localhost/bare", *folders, "--target=serve"]
    ran(*buildah("build", *words, "-t", "localhost/serve", "-f", ROOT / "Containerfile", ROOT), seconds=1200)

    container = ran(*buildah("from", "--pull-never", "localhost/serve")).strip()
    within = buildah("run", "--isolation=chroot", container, "--")
    assert re.match(r"uid=10001\(agent\) ", ran(*within, "id"))
    server = StdioServerParameters(command=within[0], args=[*within[1:], "slurm-agent-tools", "serve"], cwd=tmp_path)
    async with Client(server, mode="legacy") as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == {tool.name for tool in TOOLS}
    ran(*buildah("rm", "--all"))
