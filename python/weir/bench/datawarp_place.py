# SPDX-License-Identifier: Apache-2.0
"""Servers for ``weir bench datawarp``: mounts of the test file system, each with a bandwidth of its
own, which stand for object storage targets and burst buffer nodes as two compute nodes see them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from weir.testfs import Mount, mounted

OSTS, BURST_NODES, UNIT = 16, 3, "1MiB"
# Node B has mounts of its own under the paths of node A's, as nodes of a cluster have.
_ON_NODE_B = ('here=$0; there=$1; shift; for name in "$there"/*; do '
              'mount --bind "$name" "$here/${name##*/}" || exit 1; done; exec "$@"')


@dataclass(frozen=True)
class Rates:
    """MB/s of one server."""

    ost_mb: float
    burst_mb: float


@dataclass(frozen=True)
class Servers:
    """directory: node A's mounts mds, ost0 to ost15, burst0 to burst2; other: node B's of the burst
    buffer."""

    directory: Path
    other: Path
    mounts: dict[str, Mount]

    @property
    def names(self) -> Path:
        """Where the names of striped files are: the metadata server."""
        return self.directory / "mds"

    def burst(self, number: int) -> Path:
        return self.directory / f"burst{number}"

    def striped(self, kind: str, count: int) -> str:
        """The stack that distributes a file over the first servers of a kind."""
        dirs = ",".join(str(self.directory / f"{kind}{number}" / "pieces")
            for number in range(count))
        return f"stripe:dirs={dirs}:unit={UNIT}"

    def on_node_b(self, command: Sequence[str]) -> list[str]:
        unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user",
            "--map-current-user", "--mount"]
        return [*unshare, "sh", "-c", _ON_NODE_B, str(self.directory), str(self.other), *command]

    def reset(self) -> None:
        for mount in self.mounts.values():
            mount.reset()

    def moved(self) -> dict[str, tuple[int, int]]:
        """Bytes read and written at each server that served some, both nodes together."""
        found: dict[str, tuple[int, int]] = {}
        for name, mount in self.mounts.items():
            stats = mount.stats()
            read, written = found.get(name.rstrip("B"), (0, 0))
            found[name.rstrip("B")] = (read + stats.bytes_read, written + stats.bytes_written)
        return {name: both for name, both in found.items() if any(both)}

    def requests(self) -> int:
        return sum(mount.stats().total for mount in self.mounts.values())


@contextmanager
def open_servers(parent: Path, rates: Rates) -> Iterator[Servers]:
    """All of them for the time of a measurement."""
    directory, other, data = (parent / name for name in ("A", "B", "data"))
    kinds = {"mds": 0.0, **{f"ost{n}": rates.ost_mb for n in range(OSTS)},
        **{f"burst{n}": rates.burst_mb for n in range(BURST_NODES)}}
    with ExitStack() as stack:
        mounts = {}
        for name, rate in kinds.items():
            (data / name / "pieces").mkdir(parents=True)
            for node, place in ((directory, name), (other, f"{name}B")):
                if node is other and not name.startswith("burst"):
                    continue
                (node / name).mkdir(parents=True)
                mounts[place] = stack.enter_context(mounted(node / name, backing=data / name,
                    preset="lustre", bucket=f"datawarp-{os.getpid()}-{name}", owner=os.getpid(),
                    bandwidth_mb=rate))
        yield Servers(directory, other, mounts)
