"""The failure of an endpoint that makes every request fail."""

from __future__ import annotations

from rejoinder.errors import ResourceError


class EndpointError(ResourceError):
    """An endpoint cannot be used: it is not there, or it rejects the key; exit code 4.

    What fails for a single request is a :class:`~rejoinder.llm.chat.Failure` instead, and the
    other requests go on.
    """


class Unanswered(EndpointError):
    """An endpoint that is there answers none of the requests."""
