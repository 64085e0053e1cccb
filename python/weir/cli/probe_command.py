# SPDX-License-Identifier: Apache-2.0
"""``weir probe``"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

Dirs = Annotated[list[Path], typer.Argument(metavar="DIR...", show_default=False,
    help="Directories on the file systems to measure; files are made there and removed.")]
Again = Annotated[bool, typer.Option("--again",
    help="Measure again what was measured before on this node.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON: a stable interface.")]


def probe(directories: Dirs, again: Again = False, json: Json = False) -> None:
    """Measure what a file system can do, from this node, in some seconds.

    It measures the latency of open, create, stat, unlink, fsync and small reads and writes; the
    bandwidth by size of requests and number of processes, of storage and of the page cache; files
    created per second by several processes; memory bandwidth by number of cores. It writes at most
    64 MiB for one figure. The figures are stored for each mount and node; weir advise and weir tune
    use them.

    Under mpirun or srun it also measures with all ranks at once: messages between nodes, and the
    file system under the load of all ranks. Example: mpirun -n 8 weir probe /scratch/me
    """
    import sys

    from weir.probe.launched import is_launched
    from weir.report.json import write_json

    found = _of_ranks(directories, again) if is_launched() else [
        _probed(one, again) for one in directories]
    if found is None:
        return  # another rank prints
    if json:
        write_json([one for one, _ in found], sys.stdout)
        sys.stdout.write("\n")
        return
    typer.echo("\n\n".join("\n".join(_lines(one, is_new, directory))
        for (one, is_new), directory in zip(found, directories)))


def _probed(directory: Path, again: bool) -> tuple[dict[str, Any], bool]:
    from weir._errors import NotThere
    from weir.probe.cache import probe as probed

    if not directory.is_dir():
        raise NotThere(f"{directory}: not a directory; weir probe makes files in one")
    return probed(directory, again)


def _of_ranks(directories: list[Path], again: bool) -> list[tuple[dict[str, Any], bool]] | None:
    """Rank 0 measures alone before MPI begins, as it starts processes; then all of them together.
    The result is that of rank 0."""
    import shutil
    import tempfile

    from weir._errors import Error, StorageError
    from weir.probe.cache import add_parallel
    from weir.probe import launched, parallel

    launched.choose_mpi()
    is_first = launched.is_first()
    bases: list[Any] = []
    try:
        bases = [_probed(one, again) for one in directories] if is_first else []
    except Error as error:
        bases = [error]
    comm = launched.world()
    failed = comm.bcast(bool(bases) and isinstance(bases[0], Error))
    if failed:
        if is_first:
            raise bases[0]
        raise typer.Exit(3)
    made = []
    for number, directory in enumerate(directories):
        place = Path(comm.bcast(tempfile.mkdtemp(prefix=".weir-probe-", dir=directory.resolve())
            if is_first else None))
        try:
            found = parallel.measure_parallel(comm, place)
        except OSError as error:
            if is_first:
                raise StorageError(f"{directory}: not every rank can work there: "
                                   f"{error.strerror}") from error
            raise typer.Exit(3) from error
        finally:
            comm.Barrier()
            if is_first:
                shutil.rmtree(place, ignore_errors=True)
        if is_first:
            made.append((add_parallel(bases[number][0], found), bases[number][1]))
    return made if is_first else None


def _lines(one: dict[str, Any], is_new: bool, directory: Path) -> list[str]:
    from datetime import datetime, timezone

    from weir.report.frame.amounts import plain, seconds

    mount = one["mount"]
    when = datetime.fromtimestamp(one["measured_s"], timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    state = f"measured {when} in {one['directory']}; --again renews it"
    if is_new:
        state = f"measured in {one['took_s']:.1f} s"
    place = f"{mount['kind']} on {mount['point']}, from {one['node']}"
    lines = [f"{directory}: {place}; {state}"]
    lines.append("  time of a call: median (10th to 95th percentile)")
    for name, found in one["latency_s"].items():
        words = name.replace("_", " ").replace("KiB", " KiB")
        lines.append(f"    {words:<16} {seconds(found['median']):>9}   ({seconds(found['low'])} to "
            f"{seconds(found['high'])})")
    lines.append("  bandwidth: size of each request x processes")
    for rate in one["rates"]:
        source = "page cache" if rate["from_cache"] and one["is_cached"] else \
            "again" if rate["from_cache"] else "storage"
        lines.append(f"    {rate['way']:<6} {rate['request_bytes'] >> 10:>6} KiB x "
            f"{rate['processes']}  {rate['bytes_per_s'] / 1e6:>10,.1f} MB/s   {source}")
    lines.append("  files created each second")
    for found in one["creates"]:
        lines.append(f"    {found['per_s']:>10,.0f} by {found['processes']} "
            f"process{'es' * (found['processes'] != 1)}")
    for memory in one.get("memory", ()):
        lines.append(f"  memory {memory['cores']:>4} core{'s' if memory['cores'] != 1 else ' '}   "
            f"{memory['bytes_per_s'] / 1e9:>10.1f} GB/s   triad")
    for part in one.get("parallel", ()):
        lines += _parallel_lines(part)
    return [plain(line) for line in lines]


def _parallel_lines(part: dict[str, Any]) -> list[str]:
    from weir.report.frame.amounts import seconds

    where = "of two nodes" if part["distant"] else "of one node"
    lines = [f"  {part['ranks']} ranks on {part['nodes']} node{'s' * (part['nodes'] != 1)}:"]
    for one in part["messages"]:
        lines.append(f"    message {one['bytes']:>9,} bytes  {seconds(one['seconds']):>9}  "
            f"{one['bytes_per_s'] / 1e6:>10,.1f} MB/s   between ranks {where}")
    lines.append(f"    all ranks in pairs {part['pairs_bytes_per_s'] / 1e9:>12.2f} GB/s")
    for rate in part["rates"]:
        lines.append(f"    {rate['way']:<6} {rate['request_bytes'] >> 10:>6} KiB x "
            f"{rate['processes']}  {rate['bytes_per_s'] / 1e6:>10,.1f} MB/s   storage, a file each")
    lines.append(f"    {part['creates_per_s']:>8,.0f} files created each second in one directory")
    return lines
