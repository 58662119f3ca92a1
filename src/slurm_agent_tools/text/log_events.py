"""Logs on standard error: quiet by default, one id per request through all events.

structlog is loaded by the first event that is told: it takes 100 ms, and most commands have nothing to tell.
"""

from __future__ import annotations

import logging
import secrets
import sys
from collections.abc import Mapping, MutableMapping
from contextvars import ContextVar
from typing import Any

from slurm_agent_tools.text import sanitize

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}

_request: ContextVar[Mapping[str, str]] = ContextVar("request")

_least = logging.WARNING


class Logger:
    """Tells events with their fields, those below the configured level excepted."""

    def debug(self, event: str, **fields: Any) -> None:
        """What happened on the way, such as one command and its duration."""
        self._tell("debug", event, fields)

    def info(self, event: str, **fields: Any) -> None:
        """A request, an answer."""
        self._tell("info", event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        """Something that a person should look at."""
        self._tell("warning", event, fields)

    def error(self, event: str, **fields: Any) -> None:
        """A failure that was not foreseen; `exc_info` adds the traceback."""
        self._tell("error", event, fields)

    @staticmethod
    def _tell(level: str, event: str, fields: dict[str, Any]) -> None:
        if _LEVELS[level] >= _least:
            getattr(_writer(), level)(event, **{**_request.get({}), **fields})


def get_logger() -> Logger:
    """The way to tell something."""
    return Logger()


def configure(level: str) -> None:
    """Send our events and the libraries' logging to standard error; standard output is the protocol's."""
    global _least  # noqa: PLW0603 - one process has one level
    _least = _LEVELS[level]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Plain("%(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler], level=max(_least, logging.WARNING), force=True)


def begin_request(tool: str) -> str:
    """Bind a fresh request id to everything that is logged from here in this task; returns it."""
    request_id = secrets.token_hex(6)
    _request.set({"request_id": request_id, "tool": tool})
    return request_id


class _Plain(logging.Formatter):
    """What libraries say, on one line each, without secrets and hidden signs."""

    def format(self, record: logging.LogRecord) -> str:
        """The line that is written."""
        return sanitize.shown(super().format(record))


def _trusted(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> dict[str, Any]:
    """A step on the way of every event: names and messages come from jobs and commands."""
    return sanitize.document(dict(event))


def _writer() -> Any:
    """A structlog logger on the standard error of the moment."""
    import structlog  # noqa: PLC0415 - see above
    from structlog.tracebacks import ExceptionDictTransformer  # noqa: PLC0415

    return structlog.wrap_logger(
        structlog.WriteLogger(sys.stderr),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),
            _trusted,
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG),
    )
