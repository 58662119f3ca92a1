"""A person's yes by passkey in a real Chromium: enrolled at a terminal, given on the question's page, once, to one plan."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from tests.system.chromium import Chromium, chromium, passkey
from tests.system.faces import Place, at_terminal
from tests.system.test_approvals import blocked, log, write
from tests.system.test_dashboard import dashboard

pytestmark = pytest.mark.proves("passkey-is-once-and-exact")

ANSWER = """
const [options, verification, done] = arguments;
const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON({ ...options, userVerification: verification });
navigator.credentials.get({ publicKey }).then((found) => done(found.toJSON()), (error) => done(error.name));
"""
SEND = """
const [step, name, body, done] = arguments;
fetch(`../yes/${step}/${name}`, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
}).then(async (sent) => done({ status: sent.status, body: await sent.json() }), (error) => done(String(error)));
"""


class Elsewhere(BaseHTTPRequestHandler):
    """Another program's page at localhost."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<title>elsewhere</title>")

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def another_page() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Elsewhere)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://localhost:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


class Page:
    """The page of one question, and what is sent from it."""

    def __init__(self, browser: Chromium, name: str) -> None:
        self.browser, self.name = browser, name
        self.opens()

    def opens(self) -> None:
        self.browser.see(f"approve/{self.name}")

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


def faults(place: Place) -> list[str]:
    return [line["fault"] for line in log(place) if line["event"] == "yes_refused"]


def test_a_passkey_says_yes_once_to_exactly_that_plan_and_nothing_else_does(fresh: Place):
    write(fresh)
    with chromium() as browser:
        known = passkey(browser)

        def makes(link: str) -> None:
            browser.driver.get(link)
            browser.run("document.getElementById('yes').click()")
            browser.until(lambda: browser.text("said").startswith("Made: "), "the passkey is made")

        assert fresh.run([sys.executable, "-m", "slurm_agent_tools", "passkey", "add", "eve"]).returncode == 1, (
            "nobody is at a terminal"
        )
        code, screen = at_terminal(fresh, ["passkey", "add", "ada"], "yes", makes)
        assert (code, "Enrolled for http://localhost." in screen) == (0, True), screen

        name = blocked(fresh)
        with dashboard(fresh) as link:
            assert link.startswith("http://localhost:")
            browser.open(link)
            refused_each(fresh, browser, known, name)
            page = Page(browser, name)
            page.press("Approved with the passkey of ada.")
            assert [one for one in browser.complaints() if "403" not in one] == []
            browser.until(lambda: "it is approved" in browser.run("return document.body.textContent"), "it is shown")

            code, reply = fresh.cli("submit_job", "--script=long.sh")
            assert (code, reply["status"]) == (0, "submitted"), reply
            assert reply["decision"]["approval"]["channel"] == "passkey"
            assert reply["decision"]["approval"]["by"] == "ada"
            fresh.cli("wait_for_job", f"--job-id={reply['job_id']}", "--timeout-seconds=0")
            fresh.cli("cancel_job", f"--job-id={reply['job_id']}", "--reason=tried")
            assert blocked(fresh) != name, "a yes counts once"

    (approved,) = [line for line in log(fresh) if line["event"] == "approved"]
    assert (approved["by"], approved["channel"], approved["approval"]) == ("ada", "passkey", name)


def refused_each(place: Place, browser: Chromium, known: str, name: str) -> None:
    """Without user verification, replayed, from another origin, altered: refused and noted down."""
    page = Page(browser, name)
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

    begun = page.begin()
    with another_page() as foreign:
        browser.driver.get(foreign)
        stolen = page.answer(begun)
        assert stolen["type"] == "public-key"
    page.opens()
    assert page.finish(begun, stolen) == 403

    begun = page.begin()
    answer = page.answer(begun)
    write(place, "sleep 31")
    assert page.finish(begun, answer) == 403
    write(place)
    expected = ["no answer", "no user verification", "replayed", "another question", "another origin", "another plan"]
    assert faults(place) == expected
    assert blocked(place) == name
