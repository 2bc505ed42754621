"""Build Headwater's images: `python3 images/build.py operator engine-sim engine-cpu [--out DIR]`.

Prints the path of one archive an image, for `python3 -m e2e.cluster load`. What is built already is not built again.
"""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from images.builder.cli import main

    sys.exit(main())
