"""JSON schemas of what the tools take and answer, in the plain form that every client understands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from slurm_agent_tools.models import diagnosis_answer, report, result, shapes, status_answer, submission_answer
from slurm_agent_tools.models.arguments import ToolArguments
from slurm_agent_tools.models.shapes import ErrorInfo, Reply

Schema = dict[str, Any]

REPLIES: Mapping[str, type[shapes.Reply]] = {
    "get_status": status_answer.StatusReply,
    "validate_config": submission_answer.ValidateReply,
    "generate_script": submission_answer.GenerateReply,
    "submit_job": submission_answer.SubmitReply,
    "wait_for_job": report.WaitReply,
    "analyze_log": diagnosis_answer.AnalyzeReply,
    "save_result": result.SaveReply,
    "compare_results": result.CompareReply,
    "cancel_job": submission_answer.CancelReply,
}

_DEFS = "#/$defs/"

_NOISE = frozenset({"title", "$defs"})


def input_schema(ask: type[ToolArguments]) -> Schema:
    """Small and flat: no titles, no references, no null arms (what is not required may be left out)."""
    full = ask.model_json_schema()
    small = _small(full, full.get("$defs", {}))
    small.pop("description", None)  # the tool's own description says it
    small["properties"]["cluster"] = small["properties"].pop("cluster")  # last: few need it
    return small


def output_schema(reply: type[Reply]) -> Schema:
    """Complete: either every field of the reply, or `error`. Some clients check failures against it too."""
    full: Schema = _untitled(reply.model_json_schema(mode="serialization"))
    definitions = full.setdefault("$defs", {})
    definitions.setdefault("ErrorInfo", _untitled(ErrorInfo.model_json_schema(mode="serialization")))
    required = full.pop("required")
    full["properties"]["error"] = {"$ref": f"{_DEFS}ErrorInfo"}
    full["anyOf"] = [{"required": required}, {"required": ["error"]}]
    return full


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
