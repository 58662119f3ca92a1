"""Long texts of one user's keep nobody waiting at the site's service."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.server.site.site_in_memory import ALICE, LONG, Site, site
from tests.unit.server.site.test_site_page import person

from slurm_agent_tools.errors import InputError, StorageError
from slurm_agent_tools.models.arguments import GetStatus
from slurm_agent_tools.policy import tickets
from slurm_agent_tools.server.site import site_page
from slurm_agent_tools.server.site.remote_files import RemoteFiles
from slurm_agent_tools.server.site.site_page import SitePage
from slurm_agent_tools.services import approval
from slurm_agent_tools.store.submissions import Approval
from slurm_agent_tools.text import plan_text

POLICY = 'limits: {time_limit: {free: "12:00:00", justify: "12:00:00"}}\n'


def words(made: Site, **asked: object) -> dict[str, object]:
    return {
        "arguments": {"script": "job.sh", **asked}, "caller": ["test", "1", "cli"], "analysed": [],
        "status_read": made.slurm.clock.now().isoformat(),
    }  # fmt: skip


@pytest.mark.parametrize(("lines", "beside"), [(3, False), (3000, True)])
async def test_a_long_script_is_judged_compared_and_shown_beside_the_event_loop(
    lines: int, beside: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    seen: dict[str, set[bool]] = {}

    def note(module: object, name: str) -> None:
        real: Callable[..., object] = getattr(module, name)

        def noted(*said: object, **more: object) -> object:
            seen.setdefault(name, set()).add(threading.current_thread() is not threading.main_thread())
            return real(*said, **more)

        monkeypatch.setattr(module, name, noted)

    for module, name in (
        (tickets, "evaluate_for_ticket"), (plan_text, "differences"), (approval, "_body"), (approval, "_shows"),
        (site_page, "_page_of"),
    ):  # fmt: skip
        note(module, name)
    async with person(tmp_path) as ada:
        monkeypatch.setattr(f"{person.__module__}.LONG", LONG + "echo 1\n" * lines)
        await ada.asked()
        await ada.made.submit()
        assert (await ada.browser.get(ada.link)).status_code == 200
    assert seen == {name: {beside} for name in ("evaluate_for_ticket", "differences", "_body", "_shows", "_page_of")}


@pytest.mark.parametrize(("files", "beside"), [(2, False), (30, True)])
async def test_a_question_about_long_paths_is_written_beside_the_event_loop(
    files: int, beside: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    seen: list[bool] = []
    real = approval._body

    def noted(*said: Any) -> str:
        seen.append(threading.current_thread() is not threading.main_thread())
        return real(*said)

    monkeypatch.setattr(approval, "_body", noted)
    async with site(tmp_path, text=POLICY) as made:
        folder = made.project.joinpath(*["d" * 200] * 5)
        folder.mkdir(parents=True)
        for number in range(files):
            (folder / f"x{number}").write_text("true\n")
        lines = [f"cd {folder.relative_to(made.project)}", *(f". ./x{number}" for number in range(files))]
        (made.project / "job.sh").write_text("\n".join([LONG, *lines, ""]))
        await made.tools.call("get_status", GetStatus())
        assert (await made.client().ask("judge", words(made)))["question"]
    assert seen == [beside]


async def test_a_question_of_more_than_a_person_can_read_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(approval, "_MOST_FACTS", 10_000)
    async with site(tmp_path, text=POLICY) as made:
        (made.project / "job.sh").write_text(LONG + "echo 1\n" * 9000)
        await made.tools.call("get_status", GetStatus())
        assert (await made.client().ask("judge", words(made)))["question"]  # of its script all is shown
        with pytest.raises(InputError, match="more than a person can read: over 10000 characters of arguments"):
            await made.client().ask("judge", words(made, args=["x" * 10_000]))
        assert len((await made.client().ask("questions", {}))["questions"]) == 1


async def test_a_path_that_no_file_can_have_is_not_asked_for():
    kept: list[int] = []
    with pytest.raises(StorageError, match="too long for a file"):
        await RemoteFiles(None, kept.append).stat("/p/" + "d/" * 2047)


async def test_a_list_of_questions_leaves_their_texts_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    async with site(tmp_path, text=POLICY) as made:
        (made.project / "job.sh").write_text(LONG)
        name = (await made.client().ask("judge", words(made)))["question"]
        approvals = made.ledger().approvals
        read = list[str]()
        real = approvals.open

        def noted(*said: object, **more: object) -> list[Approval]:
            found = real(*said, **more)  # type: ignore[arg-type]
            read.extend(item.plan for item in found)
            return found

        monkeypatch.setattr(approvals, "open", noted)
        (listed,) = (await made.client().ask("questions", {}))["questions"]
        assert (listed["id"], listed["job_name"]) == (name, "train")
        assert read == [""]


async def test_each_of_as_many_questions_as_may_be_open_has_its_page(tmp_path: Path):
    async with site(tmp_path, open_questions=30) as made:
        page = SitePage("https://approve.example.org", made.users, made.config)
        for closed in range(40):
            page.link(ALICE, "/p", f"closed {closed}")
        early = [page.link(ALICE, "/p", str(number)) for number in range(15)]
        for closed in range(10):
            page.link(ALICE, "/p", f"closed later {closed}")
        links = [page.link(ALICE, "/p", str(number)) for number in range(30)]
        assert links[:15] == early
        assert {link.split("/")[-2] for link in links} == set(page._pages[str(ALICE.uid)].links)
