"""JSON schemas of what the tools take and answer, in the plain form that every client understands.

A server hands out those that came with the package, each read once; nobody changes what was handed out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from slurm_agent_tools.models.arguments import ToolArguments
from slurm_agent_tools.models.shapes import ErrorInfo, Reply

Schema = dict[str, Any]


@cache
def replies() -> Mapping[str, type[Reply]]:
    """The shape of each tool's answer, loaded when first asked for: a server says hello without any of them."""
    from slurm_agent_tools.models import (
        backend_answer,
        campaign_answer,
        diagnosis_answer,
        fleet_answer,
        plan_answer,
        report,
        result,
        status_answer,
        submission_answer,
        sync_answer,
    )

    return {
        "get_status": status_answer.StatusReply,
        "validate_config": submission_answer.ValidateReply,
        "generate_script": submission_answer.GenerateReply,
        "submit_job": submission_answer.SubmitReply,
        "wait_for_job": report.WaitReply,
        "analyze_log": diagnosis_answer.AnalyzeReply,
        "save_result": result.SaveReply,
        "compare_results": result.CompareReply,
        "cancel_job": submission_answer.CancelReply,
        "sync_files": sync_answer.SyncReply,
        "choose_backend": backend_answer.ChooseReply,
        "get_campaign": campaign_answer.CampaignReply,
        "advance_campaign": campaign_answer.CampaignReply,
        "plan_jobs": plan_answer.PlanReply,
        "get_fleet": fleet_answer.FleetReply,
    }


WRITTEN = "assets/tool_schemas.json"


@cache
def written() -> Mapping[str, Mapping[str, Schema]]:
    """By tool, its `input` and `output` schema as they came with the package.

    To make them anew at a client's first list of tools takes the shapes of all answers: megabytes, of which a server
    then uses those of a few tools. A test holds the file against what is made here.
    """
    found: Mapping[str, Mapping[str, Schema]] = json.loads(
        resources.files("slurm_agent_tools").joinpath(WRITTEN).read_text(encoding="utf-8")
    )
    return found


_DEFS = "#/$defs/"

_NOISE = frozenset({"title", "$defs"})


@cache
def input_schema(ask: type[ToolArguments]) -> Schema:
    """Small and flat: no titles, no references, no null arms (what is not required may be left out)."""
    full = ask.model_json_schema()
    small = _small(full, full.get("$defs", {}))
    small.pop("description", None)  # the tool's own description says it
    for name in ("detail", "cluster"):  # last: few need them
        small["properties"][name] = small["properties"].pop(name)
    return small


@cache
def output_schema(reply: type[Reply]) -> Schema:
    """What the answer may hold, in brief and in full: either a reply's fields, or `error`.

    Two levels deep, lists one, and of the second only names where a value may be null: each client reads all of it at
    its start. Some check failures against it too.
    """
    whole = reply.model_json_schema(mode="serialization")
    definitions = whole.get("$defs", {})
    found = {name: _outline(node, definitions, 1) for name, node in whole["properties"].items()}
    error = _outline(ErrorInfo.model_json_schema(mode="serialization"), {}, 1)
    return {
        "type": "object",
        "properties": found | {"error": error},
        "additionalProperties": False,
        "anyOf": [{"required": [*_ALWAYS]}, {"required": ["error"]}],
    }


def full_schema(reply: type[Reply]) -> Schema:
    """Every shape of a reply with all its fields, for the reference pages."""
    full: Schema = _untitled(reply.model_json_schema(mode="serialization"))
    return full


_ALWAYS = ("status", "summary", "as_of")


def _outline(node: Schema, definitions: Schema, depth: int) -> Schema:
    """The types of a value, merged over what it may be; its entries where `depth` still allows."""
    if "$ref" in node:
        node = definitions[node["$ref"].removeprefix(_DEFS)]
    arms = node.get("anyOf")
    if arms and not depth and {"type": "null"} in arms:
        return {}  # the name alone: the types of all that may be null are in the reference pages
    if arms:
        return _merged([_outline(arm, definitions, depth) for arm in arms])
    kept: Schema = {name: node[name] for name in ("type", "enum") if name in node}
    if depth and "properties" in node:
        kept["properties"] = {
            name: _outline(value, definitions, depth - 1) for name, value in node["properties"].items()
        }
    elif depth and isinstance(node.get("items"), dict):
        kept["items"] = _outline(node["items"], definitions, 0)
    return kept


def _merged(arms: list[Schema]) -> Schema:
    """One schema for several: all their types, all their entries. Anything goes where one of them says nothing."""
    if not all("type" in arm for arm in arms):
        return {}
    types = dict.fromkeys(
        kind for arm in arms for kind in ([arm["type"]] if isinstance(arm["type"], str) else arm["type"])
    )
    made: Schema = {"type": next(iter(types)) if len(types) == 1 else [*types]}
    for arm in arms:
        if "properties" in arm:
            made["properties"] = made.get("properties", {}) | arm["properties"]
        made |= {"items": arm["items"]} if "items" in arm else {}
    return made


def _small(node: Schema, definitions: Schema) -> Schema:
    if "$ref" in node:
        target = definitions[node["$ref"].removeprefix(_DEFS)]
        node = {**target, **{key: value for key, value in node.items() if key != "$ref"}}
    arms = [arm for arm in node.get("anyOf", []) if arm != {"type": "null"}]
    if len(arms) == 1:
        node = {**_small(arms[0], definitions), **{key: value for key, value in node.items() if key != "anyOf"}}
    elif arms:
        node = {**node, "anyOf": [_small(arm, definitions) for arm in arms]}
    kept = {key: value for key, value in node.items() if key not in _NOISE and (key, value) != ("default", None)}
    if "properties" in kept:
        kept["properties"] = {name: _small(value, definitions) for name, value in kept["properties"].items()}
    if isinstance(kept.get("items"), dict):
        kept["items"] = _small(kept["items"], definitions)
    return kept


def _untitled(node: Any) -> Any:
    """The same schema without pydantic's titles; a property that is called `title` stays."""
    if isinstance(node, list):
        return [_untitled(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {key: value for key, value in node.items() if not (key == "title" and isinstance(value, str))}
    return {key: _untitled(value) for key, value in kept.items()}
