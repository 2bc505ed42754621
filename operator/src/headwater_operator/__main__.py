"""``python -m headwater_operator``: the operator, configured by its environment."""

from __future__ import annotations

import os
import signal
import sys

if __name__ == "__main__":
    # Before the imports, which take a second or several: the first process of a container ignores a signal that it
    # has no handler for, and a pod told to end while it starts would sit out its grace period, and hold up its
    # successor. kopf puts its own handler in this one's place before anything is written.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))

    from headwater_operator.main import main

    sys.exit(main())
