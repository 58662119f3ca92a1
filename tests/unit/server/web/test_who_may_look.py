"""Who sees a page: by a link that works once, by a token, and nobody else; and what no answer leaves out."""

from __future__ import annotations

import threading

import pytest
from tests.unit.server.web.browsing import Browser, browser

from slurm_agent_tools.devcluster.fake.fake_slurm import FakeSlurm
from slurm_agent_tools.server.http import request_limits
from slurm_agent_tools.server.web.dashboard_app import PAGES, POLICY
from slurm_agent_tools.server.web.visitors import LASTS
from slurm_agent_tools.server.web.web_page import WebPage
from slurm_agent_tools.store.tokens import Token

pytestmark = pytest.mark.proves("pages-are-for-their-visitors")


@pytest.fixture
def visit(tmp_path) -> Browser:
    return browser(tmp_path, FakeSlurm())


async def test_a_link_works_once_and_for_who_opens_it(visit: Browser):
    key = visit.app.visitors.link()
    first = await visit.enter(key)
    assert first.status_code == 200
    assert (await visit.ask(visit.place + "now")).status_code == 200
    again = await visit.ask(f"/open/{key}")
    assert (again.status_code, "set-cookie" in again.headers) == (403, False)
    assert "was used" in again.text


async def test_a_look_ahead_at_a_link_does_not_use_it(visit: Browser):
    key = visit.app.visitors.link()
    assert (await visit.ask(f"/open/{key}", "HEAD")).status_code == 403
    assert (await visit.enter(key)).status_code == 200


async def test_a_new_link_ends_the_one_before(visit: Browser):
    old = visit.app.visitors.link()
    new = visit.app.visitors.link()
    assert (await visit.ask(f"/open/{old}")).status_code == 403
    assert (await visit.enter(new)).status_code == 200


async def test_the_cookie_is_for_no_script_no_other_site_and_no_other_place(visit: Browser):
    answer = await visit.enter()
    words = {word.strip().lower() for word in answer.headers["set-cookie"].split(";")[1:]}
    assert {"httponly", "samesite=strict", f"path={visit.place}"} <= words
    assert len(visit.place.split("/")[2]) == 32


async def test_behind_tls_the_cookie_travels_by_it_alone(tmp_path):
    visit = browser(tmp_path, FakeSlurm(), proxy=("hpc.example.org",))
    assert "secure" in (await visit.enter()).headers["set-cookie"].lower()


@pytest.mark.parametrize("path", ["/", "/now", "/live/now", "/v/0123456789abcdef0123456789abcdef/now", "/v/x/"])
async def test_strangers_see_no_page(visit: Browser, path: str):
    answer = await visit.ask(path)
    assert answer.status_code == 401
    assert "alice" not in answer.text


async def test_a_cookie_of_one_place_opens_no_other_and_a_place_without_its_cookie_is_closed(visit: Browser):
    await visit.enter()
    mine, cookie = visit.place, visit.cookie
    await visit.enter()
    assert (await visit.ask(visit.place + "now", headers={"cookie": cookie})).status_code == 401
    assert (await visit.ask(mine + "now", headers={"cookie": visit.cookie})).status_code == 401
    assert (await visit.ask(mine + "now", headers={"cookie": "sat_visit"})).status_code == 401


async def test_a_cookie_that_another_server_of_the_machine_set_shuts_nobody_out(visit: Browser):
    await visit.enter()
    for cookies in (
        f"{visit.cookie}; sat_visit=theirs",
        f"sat_visit=theirs; {visit.cookie}",
        f"a b=\x01; {visit.cookie}",
    ):
        assert (await visit.ask(visit.place + "now", headers={"cookie": cookies})).status_code == 200
    many = "; ".join([*["sat_visit=theirs"] * 50, visit.cookie])
    assert (await visit.ask(visit.place + "now", headers={"cookie": many})).status_code == 401


async def test_a_visit_ends(visit: Browser):
    passed = [0.0]
    visit.app.visitors.now = lambda: passed[0]
    await visit.enter()
    passed[0] = LASTS + 1
    assert (await visit.ask(visit.place + "now")).status_code == 401


async def test_a_token_signs_in_and_its_end_ends_the_visit(visit: Browser):
    token = visit.tokens.new("anna", "read")
    same = {"origin": "http://127.0.0.1:80", "sec-fetch-site": "same-origin"}
    answer = await visit.ask("/sign-in", "POST", data={"token": token}, headers=same)
    assert answer.status_code == 200
    assert token not in answer.text
    visit.keep(answer)
    assert (await visit.ask(visit.place + "now")).status_code == 200
    visit.tokens.revoke("anna")
    assert (await visit.ask(visit.place + "now")).status_code == 401


async def test_a_token_in_the_header_is_enough(visit: Browser):
    token = visit.tokens.new("anna", "read")
    for path in ("/", "/now", "/live/now"):
        assert (await visit.ask(path, headers={"authorization": f"Bearer {token}"})).status_code == 200
    assert (await visit.ask("/now", headers={"authorization": f"Bearer {token[:-1]}x"})).status_code == 401


async def test_one_token_ends_nobody_elses_visit(visit: Browser):
    await visit.enter()
    token = visit.tokens.new("anna", "read")
    known = visit.app.visitors.bearer(token)
    places = [visit.app.visitors.enter(known)[0].place for _ in range(300)]
    assert (await visit.ask(visit.place + "now")).status_code == 200
    assert [place for place in places if place in visit.app.visitors._known] == places[-60:]


async def test_a_token_for_monitoring_alone_shows_no_page(visit: Browser):
    token = visit.tokens.new("prometheus", "scrape")
    assert (await visit.ask("/now", headers={"authorization": f"Bearer {token}"})).status_code == 401
    assert (await visit.ask("/sign-in", "POST", data={"token": token})).status_code == 401


@pytest.mark.parametrize("sent", ["sat_0123456789abcdef_" + "x" * 43, "", "sat"])
async def test_a_wrong_token_signs_nobody_in(visit: Browser, sent: str):
    answer = await visit.ask("/sign-in", "POST", data={"token": sent})
    assert (answer.status_code, "set-cookie" in answer.headers) == (401, False)


@pytest.mark.parametrize("headers", [{"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}])
async def test_another_sites_page_signs_nobody_in(visit: Browser, headers: dict[str, str]):
    token = visit.tokens.new("anna", "read")
    answer = await visit.ask("/sign-in", "POST", data={"token": token}, headers=headers)
    assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)


async def test_a_form_that_is_too_long_is_not_read_to_its_end(visit: Browser):
    assert (await visit.ask("/sign-in", "POST", content=b"token=" + b"x" * 9000)).status_code == 413


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example"}, 421),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
    ],
)
async def test_other_names_and_other_sites_are_turned_away(visit: Browser, headers: dict[str, str], status: int):
    await visit.enter()
    assert (await visit.ask(visit.place + "now", headers=headers)).status_code == status


async def test_pages_are_only_read(visit: Browser):
    await visit.enter()
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert (await visit.ask(visit.place + "now", method)).status_code == 405


async def test_there_is_nothing_beside_the_pages(visit: Browser):
    await visit.enter()
    for path in ("/.well-known/oauth-protected-resource", "/etc/passwd", visit.place + "none"):
        assert (await visit.ask(path)).status_code == 404
    for name in ("../templates/page.html", "%2e%2e/fragments.py", "none.js"):
        assert (await visit.ask(f"/static/{name}")).status_code == 404


async def test_every_answer_says_what_a_browser_may_do_with_it(visit: Browser):
    await visit.enter()
    paths = [
        "/",
        "/sign-in",
        "/none",
        "/static/live.js",
        visit.place + "live/now",
        *(visit.place + one for one in PAGES),
    ]
    for path in paths:
        headers = (await visit.ask(path)).headers
        assert headers["content-security-policy"] == POLICY, path
        assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "same-origin")
        assert "unsafe" not in POLICY


async def test_a_visitor_who_asks_too_often_is_told_to_wait(tmp_path):
    visit = browser(tmp_path, FakeSlurm(), per_minute=3)
    await visit.enter()
    statuses = [(await visit.ask(visit.place + "now")).status_code for _ in range(5)]
    assert statuses == [200, 200, 200, 429, 429]


async def test_pages_and_scripts_hold_nothing_inline_and_load_nothing_from_elsewhere(visit: Browser):
    await visit.enter()
    for page in [*(one for one in PAGES if one not in {"job", "approve"}), "live/now"]:
        seen = await visit.see(page)
        for tag, attributes in seen.tags:
            assert "style" not in attributes, (page, tag)
            assert tag not in {"style", "iframe", "object", "embed"}
            assert not [name for name in attributes if name.startswith("on")]
            for name in ("src", "href", "action"):
                assert "//" not in (attributes.get(name) or ""), (page, attributes)
            assert tag != "script" or attributes.get("src")


async def test_signing_in_again_and_again_counts_for_the_token_and_is_not_remembered_for_ever(tmp_path, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(request_limits.time, "monotonic", lambda: now[0])
    visit = browser(tmp_path, FakeSlurm(), per_minute=20)
    token = visit.tokens.new("anna", "read")
    for _turn in range(3):
        statuses = []
        for _ in range(25):
            answer = await visit.ask("/sign-in", "POST", data={"token": token})
            statuses.append(answer.status_code)
            if answer.status_code == 200:
                visit.keep(answer)
                assert (await visit.ask(visit.place + "decisions")).status_code == 200
        assert statuses == [200] * 20 + [429] * 5
        now[0] += 61
    limits = visit.app.limits
    assert len(limits._levels) <= 21
    assert not limits._calls
    assert not limits._bytes


async def test_a_page_that_shows_one_thing_has_nothing_behind_its_name(visit: Browser):
    await visit.enter()
    for name in PAGES:
        status = 404 if not PAGES[name].named else 200
        assert (await visit.ask(f"{visit.place}{name}/")).status_code == (404 if name in {"job", "approve"} else 200)
        if status == 404:
            for rest in ("x", "1/2", "%2e%2e"):
                assert (await visit.ask(f"{visit.place}{name}/{rest}")).status_code == 404
                assert (await visit.ask(f"{visit.place}live/{name}/{rest}")).status_code == 404
    assert {name for name, _ in visit.app.collector._kept} <= set(PAGES)
    assert all(not rest or PAGES[name].named for name, rest in visit.app.collector._kept)


async def test_two_requests_of_a_visit_that_is_over_are_both_told_so(visit: Browser, monkeypatch):
    token = visit.tokens.new("anna", "read")
    visit.keep(await visit.ask("/sign-in", "POST", data={"token": token}))
    visit.tokens.revoke("anna")
    visitors, current = visit.app.visitors, visit.tokens.current
    place = visit.place.split("/")[2]

    def meanwhile() -> list[Token]:
        monkeypatch.setattr(visit.tokens, "current", current)
        assert visitors.at(place, visit.cookie) is None  # another request, in another thread
        return current()

    monkeypatch.setattr(visit.tokens, "current", meanwhile)
    assert (await visit.ask(visit.place + "now")).status_code == 401


async def test_a_search_among_very_many_jobs_holds_up_nobody_else(visit: Browser, monkeypatch):
    drawn: list[threading.Thread] = []
    shown = WebPage.shown
    monkeypatch.setattr(WebPage, "shown", lambda *of: drawn.append(threading.current_thread()) or shown(*of))
    await visit.enter()
    assert (await visit.ask(visit.place + "jobs?q=" + "+".join(["ab"] * 60))).status_code == 200
    assert drawn
    assert threading.main_thread() not in drawn
