"""Writing a one-layer OCI image archive from one file; enough for the pause image, which no registry is asked for."""

import hashlib
import io
import json
import tarfile
from pathlib import Path

MEDIA = "application/vnd.oci.image"


def write_archive(out: Path, name: str, program: Path, user: str) -> None:
    """An image whose only file is `program`, which is also its entry point. Same input, same bytes."""
    layer = _layer(program)
    digest = f"sha256:{hashlib.sha256(layer).hexdigest()}"
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"User": user, "Entrypoint": [f"/{program.name}"]},
        "rootfs": {"type": "layers", "diff_ids": [digest]},
    }
    blobs: dict[str, bytes] = {}
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{MEDIA}.manifest.v1+json",
        "config": _add(blobs, json.dumps(config).encode(), "config.v1+json"),
        "layers": [_add(blobs, layer, "layer.v1.tar")],
    }
    entry = _add(blobs, json.dumps(manifest).encode(), "manifest.v1+json")
    entry["annotations"] = {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name}
    files = {
        "oci-layout": b'{"imageLayoutVersion":"1.0.0"}',
        "index.json": json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode(),
        **{f"blobs/sha256/{digest}": data for digest, data in blobs.items()},
    }
    with tarfile.open(out, "w") as tar:
        for path, data in files.items():
            _put(tar, path, data)


def _layer(program: Path) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        _put(tar, program.name, program.read_bytes(), mode=0o755)
    return buffer.getvalue()


def _add(blobs: dict[str, bytes], data: bytes, kind: str) -> dict[str, object]:
    digest = hashlib.sha256(data).hexdigest()
    blobs[digest] = data
    return {"mediaType": f"{MEDIA}.{kind}", "digest": f"sha256:{digest}", "size": len(data)}


def _put(tar: tarfile.TarFile, path: str, data: bytes, mode: int = 0o644) -> None:
    info = tarfile.TarInfo(path)
    info.size, info.mode = len(data), mode
    tar.addfile(info, io.BytesIO(data))
