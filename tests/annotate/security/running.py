"""The application of a study behind a real port, in a thread of the test's own process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from rejoinder.annotate.store import Store
from rejoinder.annotate.web.app import make_app
from rejoinder.annotate.web.serve import address_of, listen


@contextmanager
def served(store: Store, **options: Any) -> Iterator[str]:
    """Serve a study; yield its address."""
    config = uvicorn.Config(
        make_app(store, **options), ws="none", lifespan="off", log_level="error"
    )
    server = uvicorn.Server(config)
    with listen("127.0.0.1", 0) as listening:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            while not server.started:
                assert thread.is_alive()
                time.sleep(0.01)
            yield address_of(listening, "127.0.0.1")
        finally:
            server.should_exit = True
            thread.join()
