"""The base image where no registry is to be had: Debian's Python, unpacked from its packages.

Unpacked, not installed: no maintainer script runs, which takes a tenth of the time and of the space.
"""

import hashlib
from pathlib import Path

from e2e.cluster.commands import run
from e2e.cluster.requirements import require_programs

SUITE = "bookworm"
PACKAGES = (
    "base-files", "base-passwd", "ca-certificates", "coreutils", "dash", "findutils", "grep", "libc-bin", "libgomp1",
    "libnuma1", "libpython3-stdlib", "libstdc++6", "media-types", "netbase", "python3", "python3-minimal", "sed",
    "util-linux",  # vLLM asks lscpu for the cores it may use
)  # fmt: skip
PROGRAMS = {"mmdebstrap": "mmdebstrap"}

DOCKERFILE = """FROM scratch
ADD base.tar /
RUN rm -rf /usr/share/doc /usr/share/man /usr/share/locale /usr/share/lintian /var/cache/apt /var/lib/apt \\
 && echo 'root:x:0:0::/root:/bin/sh' > /etc/passwd \\
 && echo 'headwater:x:10001:10001::/tmp:/usr/sbin/nologin' >> /etc/passwd \\
 && printf 'root:x:0:\\nheadwater:x:10001:\\n' > /etc/group \\
 && python3 -m compileall -q --invalidation-mode unchecked-hash /usr/lib/python3.11
"""


def base_fingerprint() -> str:
    """Changes when the base would."""
    return hashlib.sha256(f"{SUITE} {PACKAGES} {DOCKERFILE}".encode()).hexdigest()[:12]


def write_base_context(directory: Path) -> None:
    """Put the base's Dockerfile and file system into a build context."""
    require_programs(PROGRAMS)
    included = f"--include={','.join(PACKAGES)}"
    run("mmdebstrap", "--quiet", "--variant=extract", included, SUITE, directory / "base.tar")
    (directory / "Dockerfile").write_text(DOCKERFILE)
