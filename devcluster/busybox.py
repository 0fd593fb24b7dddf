"""Two images that every cluster has, made of the machine's static busybox: the pause image, and a shell for tests.

Writes one OCI archive.
"""

import hashlib
import io
import json
import subprocess
import tarfile
from pathlib import Path

from devcluster import node

SHELL_IMAGE = "localhost/busybox:1"
_BUSYBOX = Path("/bin/busybox")


def write_archive(path: Path) -> None:
    """Write an OCI archive with both images; they share their one layer."""
    blobs: dict[str, bytes] = {}
    layer = _layer()
    layer_blob = _blob(blobs, layer, "application/vnd.oci.image.layer.v1.tar")
    manifests = []
    for image, command in ((node.PAUSE_IMAGE, ["/bin/busybox", "sleep", "2147483647"]), (SHELL_IMAGE, ["/bin/sh"])):
        config = {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Cmd": command, "Env": ["PATH=/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [layer_blob["digest"]]},
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": _blob(blobs, _json(config), "application/vnd.oci.image.config.v1+json"),
            "layers": [layer_blob],
        }
        described = _blob(blobs, _json(manifest), "application/vnd.oci.image.manifest.v1+json")
        names = {"io.containerd.image.name": image, "org.opencontainers.image.ref.name": image}
        manifests.append({**described, "annotations": names})
    files = {
        "oci-layout": _json({"imageLayoutVersion": "1.0.0"}),
        "index.json": _json({"schemaVersion": 2, "manifests": manifests}),
        **{f"blobs/sha256/{digest}": content for digest, content in blobs.items()},
    }
    with tarfile.open(path, "w") as archive:
        for name, content in files.items():
            _add(archive, name, content)


def _layer() -> bytes:
    applets = subprocess.run([_BUSYBOX, "--list"], check=True, capture_output=True, text=True).stdout.split()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        _add(layer, "bin/busybox", _BUSYBOX.read_bytes(), mode=0o755)
        for applet in sorted({*applets} - {"busybox"}):
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            layer.addfile(link)
        folder = tarfile.TarInfo("tmp")
        folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
        layer.addfile(folder)
        _add(layer, "etc/passwd", b"root:x:0:0:root:/:/bin/sh\n")
    return buffer.getvalue()


def _add(archive: tarfile.TarFile, name: str, content: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))


def _blob(blobs: dict[str, bytes], content: bytes, media_type: str) -> dict[str, str | int]:
    digest = hashlib.sha256(content).hexdigest()
    blobs[digest] = content
    return {"mediaType": media_type, "digest": f"sha256:{digest}", "size": len(content)}


def _json(content: object) -> bytes:
    return json.dumps(content, sort_keys=True).encode()
