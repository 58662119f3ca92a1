"""The official MCP Inspector shows our views in its own frame: in a real Chromium, in both eras, over a real Slurm."""

from __future__ import annotations

import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from tests.conformance.npm_packages import NODE
from tests.system.chromium import DRIVER, PROGRAM, Chromium, chromium
from tests.system.faces import Place
from tests.watchdog import SECONDS

from slurm_agent_tools.api.serialize import BY_NAME

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.system,
    pytest.mark.proves("conformance"),
    pytest.mark.skipif(not (PROGRAM.exists() and DRIVER.exists()), reason="there is no Chromium"),
]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@contextmanager
def inspector(packages: Path, place: Place, home: Path, era: str) -> Iterator[str]:
    """The address of an Inspector for a browser, before our server."""
    launcher = packages / "inspector" / "clients" / "launcher" / "build" / "index.js"
    server = place.as_user([sys.executable, "-m", "slurm_agent_tools", "serve"])
    places = [word for name, value in place.environment().items() for word in ("-e", f"{name}={value}")]
    argv = [NODE, launcher, "--web", *server, "--cwd", place.project, *places, "--protocol-era", era]
    env = os.environ | {
        "HOME": str(home),
        "PATH": f"{NODE.parent}:{os.environ['PATH']}",
        "CLIENT_PORT": str(free_port()),
        "MCP_SANDBOX_PORT": str(free_port()),
        "MCP_AUTO_OPEN_ENABLED": "false",
    }
    process = subprocess.Popen(
        [str(word) for word in argv], env=env, cwd=home, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        start_new_session=True,
    )  # fmt: skip
    try:
        yield _address(process)
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)
        process.stdout.close()


def _address(process: subprocess.Popen[bytes]) -> str:
    said, end = b"", time.monotonic() + SECONDS
    while time.monotonic() < end and process.poll() is None:
        if select.select([process.stdout], [], [], 0.2)[0]:
            said += os.read(process.stdout.fileno(), 65536)
        if found := re.search(rb"http://\S+token=\S+", said, re.IGNORECASE):
            return found[0].decode()
    raise AssertionError(said.decode())


def labelled(browser: Chromium, words: str) -> list[WebElement]:
    """What is called so, and pressed where it stands."""
    return browser.driver.find_elements(By.XPATH, f"//*[normalize-space(.)='{words}' or @aria-label='{words}']")


def press(browser: Chromium, words: str) -> None:
    browser.until(lambda: labelled(browser, words) != [], f"there is a {words!r}")
    browser.driver.execute_script("arguments[0].click()", labelled(browser, words)[-1])


def in_view(browser: Chromium, script: str) -> str:
    """What a script returns in the innermost frame; empty where there is none yet."""
    driver = browser.driver
    driver.switch_to.default_content()
    while frames := driver.find_elements(By.TAG_NAME, "iframe"):
        driver.switch_to.frame(frames[-1])
    try:
        return str(driver.execute_script(script) or "")
    finally:
        driver.switch_to.default_content()


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_shows_the_fleet(packages: Path, place: Place, tmp_path: Path, era: str):
    partitions = place.slurm("sinfo", "-h", "-p", "gpu", "-o", "%R").split()
    with inspector(packages, place, tmp_path, era) as address, chromium() as browser:
        browser.screen(1280, 900)
        browser.driver.get(address)
        browser.until(
            lambda: browser.driver.find_elements(By.CSS_SELECTOR, "[role=switch]") != [], "a server is listed"
        )
        browser.driver.execute_script("document.querySelector('[role=switch]').click()")
        browser.until(lambda: labelled(browser, "Disconnect from server") != [], "it is connected")
        press(browser, "Apps")
        press(browser, BY_NAME["get_fleet"].title)
        press(browser, "Open App")
        told = "return document.getElementById('shown')?.innerText"  # its form sends an empty `match`
        wanted = ["Which tier fits", *partitions]
        browser.until(lambda: all(word in in_view(browser, told) for word in wanted), "the view shows the tiers")
        heading = in_view(browser, "return getComputedStyle(document.querySelector('h2')).display")
        assert heading == "block"  # our style is in force
