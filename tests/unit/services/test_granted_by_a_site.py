"""A job that a site's service judged is held by its ticket, not by the policy that the user's own program reads."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from slurm_agent_tools.services import dispatch


@pytest.mark.parametrize(("judged_by", "told"), [("ours", ["too much"]), ("another", [])])
def test_rules_of_another_policy_do_not_cancel_what_the_site_allowed(
    monkeypatch: pytest.MonkeyPatch, judged_by: str, told: list[str]
):
    """The site's policy stood elsewhere than the program looks: nine of 52 jobs were cancelled, and their tickets spent."""
    denied: Any = SimpleNamespace(id="memory-per-gpu", outcome="deny", message="too much")
    monkeypatch.setattr(dispatch, "context_of", lambda *_, **__: None)
    monkeypatch.setattr(dispatch, "evaluate", lambda *_: SimpleNamespace(rules=[denied]))
    passed = SimpleNamespace(id="memory-per-gpu", outcome="pass")
    verdict = SimpleNamespace(policy=SimpleNamespace(sha256=judged_by), rules=[passed], approval=None, id="1")
    request: Any = SimpleNamespace(verdict=verdict, pinned=(), reading=None)
    context: Any = SimpleNamespace(policy=SimpleNamespace(sha256="ours"))
    granted: Any = SimpleNamespace(resources=None)
    assert dispatch._harsher(context, request, granted) == told
