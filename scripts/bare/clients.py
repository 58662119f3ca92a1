"""What this machine has configured for its clients (pip, npm, uv, certificates, proxies), for a system made on it.

No index, mirror or certificate is named here: what is there is taken, and what it names is brought along.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

CERTIFICATES = Path("/usr/local/share/ca-certificates")
BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
FILES = ("/etc/pip.conf", "/etc/npmrc", "/usr/etc/npmrc", "/etc/uv/uv.toml")
OF_A_USER = (".config/pip/pip.conf", ".pip/pip.conf", ".npmrc", ".config/uv/uv.toml")
PREFIXES = ("PIP_", "UV_", "NPM_CONFIG_")
VARIABLES = {
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY",
}  # fmt: skip
# A place on this machine, alone or in an address of it.
PLACE = re.compile(r"(file://)?(/[^\s\"',:=]+)")


def variables() -> dict[str, str]:
    """The variables of this process that clients read; nothing else of its environment gets in."""
    return {
        name: value
        for name, value in os.environ.items()
        if name.upper() in VARIABLES or name.upper().startswith(PREFIXES)
    }


def configure(system: Path, homes: dict[Path, int]) -> list[Path]:
    """Copy the configuration into the system and the homes (with their owners) that it has.

    Returns the folders that the configuration names. They may be large, so they are to be bound, not copied.
    """
    _certify(system)
    texts = list(variables().values())
    for name in FILES:
        texts += _copy(Path(name), system / name[1:], 0)
    for home, owner in homes.items():
        for name in OF_A_USER:
            texts += _copy(Path.home() / name, home / name, owner, top=home)
    named = {_folder(Path(found[2]), index=bool(found[1])) for text in texts for found in PLACE.finditer(text)}
    absent = sorted(place for place in named if place.exists() and not (system / str(place)[1:]).exists())
    for place in absent:
        inside = system / str(place)[1:]
        if place.is_file():
            inside.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(place, inside)
        else:
            inside.mkdir(parents=True, exist_ok=True)
    return [place for place in absent if place.is_dir()]


def _certify(system: Path) -> None:
    """The machine's own authorities, so that a package that makes the bundle again keeps them; then its bundle."""
    if CERTIFICATES.is_dir():
        shutil.copytree(CERTIFICATES, system / str(CERTIFICATES)[1:], dirs_exist_ok=True)
        subprocess.run(["chroot", str(system), "update-ca-certificates"], check=True, capture_output=True)
    if BUNDLE.is_file():
        shutil.copy(BUNDLE, system / str(BUNDLE)[1:])


def _copy(source: Path, target: Path, owner: int, top: Path | None = None) -> list[str]:
    """Copy a file if it is there, its folders too; returns its text. Those below `top` belong to the owner."""
    if not source.is_file():
        return []
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)
    for path in (target, *target.parents):
        if path == top or top is None:
            break
        os.chown(path, owner, owner)
    return [source.read_text(encoding="utf-8", errors="replace")]


def _folder(place: Path, *, index: bool) -> Path:
    """What is to be bound: the pages of an index in files point to the packages beside it."""
    return place.parent if index and place.is_dir() and place.parent != Path("/") else place
