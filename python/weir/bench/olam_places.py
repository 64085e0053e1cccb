# SPDX-License-Identifier: Apache-2.0
"""File systems for ``weir bench olam``, and nodes that one machine stands for: each has a directory
that its ranks work in, and a name in traces."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from weir.bench._scratch import remove
from weir.testfs import Mount, mounted

# A rank works in the directory of its node; ranks that follow one another share a node.
_ON_NODE = (
    'node=node$((${OMPI_COMM_WORLD_RANK:-$PMI_RANK} / WEIR_NODE_RANKS)); export WEIR_NODE=$node; '
    'cd "$0/$node" && exec "$@"'
)


@dataclass(frozen=True)
class FileSystem:
    """preset: of the test file system; None: a directory. options: instead of the preset's.
    is_private: each node has a file system of its own, as a local disk is; else all nodes see the
    same files and share one server."""

    title: str
    preset: str | None = None
    options: Mapping[str, object] | None = None
    is_private: bool = False


@dataclass(frozen=True)
class Place:
    """Nodes with a file system for the time of a measurement. backings: directories behind it."""

    directory: Path
    backings: tuple[Path, ...]
    mounts: tuple[Mount, ...]

    def command(self, program: Path, arguments: Sequence[object]) -> list[str]:
        """What a launcher starts as each rank, with WEIR_NODE_RANKS in the environment."""
        return ["sh", "-c", _ON_NODE, str(self.directory), str(program), *map(str, arguments)]

    def clear(self, kept: Sequence[str]) -> None:
        """Remove what a run has written, behind the file systems: all but these names."""
        for backing in self.backings:
            for path in backing.iterdir():
                if any(fnmatch(path.name, pattern) for pattern in kept):
                    continue
                remove(path) if path.is_dir() else path.unlink()

    def forget(self, patterns: Sequence[str]) -> None:
        """Files that a run reads come from the file system, not from the page cache of a run
        before."""
        for node in self.directory.iterdir():
            for pattern in patterns:
                for path in node.glob(pattern):
                    with open(path, "rb") as file:
                        os.fsync(file.fileno())  # dirty pages stay in the cache
                        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def reset(self) -> None:
        for mount in self.mounts:
            mount.reset()

    def counted(self) -> dict[str, float]:
        """Requests of all nodes since the reset; empty without the test file system."""
        found: Counter[str] = Counter()
        for mount in self.mounts:
            stats = mount.stats()
            found["requests"] += stats.total
            found["data_requests"] += stats.data_requests
            found["metadata_requests"] += stats.total - stats.data_requests
            found["moved"] += stats.bytes_read + stats.bytes_written
        return {name: float(value) for name, value in found.items()}


@contextmanager
def open_place(parent: Path, disk: Path, system: FileSystem, nodes: int) -> Iterator[Place]:
    """The file system on nodes 0 to nodes - 1. parent: a directory in memory, disk: one on a disk.
    """
    directory = (parent if system.preset else disk) / "nodes"
    names = [f"node{number}" for number in range(nodes)]
    count = nodes if system.is_private else 1
    behind = parent if system.preset else disk
    backings = tuple(behind / f"data{number}" for number in range(count))
    with ExitStack() as stack:
        for made in (directory, *backings):
            made.mkdir()
            stack.callback(remove, made)
        mounts = []
        for number, name in enumerate(names):
            backing = backings[number % count]
            if system.preset is None:
                (directory / name).symlink_to(backing)
                continue
            (directory / name).mkdir()
            bucket = f"olam-{os.getpid()}-{number % count}"
            mounts.append(stack.enter_context(mounted(directory / name, backing=backing,
                preset=system.preset, bucket=bucket, owner=os.getpid(), **(system.options or {}))))
        yield Place(directory, backings, tuple(mounts))
