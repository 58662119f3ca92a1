"""The programs in `scripts`, which belong to no package, as modules."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

SCRIPTS = Path(__file__).parents[2] / "scripts"


def script(name: str) -> ModuleType:
    """A new one at each call, under a name of its own."""
    spec = importlib.util.spec_from_file_location(f"shipped_{name}", SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where its records look for their types
    spec.loader.exec_module(module)
    return module
