"""Lists the rooms of `src`: how large each is, which rooms it looks into, and which rules it breaks.

    python scripts/rooms.py          the table, and 1 when a rule of docs/decisions/rooms.md is broken
    python scripts/rooms.py --page   the page docs/reference/modules.md, to be written there

A room is a folder of `src/slurm_agent_tools`; the files beside them (errors, units, __main__) are none.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import grimp

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "slurm_agent_tools"
REASONS = ROOT / "docs" / "decisions" / "rooms.md"
TOP = "slurm_agent_tools"
REGISTRIES = (
    "services", "policy.rules", "slurm.commands", "devcluster.fake.commands", "cli.commands", "backends.export",
    "programs.languages", "scripts.configs.checks", "campaigns.rules", "campaigns.searches", "campaigns.steps",
    "planning.findings",
    "fleet.sections", "server.web.pages",
)  # fmt: skip
"""Folders of which each module is one more of its kind: that one place lists it is no sign of a wrong cut."""
MOST_ROOMS, MOST_LINES, MOST_SINGLE = 20, 7000, 25
MEDIAN = (80, 200)
HEAD = """# Modules

Every module by its room, as it says of itself. [The map](../concepts/rooms.md) tells what the rooms are for and where
a change goes. `python scripts/rooms.py --page` prints this page."""


@dataclass(frozen=True, slots=True)
class SourceLayout:
    """Lines by module, and who imports whom; names without the package's own."""

    lines: Mapping[str, int]
    importers: Mapping[str, frozenset[str]]
    imports: Mapping[str, frozenset[str]]

    @property
    def rooms(self) -> dict[str, int]:
        """Lines by room, largest first."""
        sizes: Counter[str] = Counter()
        for name, count in self.lines.items():
            sizes[room(name)] += count
        return dict(sizes.most_common())

    @property
    def folders(self) -> set[str]:
        """The rooms that are folders."""
        return {room(name) for name in self.lines if "." in name or (SOURCE / name).is_dir()}

    def single(self) -> dict[str, str]:
        """Modules that one other imports, outside the registries: module -> its importer."""
        found = {}
        for name in self.lines:
            if not name.startswith(tuple(f"{one}." for one in REGISTRIES)) and len(self.importers[name]) == 1:
                found[name] = next(iter(self.importers[name]))
        return found


def room(module: str) -> str:
    """The room of a module."""
    return module.split(".", 1)[0]


def read() -> SourceLayout:
    """The source as it is. A package counts by what is in its `__init__`, and not where that is its docstring."""
    graph = grimp.build_graph(TOP, "tools.agent_tools", exclude_type_checking_imports=False)
    lines, importers, imports = {}, {}, defaultdict(set)
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        count = len(path.read_text(encoding="utf-8").splitlines())
        full = f"{TOP}.{name}" if name else TOP
        if full not in graph.modules or (parts[-1] == "__init__" and count < 10):
            continue
        lines[name] = count
        by = {one.removeprefix(f"{TOP}.") for one in graph.find_modules_that_directly_import(full)}
        importers[name] = frozenset(by - {name})
        for one in by:
            if room(one) != room(name):
                imports[room(one)].add(room(name))
    return SourceLayout(lines, importers, {one: frozenset(others) for one, others in imports.items()})


def circles(imports: Mapping[str, frozenset[str]]) -> list[str]:
    """Rooms from which a way leads back to themselves."""
    return sorted(start for start in imports if start in _reached(imports, imports[start]))


def _reached(imports: Mapping[str, frozenset[str]], first: Iterable[str]) -> set[str]:
    found, waiting = set(), list(first)
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            waiting += imports.get(one, frozenset())
    return found


def reasons(text: str) -> set[str]:
    """Modules with a reason to have one importer: the first column of the table in the decision."""
    return set(re.findall(r"^\| `([\w.]+)` \|", text, re.MULTILINE))


def violations(layout: SourceLayout, given: set[str], names: Iterable[str] | None = None) -> list[str]:
    """What breaks a rule, a sentence each; `names`: the modules whose names are compared, all of them."""
    found = [f"{name} can be reached from itself" for name in circles(layout.imports)]
    if len(layout.folders) > MOST_ROOMS:
        found.append(f"there are {len(layout.folders)} rooms, at most {MOST_ROOMS} are wanted")
    large = [(name, size) for name, size in layout.rooms.items() if size > MOST_LINES]
    found += [f"{name} has {size} lines, at most {MOST_LINES} are wanted" for name, size in large]
    middle = median(layout.lines.values())
    if not MEDIAN[0] <= middle <= MEDIAN[1]:
        found.append(f"the median module has {middle:.0f} lines")
    single = layout.single()
    if len(single) > MOST_SINGLE:
        found.append(f"{len(single)} modules have one importer, at most {MOST_SINGLE} may")
    alone = [(name, by) for name, by in single.items() if name not in given]
    found += [f"{name} is imported by {by} alone and has no reason in {REASONS.name}" for name, by in alone]
    found += [f"{name} has a reason in {REASONS.name} and needs none" for name in sorted(given - single.keys())]
    return found + shared(layout.lines if names is None else names)


def shared(modules: Iterable[str]) -> list[str]:
    """Modules that share a name with another or with a room, and public types that do."""
    places = defaultdict(set)
    for name in modules:
        places[name.rsplit(".", 1)[-1]].add(name)
        places[room(name)].add(room(name))
        for part in ast.parse(source(name).read_text(encoding="utf-8")).body:
            if isinstance(part, ast.ClassDef) and not part.name.startswith("_"):
                places[part.name].add(f"{name}.{part.name}")
    return [f"{' and '.join(sorted(names))} share a name" for _, names in sorted(places.items()) if len(names) > 1]


def source(module: str) -> Path:
    """The file of a module."""
    folder = SOURCE.joinpath(*module.split("."))
    return folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")


def page(layout: SourceLayout) -> str:
    """The reference page: every module by its room, with the first line of what it says of itself."""
    blocks = [HEAD]
    for name in sorted({room(module) for module in layout.lines if "." in module}):
        about = ast.get_docstring(ast.parse((SOURCE / name / "__init__.py").read_text(encoding="utf-8"))) or ""
        rows = [
            f"| `{one.removeprefix(f'{name}.')}` | {_first_line(one)} |"
            for one in sorted(layout.lines)
            if one.startswith(f"{name}.")
        ]
        blocks.append(
            "\n".join([f"## {name}\n", about.split("\n", 1)[0] + "\n", "| module | what |", "|---|---|", *rows])
        )
    return "\n\n".join(blocks) + "\n"


def _first_line(module: str) -> str:
    text = ast.get_docstring(ast.parse(source(module).read_text(encoding="utf-8"))) or ""
    return text.split("\n", 1)[0].replace("|", "\\|")


def main() -> int:
    """Print the table; 1 when a rule is broken."""
    layout = read()
    if sys.argv[1:] == ["--page"]:
        print(page(layout), end="")
        return 0
    modules = Counter(room(name) for name in layout.lines)
    print(f"{'room':<12} {'modules':>7} {'lines':>6}  looks into")
    for name, size in layout.rooms.items():
        print(f"{name:<12} {modules[name]:>7} {size:>6}  {', '.join(sorted(layout.imports.get(name, ())))}")
    print(f"{len(layout.folders)} rooms, {len(layout.lines)} modules, {sum(layout.lines.values())} lines", end="")
    print(f", median {median(layout.lines.values()):.0f}, {len(layout.single())} with one importer")
    found = violations(layout, reasons(REASONS.read_text(encoding="utf-8")))
    for one in found:
        print(one)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
