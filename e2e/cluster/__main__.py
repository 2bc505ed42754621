"""Entry point of `python3 -m e2e.cluster`."""

import sys

from e2e.cluster.cli import main

if __name__ == "__main__":
    sys.exit(main())
