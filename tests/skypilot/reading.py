"""Run by the interpreter that has SkyPilot: reads a JSON list of task files as it would, and says what it made of each."""

from __future__ import annotations

import json
import sys

import sky
import yaml


def read(text: str) -> dict[str, object]:
    """What SkyPilot understood, or its complaint. Nothing is asked of a network."""
    try:
        task = sky.Task.from_yaml_config(yaml.safe_load(text))
    except Exception as error:  # noqa: BLE001 - whatever it says is the answer
        return {"error": f"{type(error).__name__}: {error}"}
    (resources,) = task.resources
    stop = resources.autostop_config
    return {
        "name": task.name,
        "nodes": task.num_nodes,
        "run": task.run,
        "accelerators": resources.accelerators,
        "cpus": resources.cpus,
        "memory": resources.memory,
        "spot": resources.use_spot,
        "down": stop is not None and stop.down,
        "idle_minutes": None if stop is None else stop.idle_minutes,
    }


json.dump([read(text) for text in json.load(sys.stdin)], sys.stdout)
