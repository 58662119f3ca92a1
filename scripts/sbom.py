"""Write what an installation consists of as CycloneDX 1.6: dist/NAME-VERSION.cdx.json, by `make sbom`.

Every package of requirements-run.txt with its version and the hashes that an installation holds it to. The same
requirements make the same file.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BLOCK = re.compile(r"^([a-z0-9-]+)==(\S+?)(?: ; ([^\\\n]+?))? \\\n((?:    --hash=.*\n?)+)", re.MULTILINE)
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def components(requirements: str) -> Iterator[dict[str, Any]]:
    """Each package; where it is needed on some systems alone, that is a property."""
    for name, version, marker, hashes in BLOCK.findall(requirements):
        found: dict[str, Any] = {
            "type": "library", "bom-ref": f"{name}@{version}", "name": name, "version": version,
            "purl": f"pkg:pypi/{name}@{version}", "scope": "optional" if marker else "required",
        }  # fmt: skip
        properties = [{"name": "slurm-agent-tools:sha256", "value": one} for one in HASH.findall(hashes)]
        if marker:
            properties.append({"name": "slurm-agent-tools:only-where", "value": marker})
        yield {**found, "properties": properties}


def document(project: dict[str, Any], requirements: str) -> dict[str, Any]:
    """The whole bill of materials."""
    name, version = project["name"], project["version"]
    parts = list(components(requirements))
    own = {
        "type": "application", "bom-ref": f"{name}@{version}", "name": name, "version": version,
        "purl": f"pkg:pypi/{name}@{version}", "description": project["description"],
        "licenses": [{"license": {"id": project["license"]}}],
    }  # fmt: skip
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(parts, sort_keys=True) + version)
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"component": own},
        "components": parts,
        "dependencies": [{"ref": own["bom-ref"], "dependsOn": [part["bom-ref"] for part in parts]}],
    }


def main() -> int:
    """Write the file."""
    parser = argparse.ArgumentParser(description="Write the bill of materials")
    parser.add_argument("folder", nargs="?", default=str(ROOT / "dist"))
    folder = Path(parser.parse_args().folder)
    folder.mkdir(parents=True, exist_ok=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    made = document(project, (ROOT / "requirements-run.txt").read_text(encoding="utf-8"))
    path = folder / f"{project['name']}-{project['version']}.cdx.json"
    path.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    print(f"{path} ({len(made['components'])} packages)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
