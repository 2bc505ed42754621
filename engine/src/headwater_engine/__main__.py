"""``python -m headwater_engine``: one engine, told what to be by its environment."""

from __future__ import annotations

import os
import signal

# The guard is vital: worker processes that are spawned import this module again.
if __name__ == "__main__":
    # Before the imports, which take a second or several: the first process of a container ignores a signal that it
    # has no handler for, and a pod told to end while it starts would hold its GPUs for the whole grace period.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))

    from headwater_engine.main import run

    run()
