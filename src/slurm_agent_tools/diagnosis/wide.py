"""Logs in UTF-16, as some Windows tools write them, as UTF-8."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from slurm_agent_tools.diagnosis.excerpt import Piece

_LOOKED = 4096
_MOSTLY = 0.4  # of every second byte
Codec = Literal["utf-16-le", "utf-16-be"]


def codec(head: bytes) -> Codec | None:
    """How a file of two bytes a sign begins: with a byte order mark, or with NUL in every second place."""
    if head.startswith(codecs.BOM_UTF16_LE):
        return "utf-16-le"
    if head.startswith(codecs.BOM_UTF16_BE):
        return "utf-16-be"
    first, second = head[:_LOOKED:2].count(0), head[1:_LOOKED:2].count(0)
    half = min(len(head), _LOOKED) / 2
    if half < 4 or (first and second):
        return None
    if second > half * _MOSTLY:
        return "utf-16-le"
    return "utf-16-be" if first > half * _MOSTLY else None


def narrow(pieces: Sequence[Piece]) -> list[Piece]:
    """The pieces of one file in UTF-8 where its beginning is in UTF-16; they have to start at even offsets."""
    found = codec(pieces[0].data) if pieces and pieces[0].offset == 0 else None
    if found is None:
        return list(pieces)
    return [replace(piece, data=piece.data.decode(found, "replace").encode("utf-8", "replace")) for piece in pieces]
