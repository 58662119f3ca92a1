"""Certificate and key of the server: tried before anything listens, so that what is wrong is said in words."""

from __future__ import annotations

import os
import ssl
import stat
from pathlib import Path
from typing import NoReturn

from slurm_agent_tools.config import HttpSettings
from slurm_agent_tools.errors import ConfigError


def check(http: HttpSettings) -> None:
    """Raises ConfigError where they cannot be used, or where others can read the key."""
    named = {"http.tls_cert": http.tls_cert, "http.tls_key": http.tls_key}
    for name, path in named.items():
        if path is not None and not (path.is_file() and os.access(path, os.R_OK)):
            raise ConfigError(name, str(path), "cannot be read", hint="Name a PEM file that this user can read.")
    if http.tls_cert is None and http.tls_key is None:
        return
    if http.tls_cert is None or http.tls_key is None:
        lacking = next(name for name, path in named.items() if path is None)
        raise ConfigError(lacking, None, "is needed with the other one", hint="Give --tls-cert and --tls-key.")
    _usable(http.tls_cert, http.tls_key)


def _usable(cert: Path, key: Path) -> None:
    if hasattr(os, "geteuid") and key.stat().st_mode & stat.S_IROTH:
        raise ConfigError("http.tls_key", str(key), "can be read by everybody", hint=f"chmod 600 {key}")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, _no_one_to_ask)
    except _Encrypted as error:
        hint = "Write it without: openssl pkey -in KEY -out PLAIN, with umask 077."
        raise ConfigError("http.tls_key", str(key), "needs a passphrase", hint=hint) from error
    except (OSError, ValueError) as error:  # SSLError is an OSError
        what = getattr(error, "reason", None) or error
        hint = f"Give the certificate with its chain, PEM, and the key that belongs to it ({key})."
        raise ConfigError("http.tls_cert", str(cert), f"cannot be used: {what}", hint=hint) from error


class _Encrypted(Exception):
    """The key is encrypted, and a server has nobody to ask."""


def _no_one_to_ask() -> NoReturn:
    raise _Encrypted
