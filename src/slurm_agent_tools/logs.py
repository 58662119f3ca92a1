"""Logs on standard error: quiet by default, one id per request through all events."""

from __future__ import annotations

import logging
import secrets
import sys

import structlog
from structlog.tracebacks import ExceptionDictTransformer

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}


def configure(level: str) -> None:
    """Send structlog and the libraries' logging to standard error; standard output is the protocol's."""
    number = _LEVELS[level]
    logging.basicConfig(
        stream=sys.stderr, level=max(number, logging.WARNING), format="%(name)s: %(message)s", force=True
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.ExceptionRenderer(ExceptionDictTransformer(show_locals=False)),
            structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=lambda *_: structlog.WriteLogger(sys.stderr),  # the standard error of the moment
        cache_logger_on_first_use=False,
    )


def begin_request(tool: str) -> str:
    """Bind a fresh request id to everything that is logged from here in this task; returns it."""
    request_id = secrets.token_hex(6)
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(request_id=request_id, tool=tool)
    return request_id
