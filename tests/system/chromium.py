"""Debian's Chromium, driven by Selenium through its own chromedriver: what a page looks like to a person."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from tests.conformance.npm_packages import installed
from tests.watchdog import SECONDS

PROGRAM, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")


@dataclass
class Chromium:
    """One browser; `root` is the place where a link led."""

    driver: webdriver.Chrome
    root: str = ""

    def open(self, link: str) -> None:
        """Follow a link that works once, to the page behind it."""
        self.driver.get("about:blank")
        self.complaints()  # of a page whose server has ended since
        self.driver.get(link)
        self.until(lambda: "/v/" in self.driver.current_url, "the link leads to a page")
        self.root = self.driver.current_url.rpartition("/")[0] + "/"

    def see(self, page: str) -> None:
        self.driver.get(self.root + page)

    def run(self, script: str) -> Any:
        """What a script of the test returns; the page's policy says nothing of it."""
        return self.driver.execute_script(script)

    def text(self, element: str) -> str:
        """The text of the element with this id."""
        return str(self.run(f"return document.getElementById({element!r}).textContent")).strip()

    def screen(self, width: int, height: int = 800, *, dark: bool = False, media: str = "") -> None:
        """A viewport of just this size."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": scheme})

    def scripts(self, *, on: bool) -> None:
        """Switch the page's own scripts on or off."""
        self.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not on})

    def complaints(self) -> list[str]:
        """What the console said since it was asked last: errors, and violations of the page's policy."""
        return [one["message"] for one in self.driver.get_log("browser")]

    def barriers(self) -> list[str]:
        """What axe-core finds on the page that keeps people out: its serious and critical violations, with the place."""
        self.run((installed() / "axe-core" / "axe.min.js").read_text())
        found = self.driver.execute_async_script(
            "const tell = arguments[arguments.length - 1];"
            "axe.run(document, {resultTypes: ['violations']}).then(made => tell(made.violations), problem => tell(String(problem)))"
        )
        assert isinstance(found, list), found
        return [
            f"{one['impact']} {one['id']}: {node['html'][:200]}"
            for one in found
            if one["impact"] in {"serious", "critical"}
            for node in one["nodes"]
        ]

    def until(self, wanted: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + SECONDS
        while not wanted():
            assert time.monotonic() < end, f"it did not come to this: {what}"
            time.sleep(0.1)


@contextmanager
def chromium(*words: str) -> Iterator[Chromium]:
    """A browser with a profile of its own, until the block ends, with further options. Root has no sandbox."""
    options = webdriver.ChromeOptions()
    options.binary_location = str(PROGRAM)
    for word in ("--headless=new", "--no-sandbox", *words):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    try:
        yield Chromium(driver)
    finally:
        driver.quit()


def passkey(browser: Chromium) -> str:
    """Give the browser an authenticator that checks who is there, and somebody who always is; its id."""
    browser.driver.execute_cdp_cmd("WebAuthn.enable", {})
    options = {
        "protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True,
        "isUserVerified": True, "automaticPresenceSimulation": True,
    }  # fmt: skip
    made = browser.driver.execute_cdp_cmd("WebAuthn.addVirtualAuthenticator", {"options": options})
    return str(made["authenticatorId"])
