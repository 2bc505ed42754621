#!/bin/sh
# Install third-party packages from the lock file into /opt/venv. Run by the Dockerfiles, which mount their inputs at
# /run/build; the arguments go to `uv sync`.
set -eu
build=/run/build

# Some networks reach the package index through a proxy with a certificate of its own.
if [ -s $build/certificates ]; then
    export SSL_CERT_FILE=$build/certificates
fi
export UV_PROJECT_ENVIRONMENT=/opt/venv UV_PYTHON=python3 UV_PYTHON_DOWNLOADS=never UV_LINK_MODE=copy
# Byte code that is checked by no date stays valid under a builder that changes dates.
export PYC_INVALIDATION_MODE=UNCHECKED_HASH
exec $build/uv sync --project $build/project --frozen --no-dev --no-install-project --compile-bytecode "$@"
