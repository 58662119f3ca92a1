"""A question's page where there are many questions, and where one has a long text: nobody waits for another's page."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
from tests.unit.server.site.site_in_memory import BOB, LONG, Site
from tests.unit.server.site.test_site_page import Person, person
from tests.unit.server.site.test_site_tickets import words

from slurm_agent_tools.server.site import site_page
from slurm_agent_tools.store.ledger import Approvals
from slurm_agent_tools.store.submissions import Approval, Owner
from slurm_agent_tools.text import sanitize
from slurm_agent_tools.transport.unix_peer import UnixUser

LARGE = LONG + "# a line of a script that a person reads on a page\n" * 2000


async def question_of(made: Site, user: UnixUser) -> tuple[str, str]:
    """Another question, of the script as it stands, by its id and its page."""
    made.who = user
    name = (await made.client().ask("judge", words(made)))["question"]
    return name, (await made.client().ask("question", {"id": name}))["page"]


async def questions_of(ada: Person) -> list[tuple[str, int]]:
    """The questions that are listed, and what their pages answer."""
    listed = (await ada.made.client().ask("questions", {}))["questions"]
    return [(one["id"], (await ada.browser.get(one["page"])).status_code) for one in listed]


@pytest.mark.parametrize("most", [3, 20, 40])
async def test_every_open_question_that_is_listed_has_a_page(tmp_path: Path, most: int):
    """Of twenty the newest four had none."""
    async with person(tmp_path, open_questions=most) as ada:
        await ada.asked()
        context = ada.made.users.context(ada.made.users._users[1000], str(ada.made.project), None)  # type: ignore[arg-type]
        ledger, owner = context.store.approvals, context.owner
        first = ledger.find(owner, ada.name)
        assert first is not None
        for number in range(1, most):
            ledger.ask(owner, replace(first, id=f"q{number}", created=ada.made.slurm.clock.now()))
        found = await questions_of(ada)
        assert {name for name, _ in found} == {ada.name, *(f"q{number}" for number in range(1, most))}
        assert {status for _, status in found} == {200}
        for number in range(1, most):
            ledger.update(replace(first, id=f"q{number}"), declined=ada.made.slurm.clock.now())
            ledger.ask(owner, replace(first, id=f"r{number}", created=ada.made.slurm.clock.now()))
        found = await questions_of(ada)
        assert (len(found), {status for _, status in found}) == (most, {200})


async def test_a_long_text_is_made_a_page_beside_the_event_loop_a_piece_at_a_time_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """While one piece is made no other thread computes, so it must not be all of it."""
    async with person(tmp_path) as ada:
        monkeypatch.setattr("tests.unit.server.site.test_site_page.LONG", LARGE)
        await ada.asked()
        visible, pieces = sanitize.visible, list[tuple[int, int]]()

        def noted(text: str) -> str:
            pieces.append((threading.get_ident(), len(text)))
            return visible(text)

        monkeypatch.setattr(site_page.sanitize, "visible", noted)
        first = (await ada.browser.get(ada.link)).text
        made = [(thread, size) for thread, size in pieces if size > 100]
        assert first.count("# a line of a script that a person reads on a page\n") == 2000
        assert threading.get_ident() not in {thread for thread, _ in made}
        assert max(size for _, size in made) < site_page._PIECE + 200
        pieces.clear()
        assert (await ada.browser.get(ada.link)).text == first
        assert [size for _, size in pieces if size > 100] == []
        assert await ada.says_yes() == 200
        assert "it is approved" in (await ada.browser.get(ada.link)).text


async def test_of_one_user_one_page_is_made_at_a_time_and_others_do_not_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Who has the link may ask for it again and again."""
    go_on, page_of, read = threading.Event(), site_page._page_of, Approvals.find
    making, reading = list[str](), list[str]()

    def slowly(*asked: object) -> bytes:
        item = asked[1]
        assert isinstance(item, Approval)
        making.append(item.id)
        if item.id == ada.name:
            assert go_on.wait(60)
        return page_of(*asked)  # type: ignore[arg-type]

    def noted(self: Approvals, owner: Owner, name: str) -> Approval | None:
        reading.append(name)
        return read(self, owner, name)

    async with person(tmp_path) as ada:
        monkeypatch.setattr("tests.unit.server.site.test_site_page.LONG", LARGE)
        await ada.asked()
        (ada.made.project / "job.sh").write_text(LONG)
        _, theirs = await question_of(ada.made, BOB)
        monkeypatch.setattr(site_page, "_page_of", slowly)
        monkeypatch.setattr(Approvals, "find", noted)
        answers = list[int]()

        async def ask() -> None:
            answers.append((await ada.browser.get(ada.link)).status_code)

        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(ask)
            with anyio.fail_after(60):
                while not making:
                    await anyio.lowlevel.checkpoint()
            assert (await ada.browser.get(theirs)).status_code == 200
            assert (making.count(ada.name), reading.count(ada.name), answers) == (1, 1, [])
            go_on.set()
        assert answers == [200] * 5


def test_a_text_is_cut_at_the_ends_of_lines_and_nothing_of_it_is_lost():
    text = "".join(f"{number} \u202e\n" for number in range(5000)) + "the end"
    pieces = list(site_page._pieces(text))
    assert len(pieces) > 1
    assert "".join(pieces) == sanitize.visible(text)
    assert all(piece.endswith("\n") for piece in pieces[:-1])
    assert list(site_page._pieces("")) == []


async def test_a_challenge_that_waits_for_its_answer_holds_no_long_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Up to 64 wait of one user."""
    async with person(tmp_path) as ada:
        monkeypatch.setattr("tests.unit.server.site.test_site_page.LONG", LARGE)
        await ada.asked()
        begun = await ada.begins()
        (held,) = ada.page._pages["1000"].questions._asked.values()
        assert len(repr(held)) < 1000
        assert await ada.says_yes(begun) == 200
