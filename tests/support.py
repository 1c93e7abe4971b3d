"""How tests start the program: as a user does, in a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

Run = Callable[..., subprocess.CompletedProcess[bytes]]
COMMAND = [sys.executable, "-c", "from rejoinder.cli.main import main; main()"]
