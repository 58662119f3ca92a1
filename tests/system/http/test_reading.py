"""Resources, prompts and completions over HTTP: a token that may only read is enough, and the limits hold."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest
from mcp import MCPError
from mcp.types import PromptReference
from tests.system.http.slow import MOST
from tests.system.web import HEADERS, Web, call, stateless

from slurm_agent_tools.server.web.chat_views import VIEWS
from slurm_agent_tools.store.tokens import Tokens

ERAS = ["auto", "legacy"]


@pytest.mark.proves("offers-only-read")
@pytest.mark.parametrize("mode", ERAS)
async def test_a_reading_token_reads_all_that_is_offered(web: Web, home: Path, reader: str, mode: str):
    (home / "project" / "job.sh").write_text("#!/bin/sh\n")
    async with web.client(reader, mode) as client:
        assert len((await client.list_resources()).resources) == 3 + len(VIEWS)
        assert len((await client.list_resource_templates()).resource_templates) == 5
        assert "max_concurrent_jobs" in (await client.read_resource("slurm://policy")).contents[0].text
        assert "get_status" in (await client.get_prompt("run_job", {"script": "job.sh"})).messages[0].content.text
        found = await client.complete(PromptReference(name="run_job"), {"name": "script", "value": "jo"})
        assert found.completion.values == ["job.sh"]
        with pytest.raises(MCPError, match="is not installed") as raised:
            await client.read_resource("slurm://jobs/7")
    assert raised.value.error.data["error"]["code"] == "tool_unavailable"


@pytest.mark.parametrize("method", ["resources/read", "prompts/get", "completion/complete"])
def test_without_a_token_nothing_is_read(web: Web, method: str):
    body = call("x") | {"method": method, "params": {"uri": "slurm://policy", "_meta": call("x")["params"]["_meta"]}}
    assert web.post(None, body, **(stateless("x") | {"mcp-method": method})).status_code == 401


def test_who_reads_too_fast_is_told_when_to_come_back(web: Web, tokens: Tokens):
    token = tokens.new("greedy", "read")
    body = call("x")
    body |= {"method": "resources/read", "params": {"uri": "slurm://policy", "_meta": body["params"]["_meta"]}}
    headers = stateless("x") | {"mcp-method": "resources/read", "mcp-name": "slurm://policy"}
    good = 0
    with httpx2.Client(headers=HEADERS | headers | {"authorization": f"Bearer {token}"}, timeout=20) as client:
        while (answer := client.post(web.url + "/mcp", json=body)).status_code == 200:
            good += 1
            assert good < MOST
    assert good >= 60
    assert (answer.status_code, answer.json()["error"]["data"]["code"]) == (429, "too_fast")
