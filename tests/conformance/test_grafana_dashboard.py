"""The dashboard of `deploy` beside Grafana's own types: its compiler takes each panel, option, query and variable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.npm_packages import installed, run
from tests.unit.test_deploy import DEPLOY

pytestmark = [pytest.mark.conformance, pytest.mark.proves("deployed-names-are-real")]

BOARD = DEPLOY / "grafana" / "slurm-agent-tools.json"

# JSON has texts where TypeScript has members of an enumeration: `Loose` takes either. Of what a query asks of
# Prometheus the package has no type: those fields are named here.
HEAD = """
import type * as schema from "{packages}/@grafana/schema";
type Loose<T> = T extends string ? `${{T}}` : T extends (infer U)[] ? Loose<U>[]
  : T extends object ? {{ [K in keyof T]: Loose<T[K]> }} : T;
type Query = schema.DataQuery & {{ expr: string; legendFormat?: string; instant?: boolean; range?: boolean }};
"""
PANEL = (
    'import type * as {kind} from "{packages}/@grafana/schema/dist/types/raw/composable/{kind}/panelcfg/x/types.gen";\n'
)
SIMPLE = ("--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "esnext")


def typed(board: dict[str, Any], packages: Path) -> str:
    """Constants of Grafana's types with what the document says, each by itself, so that no unknown field passes."""
    lines: list[str] = []

    def const(kind: str, value: object) -> None:
        lines.append(f"const v{len(lines)}: Loose<{kind}> = {json.dumps(value)};")

    kinds = sorted({panel["type"] for panel in board["panels"]} - {"row"})
    const(
        'Omit<schema.Dashboard, "panels" | "templating">',
        {k: v for k, v in board.items() if k not in {"panels", "templating"}},
    )
    for variable in board["templating"]["list"]:
        const("schema.VariableModel", variable)
    for panel in board["panels"]:
        if panel["type"] == "row":
            const("schema.RowPanel", panel)
            continue
        inner = {"options", "fieldConfig", "targets"}
        const(
            'Omit<schema.Panel, "options" | "fieldConfig" | "targets">',
            {k: v for k, v in panel.items() if k not in inner},
        )
        const(f"Partial<{panel['type']}.Options>", panel.get("options", {}))
        fields = json.loads(json.dumps(panel["fieldConfig"]))
        custom = fields["defaults"].pop("custom", None)
        const("schema.FieldConfigSource", fields)
        if custom is not None:
            const(f"{panel['type']}.FieldConfig", custom)
        for query in panel["targets"]:
            const("Query", query)
    head = HEAD.format(packages=packages) + "".join(PANEL.format(packages=packages, kind=kind) for kind in kinds)
    return head + "\n".join(lines)


def complaints(board: dict[str, Any], folder: Path) -> str:
    packages = installed()
    (folder / "board.ts").write_text(typed(board, packages))
    words = [*SIMPLE, "--moduleResolution", "bundler", str(folder / "board.ts")]
    return run([packages / "typescript" / "bin" / "tsc", *words], 120).stdout


def test_grafanas_own_types_take_the_whole_dashboard(tmp_path: Path):
    assert complaints(json.loads(BOARD.read_text()), tmp_path) == ""


@pytest.mark.parametrize(
    ("place", "name", "value"),
    [
        ((), "timezones", "utc"), (("panels", 1), "gridpos", {}), (("panels", 1, "fieldConfig", "defaults"), "unit", 1),
        (("panels", 1, "targets", 0), "expression", "up"), (("templating", "list", 0), "type", "data"),
    ],
)  # fmt: skip
def test_what_grafana_does_not_know_is_found(tmp_path: Path, place: tuple[Any, ...], name: str, value: object):
    board = json.loads(BOARD.read_text())
    part = board
    for step in place:
        part = part[step]
    part[name] = value
    assert "error TS" in complaints(board, tmp_path)
