"""The version of mixnorm that was measured."""

from __future__ import annotations

import hashlib
from pathlib import Path


def hash_source() -> str:
    """Return a digest of the package, to detect figures of different versions in one run."""
    import mixnorm

    folder, digest = Path(str(mixnorm.__file__)).parent, hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
