"""Advice about scripts that were made by chance keeps their work.

With SOAK set 2,000 of them, without it a short form: the same ones each time.
"""

from __future__ import annotations

import os

import pytest
from tests.unit.policy.kept_work import follow
from tests.unit.policy.script_maker import made

NUMBER = 2000 if os.environ.get("SOAK") else 120
PARTS = 10


@pytest.mark.parametrize("part", range(PARTS))
async def test_advice_about_a_script_made_by_chance_keeps_the_work(part: int):
    for seed in range(part, NUMBER, PARTS):
        done = await follow(made(seed))

        assert done.broken == [], (seed, done.first, done.text)
        assert done.told, (seed, done.first, done.left)
