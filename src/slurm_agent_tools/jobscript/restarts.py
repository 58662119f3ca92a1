"""Work that a trap or a watchdog starts again when it has ended."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from slurm_agent_tools.jobscript.program import Program
from slurm_agent_tools.jobscript.tree import calls, words_of
from slurm_agent_tools.jobscript.words import Known, Node, line_of
from slurm_agent_tools.jobscript.work import essence, works


@dataclass(slots=True)
class Restarts:
    """Work that a trap or a watchdog starts again: judged when the whole text is known."""

    started: Counter[tuple[str, ...]] = field(default_factory=Counter)
    functions: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)  # the work in them
    again: list[tuple[tuple[str, ...], int, int]] = field(default_factory=list)  # work, line, how often it then stands

    def look(self, node: Node, known: Known) -> None:
        """Note a command, a trap and `pgrep work || work`."""
        kind = node.get("Type")
        if kind == "CallExpr" and node.get("Args"):
            words = words_of(node, known)
            if works(words):
                self.started[essence(words)] += 1
            elif words[0] == "trap" and len(words) > 2 and {"ERR", "EXIT", "0"} & set(words[2:]):
                lines = (line.split() for line in re.split(r"[;&|\n]+", words[1]))
                self.again += [(essence(line), line_of(node), 1) for line in lines if works(line)]
                self.again += [(work, line_of(node), 2) for work in self.functions.get(words[1], ())]
        elif kind == "FuncDecl":
            name = (node.get("Name") or {}).get("Value", "")
            self.functions[name] = [essence(one) for one in calls(node.get("Body") or {}, known) if works(one)]
        elif kind == "BinaryCmd" and node.get("Op") == "||" and _watches(node["X"], known):
            self._restarted(node["Y"], node, known)
        elif kind == "IfClause" and _watches(node.get("Cond", []), known):
            self._restarted(node.get("Then", []), node, known)

    def _restarted(self, branch: object, node: Node, known: Known) -> None:
        self.again += [(essence(words), line_of(node), 2) for words in calls(branch, known) if works(words)]

    def judge(self, program: Program) -> None:
        """Find what was started before."""
        for work, line, count in self.again:
            if work[1] and self.started[work] >= count:
                program.find("auto-retry", "it starts the same work again when it has ended", line)


def _watches(condition: object, known: Known) -> bool:
    """pgrep, pidof, `kill -0`: whether something still runs."""
    return any(words[0] in {"pgrep", "pidof"} or words[:2] == ["kill", "-0"] for words in calls(condition, known))
