"""The turns of a context as a chat with a language model, and its reply as plain text.

The last turn is what the user says; the one before it was said by the model, and so on, in turn.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from rejoinder.llm.chat import Message

THINKING = "the reply ends while the model is thinking; a larger max_tokens may help"
REFUSED = "the model refused to reply"

_THOUGHTS = re.compile(r"\s*<think>.*?</think>", re.DOTALL)


def messages_of(
    context: Sequence[str], system: str | None = None, opening: str | None = None
) -> tuple[Message, ...]:
    """Return a context as messages, after the system prompt.

    Some models refuse a chat that begins with their own turn; ``opening`` is then put before it as
    what the user said.

    >>> [(m.role, m.content) for m in messages_of(["Hi.", "Hello!", "How are you?"])]
    [('user', 'Hi.'), ('assistant', 'Hello!'), ('user', 'How are you?')]
    """
    messages = [Message("system", system)] if system else []
    if opening and len(context) % 2 == 0:
        messages.append(Message("user", opening))
    last = len(context) - 1
    for number, turn in enumerate(context):
        messages.append(Message("assistant" if (last - number) % 2 else "user", turn))
    return tuple(messages)


def plain_reply(text: str) -> tuple[str, str | None]:
    """Return a reply without what the model wrote for itself, or an empty text and the reason.

    >>> plain_reply("<think>They greet me.</think> Hello! ")
    ('Hello!', None)
    """
    text = _THOUGHTS.sub("", text, count=1) if text.lstrip().startswith("<think>") else text
    text = text.strip()
    if text.startswith("<think>"):
        return "", THINKING
    return text, None
