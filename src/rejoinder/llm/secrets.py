"""Keys: read from the environment, and kept out of everything that is written or shown."""

from __future__ import annotations

import os
import re

from rejoinder.llm.errors import EndpointError

KEY_VARIABLE = "OPENAI_API_KEY"
MIN_SECRET = 8
"""Characters from which on the value of a variable is taken for a secret: some are 'none'."""
MIN_REPLACED = 16
"""Characters of a key from which on it is also replaced in what a model says: a short one, such
as EMPTY, may be a word of a reply."""
REDACTED = "[key]"

_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,99}")
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL", re.IGNORECASE)


def check_variable(name: str) -> None:
    """Raise ValueError for what is no name of an environment variable, such as the key itself."""
    if not _VARIABLE.fullmatch(name):
        raise ValueError(
            "key_variable is the name of an environment variable in capital letters, such as"
            f" {KEY_VARIABLE}; the key itself is never part of a spec"
        )


def read_key(variable: str) -> str | None:
    """Return the key in an environment variable; None without one, which local servers accept."""
    key = os.environ.get(variable, "").strip()
    if not key:
        if variable != KEY_VARIABLE:
            raise EndpointError(f"the environment variable {variable} has no key; set it")
        return None
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise EndpointError(
            f"the environment variable {variable} is no key: it has blanks, control characters or"
            " letters outside ASCII"
        )
    return key


def redact(text: str, key: str | None) -> str:
    """Return a text of the server with the key replaced: some servers repeat it in errors."""
    return text.replace(key, REDACTED) if key else text


def redact_body(body: bytes, key: str | None) -> bytes:
    """Return an answer of the server with the key replaced."""
    if key is None or len(key) < MIN_REPLACED:
        return body
    return body.replace(key.encode(), REDACTED.encode())


def refuse_secrets(text: str) -> None:
    """Raise ValueError if a spec holds a secret of the environment, such as one that the shell
    put there for ``$OPENAI_API_KEY``: specs are names in files."""
    for name, value in os.environ.items():
        if len(value) >= MIN_SECRET and _SECRET_NAME.search(name) and value in text:
            raise ValueError(
                f"the spec contains the value of the environment variable {name}; specs are"
                " written to files: let the program or the server read the variable itself"
            )
