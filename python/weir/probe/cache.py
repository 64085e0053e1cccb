# SPDX-License-Identifier: Apache-2.0
"""What was measured, kept for each mount: $XDG_CACHE_HOME/weir/probe. A file system that is mounted
anew, elsewhere or from another server, is another one."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from weir._files import complete_file
from weir.probe.measure import Measured, measure
from weir.probe.parallel import Parallel

FORMAT = 1


def cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "weir" / "probe"


def mount_of(directory: Path) -> dict[str, str]:
    """point, kind and source of the file system, as /proc/self/mountinfo has them."""
    path, best = os.path.realpath(directory), {"point": "/", "kind": "?", "source": "?"}
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            before, _, behind = line.partition(" - ")
            point = before.split(" ")[4].encode("latin-1", "replace").decode("unicode_escape") \
                if "\\" in before else before.split(" ")[4]
            is_above = path == point or path.startswith(point.rstrip("/") + "/")
            if is_above and len(point) >= len(best["point"]):
                kind, source = behind.split(" ")[:2]
                best = {"point": point, "kind": kind, "source": source}
    return best


def _path(mount: dict[str, str], node: str) -> Path:
    key = json.dumps([mount, node], sort_keys=True).encode("ascii")
    return cache_directory() / f"{hashlib.blake2b(key, digest_size=12).hexdigest()}.json"


def as_json(directory: Path, found: Measured) -> dict[str, Any]:
    """A stable interface: keys are only ever added."""
    return {
        "format": FORMAT, "directory": str(directory.resolve()), "mount": mount_of(directory),
        "node": platform.node(), "measured_s": time.time(), **asdict(found),
    }  # fmt: skip


def probe(directory: Path, again: bool) -> tuple[dict[str, Any], bool]:
    """What is known of the directory's mount, measured where that is not there or `again` is set;
    whether it was measured now. Raises StorageError."""
    path = _path(mount_of(directory), platform.node())
    if not again and (known := _read(path)) is not None:
        return known, False
    made = as_json(directory, measure(directory))
    _keep(path, made)
    return made, True


def add_parallel(base: dict[str, Any], found: Parallel) -> dict[str, Any]:
    """Beside what is known of the mount, in place of an earlier one with as many ranks and
    nodes."""
    made, size = asdict(found), (found.ranks, found.nodes)
    others = [one for one in base.get("parallel", ()) if (one["ranks"], one["nodes"]) != size]
    whole = {**base, "parallel": sorted([*others, made],
        key=lambda one: (one["nodes"], one["ranks"]))}
    _keep(_path(base["mount"], base["node"]), whole)
    return whole


def _keep(path: Path, data: dict[str, Any]) -> None:
    with suppress(OSError):  # no home directory: measured each time
        path.parent.mkdir(parents=True, exist_ok=True)
        with complete_file(path) as file:
            file.write(json.dumps(data, indent=1).encode("ascii"))


def _read(path: Path) -> dict[str, Any] | None:
    with suppress(OSError, ValueError, TypeError, AttributeError):
        data = json.loads(path.read_bytes())
        if data.get("format") == FORMAT:
            return data
    return None


def known() -> Iterator[dict[str, Any]]:
    """All mounts of this node that were measured."""
    with suppress(OSError):
        for path in sorted(cache_directory().glob("*.json")):
            data = _read(path)
            if data is not None and data.get("node") == platform.node():
                yield data

