"""Write Headwater's package metadata beside its code, so that the code can ask for its own version.

usage: write_metadata.py PYPROJECT SITE
"""

import sys
import tomllib
from pathlib import Path


def main() -> None:
    """Write SITE/headwater-VERSION.dist-info/METADATA."""
    project = tomllib.loads(Path(sys.argv[1]).read_text())["project"]
    folder = Path(sys.argv[2], f"{project['name']}-{project['version']}.dist-info")
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {project['name']}\nVersion: {project['version']}\n")


if __name__ == "__main__":
    main()
