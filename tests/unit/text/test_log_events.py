import json
import logging

import pytest

from slurm_agent_tools.text import log_events


@pytest.fixture(autouse=True)
def restored():
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    for handler in [handler for handler in root.handlers if handler not in handlers]:
        root.removeHandler(handler)
    for handler in handlers:
        if handler not in root.handlers:
            root.addHandler(handler)
    root.setLevel(level)


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    out, err = capsys.readouterr()
    assert out == ""
    return [json.loads(line) for line in err.splitlines()]


@pytest.mark.parametrize(
    ("level", "told"),
    [("debug", ["d", "i", "w", "e"]), ("info", ["i", "w", "e"]), ("warning", ["w", "e"]), ("error", ["e"])],
)
def test_only_the_asked_levels_are_told_and_on_standard_error(capsys, level, told):
    log_events.configure(level)
    log = log_events.get_logger()
    log.debug("d")
    log.info("i")
    log.warning("w")
    log.error("e")
    assert [line["event"] for line in lines(capsys)] == told


def test_every_event_of_a_request_carries_its_id(capsys):
    log_events.configure("info")
    first = log_events.begin_request("get_status")
    log_events.get_logger().info("one")
    second = log_events.begin_request("submit_job")
    log_events.get_logger().info("two")
    found = [(line["event"], line["request_id"], line["tool"]) for line in lines(capsys)]
    assert found == [("one", first, "get_status"), ("two", second, "submit_job")]
    assert first != second


def test_a_traceback_holds_no_local_variables(capsys):
    log_events.configure("info")
    secret = "a-token-of-somebody"
    try:
        int(f"{len(secret)} apples")
    except ValueError:
        log_events.get_logger().error("failed", exc_info=True)
    [line] = lines(capsys)
    assert line["exception"][0]["exc_type"] == "ValueError"
    assert secret not in json.dumps(line)


def test_libraries_are_quiet_below_warning(capsys):
    log_events.configure("debug")
    logging.getLogger("mcp").info("chatter")
    logging.getLogger("mcp").warning("trouble")
    out, err = capsys.readouterr()
    assert (out, err) == ("", "mcp: trouble\n")


def test_an_event_may_name_the_tool_of_its_request_again(capsys):
    log_events.configure("info")
    log_events.begin_request("get_status")
    log_events.get_logger().info("failed", tool="get_status")
    assert [line["tool"] for line in lines(capsys)] == ["get_status"]


@pytest.mark.proves("secrets-are-masked", "text-is-data")
def test_events_and_libraries_tell_no_secret_and_steer_no_terminal(capsys):
    log_events.configure("info")
    secret = "hf_" + "abcdefghijklmnopqrstuvwxyzABCDEF12"
    try:
        int(f"HF_TOKEN={secret}")
    except ValueError as error:
        log_events.get_logger().error("failed", name="a\x1b[2Jb", words=[f"--token {secret}"], exc_info=error)
    [line] = lines(capsys)
    assert secret not in json.dumps(line)
    assert line["name"] == "a\\x1b[2Jb"
    logging.getLogger("asyncssh").warning("banner \x1b[2J password=%s", "hunter2")
    out, err = capsys.readouterr()
    assert (out, err) == ("", "asyncssh: banner \\x1b[2J password=[masked]\n")
