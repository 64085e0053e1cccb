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

    Latency of open, create, stat, unlink, small reads and writes and fsync; bandwidth by size of
    requests and number of processes, storage and page cache distinguished; files made a second by
    several processes. The figures are kept for each mount and used by weir advise and weir tune.
    Writes at most 64 MiB at a time.
    """
    import sys

    from weir._errors import NotThere
    from weir.probe.cache import probe as probed
    from weir.report.json import write_json

    found = []
    for directory in directories:
        if not directory.is_dir():
            raise NotThere(f"{directory}: not a directory; weir probe makes files in one")
        found.append(probed(directory, again))
    if json:
        write_json([one for one, _ in found], sys.stdout)
        sys.stdout.write("\n")
        return
    typer.echo("\n\n".join("\n".join(_lines(one, is_new)) for one, is_new in found))


def _lines(one: dict[str, Any], is_new: bool) -> list[str]:
    from datetime import datetime, timezone

    from weir.report.frame.amounts import plain, seconds

    mount = one["mount"]
    when = datetime.fromtimestamp(one["measured_s"], timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    state = f"measured {when}; --again renews it"
    if is_new:
        state = f"measured in {one['took_s']:.1f} s"
    place = f"{mount['kind']} on {mount['point']}, from {one['node']}"
    lines = [f"{one['directory']}: {place}; {state}"]
    for name, found in one["latency_s"].items():
        lines.append(f"  {name:<12} {seconds(found['median']):>9}   (10 to 95 %: "
            f"{seconds(found['low'])} to {seconds(found['high'])})")
    for rate in one["rates"]:
        source = "page cache" if rate["from_cache"] and one["is_cached"] else \
            "again" if rate["from_cache"] else "storage"
        lines.append(f"  {rate['way']:<6} {rate['request_bytes'] >> 10:>6} KiB x "
            f"{rate['processes']}  {rate['bytes_per_s'] / 1e6:>10.1f} MB/s   {source}")
    for found in one["creates"]:
        lines.append(f"  {found['per_s']:>10.0f} files made a second by {found['processes']} "
            f"process{'es' * (found['processes'] != 1)}")
    return [plain(line) for line in lines]
