"""Read forms that browsers send, with limits on everything that a client decides."""

from __future__ import annotations

import asyncio
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

from rejoinder.annotate.study import StudySettings

MAX_BODY = 64 * 1024
MAX_FIELDS = 1000
MAX_PLATFORM_ID = 200
READ_SECONDS = 30.0
BYTES_PER_CHARACTER = 12
"""A character of four bytes in a form: each byte is written as %XX."""
FORM_TYPE = "application/x-www-form-urlencoded"


def max_body(settings: StudySettings) -> int:
    """Return the largest body that a form of this study may have.

    >>> from rejoinder.annotate.study import Slot, WriteSettings
    >>> write = WriteSettings(question="?", slots=[Slot(count=10, max_characters=1000)])
    >>> max_body(StudySettings(kind="write", title="t", write=write))
    185536
    """
    if settings.write is None:
        return MAX_BODY
    characters = sum(slot.count * slot.max_characters for slot in settings.write.slots)
    return MAX_BODY + BYTES_PER_CHARACTER * characters


async def read_form(request: Request, limit: int) -> dict[str, str]:
    """Return the fields of a form; of a field that was sent several times, the first value."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != FORM_TYPE:
        raise HTTPException(415)
    try:
        async with asyncio.timeout(READ_SECONDS):
            body = await _read(request, limit)
    except TimeoutError:
        raise HTTPException(408, headers={"connection": "close"}) from None
    except ClientDisconnect:
        raise HTTPException(400) from None
    return parse(body)


async def _read(request: Request, limit: int) -> bytes:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > limit:
            raise too_large()
    return bytes(body)


def too_large() -> HTTPException:
    """Return the refusal of a large body; the connection is closed without reading the rest."""
    return HTTPException(413, headers={"connection": "close"})


def parse(body: bytes) -> dict[str, str]:
    """Parse the body of a form.

    Texts that are no UTF-8, and NUL, which PostgreSQL cannot store, are refused.
    """
    try:
        fields = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            encoding="utf-8",
            errors="strict",
            max_num_fields=MAX_FIELDS,
        )
    except ValueError:  # also UnicodeDecodeError
        raise HTTPException(400) from None
    form: dict[str, str] = {}
    for name, value in fields:
        if "\0" in name or "\0" in value:
            raise HTTPException(400)
        form.setdefault(name, value)
    return form
