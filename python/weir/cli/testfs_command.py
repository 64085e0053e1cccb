# SPDX-License-Identifier: Apache-2.0
"""``weir testfs``: mount, umount, stats, control"""

from __future__ import annotations

from typing import Annotated, Optional

import typer

app = typer.Typer(
    help="A file system with the latency of a parallel one, which counts the requests that reach "
         "it.", no_args_is_help=True
)

Directory = Annotated[str, typer.Argument(metavar="DIR", help="The directory it is mounted on.")]
Number = Optional[float]  # noqa: UP045: typer wants it so on Python 3.10


@app.command()
def mount(
    directory: Directory,
    backing: Annotated[Optional[str], typer.Option(metavar="DIR",
        help="Directory whose files are shown; default: DIR's own.")] = None,
    preset: Annotated[str, typer.Option(metavar="NAME",
        help="Defaults of the other options: local, direct, lustre, nfs or wan.")] = "local",
    round_trip_us: Annotated[Number, typer.Option(metavar="US",
        help="Delay of each request, in us.")] = None,
    metadata_us: Annotated[Number, typer.Option(metavar="US",
        help="Service time of a metadata request, in us; one is served at a time.")] = None,
    data_us: Annotated[Number, typer.Option(metavar="US",
        help="Delay added to each data request, in us.")] = None,
    bandwidth_mb: Annotated[Number, typer.Option(metavar="MB",
        help="Limit of all data together, in 10^6 bytes/s; 0: no limit.")] = None,
    bucket: Annotated[Optional[str], typer.Option(metavar="NAME",
        help="Share one server with other mounts of this NAME.")] = None,
    direct_io: Annotated[Optional[bool], typer.Option("--direct-io/--page-cache",
        help="Make each call a request, or use the page cache.")] = None,
    writeback: Annotated[bool, typer.Option("--writeback",
        help="Let the kernel cache writes (write-back).")] = False,
    attr_timeout_s: Annotated[Number, typer.Option(metavar="S",
        help="Time for which the kernel caches attributes, in s.")] = None,
    entry_timeout_s: Annotated[Number, typer.Option(metavar="S",
        help="Time for which the kernel caches names, in s.")] = None,
    threads: Annotated[int, typer.Option(metavar="N",
        help="Largest number of requests served at a time.")] = 128,
    hang_s: Annotated[Number, typer.Option(metavar="S",
        help="Answer nothing for S seconds.")] = None,
    enospc_after: Annotated[Optional[int], typer.Option(metavar="BYTES",
        help="Let writes fail with ENOSPC after this many bytes.")] = None,
    fail: Annotated[Optional[list[str]], typer.Option(metavar="RULE",
        help="Let requests fail: op:errno:rate:seed, e.g. write:EIO:0.01:7; repeatable.")] = None,
    owner: Annotated[Optional[int], typer.Option(metavar="PID",
        help="Unmount when this process ends.")] = None,
) -> None:
    """Mount on DIR and return when it is mounted."""
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
    """Unmount DIR; lazily if files in it are in use."""
    from weir import testfs

    testfs.unmount(directory)


@app.command()
def stats(
    directory: Directory,
    json: Annotated[bool, typer.Option("--json",
        help="Print all counters, also per file, as one JSON object.")] = False,
    reset: Annotated[bool, typer.Option("--reset",
        help="Set the counters to zero afterwards.")] = False,
) -> None:
    """Print the requests that reached the file system. Also works after umount."""
    from weir import testfs
    from weir.testfs._table import table

    text = testfs.find(directory).stats_json(reset=reset)
    typer.echo(text if json else table(testfs.Stats.from_json(text)), nl=False)


@app.command()
def control(
    directory: Directory,
    options: Annotated[list[str], typer.Argument(metavar="NAME=VALUE...",
        help="hang=5, fail=write:EIO:0.01:7, fail=none, data_us=0 ...")],
) -> None:
    """Change options of a mount while it runs."""
    from weir import testfs

    testfs.find(directory).control(*options)
