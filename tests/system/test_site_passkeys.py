"""A person's yes by passkey at the site's service, in a real Chromium: on its own page, once, to one plan."""

from __future__ import annotations

import json
import pwd
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.system.chromium import Chromium, chromium, passkey
from tests.system.dashboards import dashboard
from tests.system.faces import Place
from tests.system.site_service import PAGE, SiteOnCluster
from tests.system.test_boundary import ask
from tests.system.test_connect import approve, ruled, scripted
from tests.system.test_passkeys import ANSWER, another_page
from tests.system.tls_door import certificate, door

pytestmark = pytest.mark.proves("passkey-at-the-site")

NAME = PAGE.removeprefix("https://")
FOREIGN = f"shell.{NAME}"
"""A name below, for which a browser lets a passkey of the name above answer: the origin tells it."""

SEND = """
const [step, name, body, done] = arguments;
fetch(`yes/${step}/${name}`, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
}).then(async (sent) => done({ status: sent.status, body: await sent.json() }), (error) => done(String(error)));
"""


@contextmanager
def browsing(site: SiteOnCluster, folder: Path) -> Iterator[Chromium]:
    """A browser to which the site's name leads, and a foreign one below it."""
    with another_page() as foreign:
        made, mark = certificate(folder, NAME, FOREIGN)
        port = foreign.rstrip("/").rpartition(":")[2]
        with (
            door(made, f"unix:{site.folder}/run/site-page.sock") as ours,
            door(made, f"tcp:{port}") as theirs,
            chromium(
                f"--host-resolver-rules=MAP {NAME}:443 127.0.0.1:{ours}, MAP {FOREIGN}:443 127.0.0.1:{theirs}",
                f"--ignore-certificate-errors-spki-list={mark}",
            ) as browser,
        ):
            yield browser


class Question:
    """The page of one question, and what is sent from it."""

    def __init__(self, browser: Chromium, name: str, link: str) -> None:
        self.browser, self.name, self.link = browser, name, link
        browser.driver.get(link)

    def send(self, step: str, **body: Any) -> dict[str, Any]:
        return self.browser.driver.execute_async_script(SEND, step, self.name, body)

    def begin(self) -> dict[str, Any]:
        shown = self.browser.run("return document.getElementById('yes').dataset.shown")
        begun = self.send("begin", shown=shown)
        assert begun["status"] == 200, begun
        return begun["body"]

    def answer(self, begun: dict[str, Any], verification: str = "required") -> Any:
        return self.browser.driver.execute_async_script(ANSWER, begun["options"], verification)

    def finish(self, begun: dict[str, Any], answer: Any) -> int:
        return self.send("finish", number=begun["number"], answer=answer)["status"]

    def press(self, told: str) -> None:
        self.browser.run("document.getElementById('yes').click()")
        self.browser.until(lambda: told in self.browser.text("said"), told)


def log(site: SiteOnCluster, place: Place) -> list[dict[str, Any]]:
    """What the service wrote down of this user's project."""
    uid = pwd.getpwnam(place.cluster.user).pw_uid
    lines = (site.folder / f"state/users/{uid}/decisions.jsonl").read_text().splitlines()
    return [one for one in map(json.loads, lines) if one.get("project") == str(place.project)]


def enrolled(browser: Chromium) -> str:
    """A new passkey's line, as the page shows it to a person."""
    browser.driver.get(f"{PAGE}/enrol/ada")
    browser.run("document.getElementById('yes').click()")
    browser.until(lambda: browser.text("said").startswith("Made."), "the passkey is made")
    return browser.text("said").partition("allowed_passkeys: ")[2]


def test_a_passkey_says_yes_on_the_services_own_page_and_nowhere_else(site_service: SiteOnCluster, tmp_path: Path):
    place = site_service.another()
    script = scripted(place, "long", "sleep 600", "--time=120")
    with browsing(site_service, tmp_path) as browser:
        known = passkey(browser)
        line = enrolled(browser)
        assert line.startswith(f"ada {PAGE} "), line
        with ruled(site_service, f"approval_channels: [passkey]\nallowed_passkeys: ['{line}']\n"):
            place.cli("get_status", "--no-cache")
            code, reply = place.cli("submit_job", f"--script={script}")
            assert (code, reply["blocker"]) == (3, "approval"), reply
            name = reply["approval_id"]
            told = approve(site_service, place, name)
            link = told.stdout.splitlines()[-1]
            assert (told.returncode, link.startswith(f"{PAGE}/q/")) == (3, True), told
            with dashboard(place) as pages:
                browser.open(pages)
                browser.see("decisions")
                assert link in browser.run("return [...document.links].map((one) => one.href)")
            refused_each(site_service, place, browser, known, name, link)
            question = Question(browser, name, link)
            assert approve(site_service, place, name, "--show").stdout.rstrip("\n").splitlines()[-1] in browser.run(
                "return document.querySelector('pre').textContent"
            )
            question.press("Approved with the passkey of ada.")
            assert [one for one in browser.complaints() if "403" not in one] == []
            code, reply = place.cli("submit_job", f"--script={script}")
            assert (code, reply["status"]) == (0, "submitted"), reply
            assert reply["decision"]["approval"]["by"] == "ada"
            place.slurm("scancel", reply["job_id"])
            code, reply = place.cli("submit_job", f"--script={script}", "--idempotency-key=again")
            assert (code, reply["approval_id"] != name) == (3, True), "a yes counts once"
    (approved,) = [line for line in log(site_service, place) if line["event"] == "approved"]
    assert (approved["by"], approved["channel"], approved["approval"]) == ("ada", "passkey", name)


def refused_each(site: SiteOnCluster, place: Place, browser: Chromium, known: str, name: str, link: str) -> None:
    """Without user verification, replayed, another plan's, from another origin, over the socket: refused, noted down."""
    page = Question(browser, name, link)
    browser.driver.execute_cdp_cmd("WebAuthn.setUserVerified", {"authenticatorId": known, "isUserVerified": False})
    page.press("This was not done.")
    begun = page.begin()
    unverified = page.answer(begun, "discouraged")
    assert page.finish(begun, unverified) == 403
    browser.driver.execute_cdp_cmd("WebAuthn.setUserVerified", {"authenticatorId": known, "isUserVerified": True})
    assert page.finish(begun, unverified) == 403
    begun = page.begin()
    verified = page.answer(begun)
    assert page.finish(page.begin(), verified) == 403
    altered = {
        **verified,
        "response": {**verified["response"], "signature": page.answer(begun)["response"]["signature"]},
    }
    assert page.finish(begun, altered) == 403
    assert page.send("begin", shown="0" * 64)["status"] == 403

    begun = page.begin()
    browser.driver.get(f"https://{FOREIGN}/")
    stolen = page.answer(begun)
    assert stolen["type"] == "public-key", stolen
    browser.driver.get(link)
    assert page.finish(begun, stolen) == 403
    proof = json.dumps({"nonce": begun["number"], **stolen["response"]})
    said = ask(site, place, "answer", id=name, channel="passkey", proof=proof, who="ada")
    assert "does not count here" in json.dumps(said)

    faults = [line["fault"] for line in log(site, place) if line["event"] == "yes_refused"]
    expected = ["no answer", "no user verification", "replayed", "another question", "signature", "another plan"]
    assert faults == [*expected, "another origin"]
    code, reply = place.cli("submit_job", "--script=long.sh")
    assert (code, reply["approval_id"]) == (3, name)
