"""The address of a server, the name of its model, and the environment variable with the key.

The address and the model are part of names and signatures in files, so an address that could hold
a secret (user:password@, a query) is refused.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from rejoinder.llm.secrets import KEY_VARIABLE, check_variable

CHAT = "/chat/completions"


@dataclass(frozen=True)
class Endpoint:
    """An OpenAI-compatible server and one of its models."""

    url: str
    model: str
    key_variable: str = KEY_VARIABLE

    def __post_init__(self) -> None:
        check_url(self.url)
        check_variable(self.key_variable)
        if not self.model.strip():
            raise ValueError("model is empty")

    @property
    def base_url(self) -> str:
        """The address up to the version, such as http://127.0.0.1:8000/v1."""
        return self.url.rstrip("/").removesuffix(CHAT)

    @property
    def chat_url(self) -> str:
        """The address that chats are sent to."""
        return self.base_url + CHAT

    @property
    def is_local(self) -> bool:
        """Whether the server is on this machine: no proxy stands between, nobody can listen."""
        host = urlsplit(self.url).hostname or ""
        if host == "localhost":
            return True
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    @property
    def is_encrypted(self) -> bool:
        """Whether what is sent can only be read by the server."""
        return urlsplit(self.url).scheme == "https" or self.is_local


def check_url(url: str) -> None:
    """Raise ValueError for what is no address of a server; the message never repeats a secret."""
    try:
        parts = urlsplit(url)
        credentials = "@" in parts.netloc
        _ = parts.port
    except ValueError:
        raise ValueError("url is no address such as http://127.0.0.1:8000/v1") from None
    if credentials:
        raise ValueError(
            "url has a user or password; names are written to files: put the key into an"
            f" environment variable ({KEY_VARIABLE}, or the one that key_variable names)"
        )
    if parts.query or parts.fragment or "?" in url or "#" in url:
        raise ValueError(
            "url has a query or fragment (? or #), which may hold a key; give the address without"
        )
    plain = url.isprintable() and not any(map(str.isspace, url))
    if parts.scheme not in ("http", "https") or not parts.hostname or not plain:
        raise ValueError(f"url={url!r:.80} is no address such as http://127.0.0.1:8000/v1")
