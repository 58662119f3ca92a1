"""What a request has to look like, so that nobody reads it in two ways and its sender is told what is wrong."""

from __future__ import annotations

from starlette.datastructures import Headers

from slurm_agent_tools.http.answers import Refused

_METHODS = ("GET", "POST", "DELETE")
_JSON = "application/json"
_TAKEN = ({_JSON, "application/*", "*/*"}, {"text/event-stream", "text/*", "*/*"})


def check_length(headers: Headers) -> None:
    """Before anything is answered. Raises Refused with 400."""
    if "transfer-encoding" in headers and "content-length" in headers:
        # A proxy may believe the one and this server the other; then the rest is a request of nobody (RFC 9112, 6.3).
        hint = "Send Content-Length or Transfer-Encoding, not both."
        raise Refused(400, "two_lengths", "The request says its length in two ways", hint, connection="close")


def check_method(method: str) -> None:
    """Raises Refused with 405."""
    if method not in _METHODS:
        hint = f"Use {', '.join(_METHODS)}, as MCP over streamable HTTP does."
        raise Refused(405, "wrong_method", "The method is not one of MCP", hint, allow=", ".join(_METHODS))


def check_body(method: str, headers: Headers) -> None:
    """Raises Refused: 415, and 406 where the SDK would say so without a word."""
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Refused(415, "compressed", "The body is compressed", "Send it as it is, without Content-Encoding.")
    if method == "POST" and headers.get("content-type", "").partition(";")[0].strip().lower() != _JSON:
        raise Refused(415, "wrong_type", "The body is not declared as JSON", f"Send `Content-Type: {_JSON}`.")
    accepted = {one.partition(";")[0].strip().lower() for one in headers.get("accept", "").split(",")}
    if method == "POST" and not all(accepted & kinds for kinds in _TAKEN):
        hint = f"Send `Accept: {_JSON}, text/event-stream`."
        raise Refused(406, "wrong_accept", "The answer may come as JSON or as a stream of events", hint)
