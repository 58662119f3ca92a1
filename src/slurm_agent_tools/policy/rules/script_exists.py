"""script-exists: there is a batch script inside the project, and it could be read."""

from __future__ import annotations

from slurm_agent_tools.policy.document import Policy, Sizes
from slurm_agent_tools.policy.plan import PlannedRequest
from slurm_agent_tools.policy.rules.examples import FILE, PROJECT, asks
from slurm_agent_tools.policy.rules.rule import SCRIPTS, Example, Judgement, Rule, passed
from slurm_agent_tools.units import human_memory

_WHY = "Only what was read can be checked, and only what was checked is submitted."

_REMEDY = "Call generate_script, which writes one for a command, then call again with its path."


def _judge(plan: PlannedRequest, policy: Policy) -> Judgement:
    if plan.problem is not None:
        return Judgement("deny", f"The script cannot be used: {plan.problem.rstrip('.')}. {_WHY}", remedy=_REMEDY)
    if plan.reading is None:
        return Judgement("deny", f"There is no script. {_WHY}", remedy=_REMEDY)
    size = len(plan.reading.text.encode("utf-8", "surrogateescape"))
    if size > policy.sizes.script_bytes:
        shown, most = human_memory(size), human_memory(policy.sizes.script_bytes)
        remedy = f"Shorten {plan.reading.path} to at most {most}: move data into files that it reads."
        return Judgement(
            "deny", f"The script has {shown}, more than {most}. {_WHY}", size, policy.sizes.script_bytes, remedy
        )
    return passed(f"{plan.reading.path} was read.")


def _long() -> PlannedRequest:
    """A script with data in it."""
    return asks("python train.py", *["# 0.0731, 0.1182, 0.9077, 0.4410, 0.2265, 0.6698, 0.5023"] * 20)


_SMALL = Sizes.model_construct(script_bytes=2**10, result_bytes=2**20)

RULE = Rule(
    id="script-exists",
    what="The script is a readable text file inside the project that starts with #!.",
    why=_WHY,
    levels=("deny",),
    tools=SCRIPTS,
    judge=_judge,
    passing=(Example("a script", asks("python train.py"), "pass"),),
    failing=(
        Example("a missing file", PlannedRequest("submit_job", PROJECT, problem=f"{FILE} does not exist"), "deny"),
        Example("no script at all", PlannedRequest("submit_job", PROJECT), "deny"),
        Example("a script of more than 1K, where that is the limit", _long(), "deny", fields={"sizes": _SMALL}),
    ),
    script=False,
)
