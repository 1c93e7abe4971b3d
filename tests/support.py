"""How tests start the program: as a user does, in a process of its own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

Run = Callable[..., subprocess.CompletedProcess[bytes]]
COMMAND = [sys.executable, "-c", "from rejoinder.cli.main import main; main()"]


T = TypeVar("T")


def in_a_thread(work: Coroutine[Any, Any, T]) -> T:
    """Run an event loop; Playwright leaves one running in the main thread."""
    with ThreadPoolExecutor(1) as threads:
        return threads.submit(asyncio.run, work).result()
