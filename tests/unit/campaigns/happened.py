"""A small campaign as it went, event by event: what tests of reports, plots and answers begin with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from slurm_agent_tools.campaigns.event_folding import fold
from slurm_agent_tools.campaigns.state import CampaignState
from slurm_agent_tools.models.campaign import (
    ArmVerdict,
    BatchIntended,
    BatchSent,
    CampaignEvent,
    Noted,
    RevisionBegun,
    RoundDesigned,
    RoundJudged,
    Stamped,
    Trial,
    TrialEnd,
    TrialEnded,
    TrialId,
    TrialRequest,
)
from slurm_agent_tools.models.campaign_file import CampaignFile

START = datetime(2026, 11, 23, 8, 0, tzinfo=UTC)

GIB = 2**30

REQUEST = TrialRequest(cpus=2, memory_bytes=GIB, gpus=0, nodes=None, time_limit_seconds=600)

DOCUMENT: dict[str, Any] = {
    "campaign": 1,
    "title": "Which learning rate",
    "objective": {"metric": "accuracy", "direction": "maximize", "target": 0.99},
    "stages": [
        {
            "name": "training",
            "kind": "cpu",
            "command": ["python3", "train.py"],
            "parameters": {
                "rate": {"default": 0.1, "argument": "--rate"},
                "batch": {"default": 32, "argument": "--batch"},
                "epochs": {"default": 10, "argument": "--epochs", "length": True},
            },
            "resources": {"cpus": 2, "memory": "1G", "time_limit": "10m"},
            "smoke": {"change": {"epochs": 1}},
        }
    ],
    "rounds": [
        {"kind": "smoke"},
        {"kind": "grid", "hypothesis": "a lower rate learns more", "vary": {"rate": [0.01, 0.1], "batch": [32, 64]}},
    ],
    "limits": {"cpu_hours": 10},
    "fixes": [{"on": "host-out-of-memory", "memory": "2G"}],
}


def campaign_file(**changes: Any) -> CampaignFile:
    """The file, with other top-level parts."""
    return CampaignFile.model_validate(DOCUMENT | changes)


def trial(round_number: int, number: int, **changes: Any) -> Trial:
    """A trial of the stage `training`."""
    settings = {"rate": 0.1, "batch": 32, "epochs": 10} | changes.pop("settings", {})
    arm = f"rate={settings['rate']}, batch={settings['batch']}"
    made = Trial(TrialId(round_number, number), "training", "trial", arm, f"{arm}/{number}", settings, REQUEST)
    return replace(made, **changes)


def ended(of: Trial, job_id: str, **changes: Any) -> TrialEnded:
    """Its end: well, unless `changes` say otherwise."""
    end = TrialEnd(
        job_id=job_id,
        state="COMPLETED",
        passed=True,
        queue_seconds=5,
        run_seconds=60,
        ended=START + timedelta(minutes=of.id.number),
        cpu_hours=0.05,
        gpu_hours=0.0,
        memory_peak_bytes=GIB // 2,
        memory_allocated_bytes=GIB,
        cpu_used=0.8,
    )
    return TrialEnded(of.id, replace(end, **changes))


def sent(trials: Iterable[Trial], job_id: int, *, array: bool = False) -> list[CampaignEvent]:
    """They were sent as one job, or as one array."""
    ids = tuple(one.id for one in trials)
    tasks = tuple(range(1, len(ids) + 1)) if array else None
    return [BatchIntended(f"key-{job_id}", ids, "x.sh", "0" * 64, tasks), BatchSent(f"key-{job_id}", job_id)]


def events() -> list[CampaignEvent]:
    """Smoke, four configurations as an array of which one ran out of memory and was mended, and a verdict."""
    smoke = trial(0, 1, purpose="smoke", settings={"epochs": 1})
    grid = [
        trial(1, 1, purpose="baseline"),
        trial(1, 2, settings={"batch": 64}),
        trial(1, 3, settings={"rate": 0.01}),
        trial(1, 4, settings={"rate": 0.01, "batch": 64}),
    ]
    mend = replace(
        trial(1, 5, settings={"rate": 0.01, "batch": 64}),
        purpose="fix",
        replaces=TrialId(1, 4),
        mended="memory 2G instead of 1G",
        request=replace(REQUEST, memory_bytes=2 * GIB),
    )
    values = [0.80, 0.82, 0.91]
    return [
        RevisionBegun(1, "f" * 64, "campaign: 1", {"training": "c0de"}),
        RoundDesigned(0, 1, "Each stage runs.", (smoke,)),
        *sent([smoke], 10),
        ended(smoke, "10", metrics={"accuracy": 0.4}),
        RoundJudged(0, (), {}, "every stage ran"),
        RoundDesigned(1, 1, "a lower rate learns more", tuple(grid)),
        *sent(grid, 11, array=True),
        *(ended(one, f"11_{place}", metrics={"accuracy": values[place - 1]}) for place, one in enumerate(grid[:3], 1)),
        ended(
            grid[3],
            "11_4",
            state="OUT_OF_MEMORY",
            passed=False,
            category="host-out-of-memory",
            cause="host-out-of-memory",
            explanation="It used more memory than the 1G that it asked for.",
            memory_peak_bytes=GIB,
        ),
        RoundDesigned(1, 1, "a lower rate learns more", (mend,)),
        *sent([mend], 12),
        ended(mend, "12", metrics={"accuracy": 0.95}, memory_peak_bytes=int(1.2 * GIB), memory_allocated_bytes=2 * GIB),
        RoundJudged(
            1,
            (ArmVerdict("training", mend.arm, "promote", "0.95 against 0.8", 1, 0.95, 0.8, 0.1875),),
            {"training": mend.arm},
            "confirmed: rate 0.01 is better",
        ),
        Noted("result", "results/x.json", TrialId(1, 1)),
        Noted("lesson", "host-out-of-memory: memory 2G", TrialId(1, 5)),
    ]


def state_after(happened: Iterable[CampaignEvent]) -> CampaignState:
    """What is known after these events."""
    return fold(Stamped(number, START + timedelta(seconds=number), one) for number, one in enumerate(happened, 1))
