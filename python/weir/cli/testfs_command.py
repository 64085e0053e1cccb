# SPDX-License-Identifier: Apache-2.0
"""``weir testfs``: mount, umount, stats, control"""

from __future__ import annotations

from typing import Annotated, Optional

import typer

app = typer.Typer(
    help="A file system with the latency of a parallel one, which counts the requests that reach it.", no_args_is_help=True
)

Directory = Annotated[str, typer.Argument(metavar="DIR", help="The directory it is mounted on.")]
Number = Optional[float]  # noqa: UP045: typer wants it so on Python 3.10


@app.command()
def mount(
    directory: Directory,
    backing: Annotated[Optional[str], typer.Option(metavar="DIR", help="Whose files are shown; DIR's own if not given.")] = None,
    preset: Annotated[str, typer.Option(metavar="NAME", help="The values that are not given: local, direct, lustre, nfs, wan.")] = "local",
    round_trip_us: Annotated[Number, typer.Option(metavar="US", help="Of every request.")] = None,
    metadata_us: Annotated[Number, typer.Option(metavar="US", help="Service of a metadata request, one at a time.")] = None,
    data_us: Annotated[Number, typer.Option(metavar="US", help="Added to each data request.")] = None,
    bandwidth_mb: Annotated[Number, typer.Option(metavar="MB", help="10^6 bytes per second of all data; 0: no limit.")] = None,
    bucket: Annotated[Optional[str], typer.Option(metavar="NAME", help="Mounts of one NAME share one server.")] = None,
    direct_io: Annotated[Optional[bool], typer.Option("--direct-io/--page-cache", help="Whether every call becomes a request.")] = None,
    writeback: Annotated[bool, typer.Option("--writeback", help="The kernel keeps what is written for a while.")] = False,
    attr_timeout_s: Annotated[Number, typer.Option(metavar="S", help="How long the kernel believes attributes.")] = None,
    entry_timeout_s: Annotated[Number, typer.Option(metavar="S", help="How long the kernel believes names.")] = None,
    threads: Annotated[int, typer.Option(metavar="N", help="Requests in service at one time, at most.")] = 128,
    hang_s: Annotated[Number, typer.Option(metavar="S", help="Nothing is answered for so long.")] = None,
    enospc_after: Annotated[Optional[int], typer.Option(metavar="BYTES", help="Writes beyond these fail with ENOSPC.")] = None,
    fail: Annotated[Optional[list[str]], typer.Option(metavar="RULE", help="op:errno:rate:seed; can be repeated.")] = None,
    owner: Annotated[Optional[int], typer.Option(metavar="PID", help="Unmount when this process ends.")] = None,
) -> None:
    """Mount on DIR, and return when the mount is there."""
    from weir import testfs

    testfs.mount(
        directory,
        backing=backing,
        preset=preset,
        bucket=bucket,
        owner=owner,
        fail=fail or (),
        round_trip_us=round_trip_us,
        metadata_us=metadata_us,
        data_us=data_us,
        bandwidth_mb=bandwidth_mb,
        direct_io=direct_io,
        writeback=writeback or None,
        attr_timeout_s=attr_timeout_s,
        entry_timeout_s=entry_timeout_s,
        threads=threads,
        hang_s=hang_s,
        enospc_after=enospc_after,
    )


@app.command()
def umount(directory: Directory) -> None:
    """Unmount; lazily when files there are in use."""
    from weir import testfs

    testfs.unmount(directory)


@app.command()
def stats(
    directory: Directory,
    json: Annotated[bool, typer.Option("--json", help="All counters, those of each file too, as one JSON object.")] = False,
    reset: Annotated[bool, typer.Option("--reset", help="Then set them to zero.")] = False,
) -> None:
    """Print the requests that reached the file system, also after it was unmounted."""
    from weir import testfs
    from weir.testfs._table import table

    text = testfs.find(directory).stats_json(reset=reset)
    typer.echo(text if json else table(testfs.Stats.from_json(text)), nl=False)


@app.command()
def control(
    directory: Directory,
    options: Annotated[list[str], typer.Argument(metavar="NAME=VALUE...", help="hang=5, fail=write:EIO:0.01:7, fail=none, data_us=0 ...")],
) -> None:
    """Change options of a mount while it runs."""
    from weir import testfs

    testfs.find(directory).control(*options)
