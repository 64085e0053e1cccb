# SPDX-License-Identifier: Apache-2.0
"""``weir bench``: benches that a user can run, to believe or doubt a figure."""

from __future__ import annotations

import itertools
import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from weir._files import complete_file

if TYPE_CHECKING:
    from weir.bench.lab import Lab, Line
    from weir.report.frame.table import Table
    from weir.scaling.compute import Scaling

app = typer.Typer(
    help="Run a benchmark: the four cases of the reference, the gain of each layer, or the output "
         "library beside its peers.", no_args_is_help=True)

Repeat = Annotated[int, typer.Option(metavar="N",
    help="Number of interleaved repetitions; medians are shown.")]
JsonFile = Annotated[str, typer.Option("--json", metavar="FILE",
    help="Write all figures to FILE; - for standard output.")]
Programs = Annotated[str, typer.Option(metavar="DIR",
    help="CMake build with the programs; default: build/native of the source tree.")]
MpiName = Annotated[str, typer.Option("--mpi", metavar="NAME",
    help="openmpi or mpich; default: the first that is installed.")]
Directory = Annotated[str, typer.Option(metavar="DIR",
    help="Directory for temporary data; default: /dev/shm (memory).")]
Html = Annotated[str, typer.Option("--html", metavar="FILE",
    help="Also write the curves and tables as a page for a browser.")]
Png = Annotated[str, typer.Option("--png", metavar="FILE",
    help="Also draw the curves as a picture (needs matplotlib).")]
Preset = Annotated[str, typer.Option(metavar="NAME",
    help="The test file system's preset; see weir testfs mount.")]


def _note(text: str) -> None:
    """One line that the next one replaces; nothing where nobody looks."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{text}")
        sys.stderr.flush()


def _write_json(where: str, data: object) -> None:
    text = json.dumps(data, indent=1) + "\n"
    if where == "-":
        sys.stdout.write(text)
    else:
        with complete_file(where) as file:
            file.write(text.encode())


def _check_repeat(repeat: int) -> int:
    from weir._errors import UsageError

    if repeat < 1:
        raise UsageError(f"--repeat {repeat}: expected a positive number")
    return repeat


@app.command()
def nersc(
    scale: Annotated[float, typer.Option(metavar="S",
        help="Size of the cases; 1 takes some minutes on two cores.")] = 1.0,
    case: Annotated[str, typer.Option(metavar="LIST", help="The cases to run.")] = "I,II,III,IV",
    pes: Annotated[
        list[str] | None, typer.Option(metavar="LIST",
            help="Ranks: 4,16 for case III; I=8, IV=16 for another. Repeatable.")
    ] = None,
    repeat: Repeat = 5,
    json_file: JsonFile = "",
    mpi: MpiName = "",
    ompio: Annotated[bool, typer.Option("--ompio",
        help="Open MPI's own MPI-IO in place of ROMIO.")] = False,
    preset: Preset = "lustre",
    programs: Programs = "",
    directory: Directory = "",
) -> None:
    """The four cases of bad I/O of the reference, plain and with the layers that cured them there.

    Prints the four tables beside the published ones: requests that reached the file system, bytes,
    seconds in I/O, elapsed time. Exit status 0 when every goal that was measured was met, 1
    otherwise.
    """
    from weir._errors import UsageError
    from weir.bench import nersc as bench
    from weir.bench import nersc_tables
    from weir.bench._programs import build_directory
    from weir.bench.cases import CASES

    chosen = tuple(case.split(","))
    if not set(chosen) <= set(CASES):
        raise UsageError(f"--case {case}: expected some of {', '.join(CASES)}, separated by commas")
    if not 0 < scale <= 100:
        raise UsageError(f"--scale {scale}: expected a number above 0 and at most 100")
    options = bench.Options(
        scale, chosen, bench.parse_ranks(pes or [], chosen), _check_repeat(repeat), mpi or None,
        ompio, preset, directory or None
    )
    runs = bench.Bench(options, build_directory(programs or None), _note)
    tables: list[bench.Table] = []
    for _, of_case in itertools.groupby(runs.tables(), key=lambda table: table.case.number):
        tables += (group := list(of_case))
        _note("")
        if json_file != "-":
            typer.echo(nersc_tables.text(group))
    if json_file:
        conditions = {"scale": scale, "repeat": repeat, "mpi": runs.mpi.name, "preset": preset}
        _write_json(json_file, nersc_tables.as_data(tables, **conditions))
    verdicts = [bench.verdict(table) for table in tables]
    failed = any(row.error for table in tables for row in table.rows)
    raise typer.Exit(1 if failed or any(v is not None and not v.met for v in verdicts) else 0)


@app.command()
def layers(
    only: Annotated[str, typer.Option(metavar="LIST",
        help="Run these lines only, by name (--list prints them); with --sweep these "
             "layers.")] = "",
    show: Annotated[bool, typer.Option("--list",
        help="List the lines with their stacks and end.")] = False,
    sweep: Annotated[bool, typer.Option("--sweep",
        help="Sweep pieces, ranks and patterns; print where each layer is worst.")] = False,
    full: Annotated[bool, typer.Option("--full",
        help="With --sweep: 8 B to 16 MiB, 1 to 64 ranks, all patterns.")] = False,
    stack: Annotated[list[str] | None, typer.Option(metavar="NAME=STACK",
        help="Use another stack for a line's layer; repeatable.")] = None,
    scale: Annotated[float, typer.Option(metavar="S",
        help="Size of files and number of calls.")] = 1.0,
    repeat: Repeat = 5,
    json_file: JsonFile = "",
    mpi: MpiName = "",
    preset: Preset = "lustre",
    programs: Programs = "",
    directory: Directory = "",
) -> None:
    """What each layer gains where it should, and costs where it cannot help, beside its goals.

    Every line runs plain and layered programs interleaved on the test file system and checks the
    contents. A line that cannot be run is an error of that line. Exit status 0 when all goals were
    met (with --sweep: when no layer is worse than plain in a cell, in requests, bytes or waits), 1
    otherwise.
    """
    from weir.bench import lab, layer_lines, layer_tables
    from weir.bench._programs import build_directory

    swept = _choose_swept(only) if sweep else ()
    lines = layer_lines.LINES if sweep else _choose_lines(only, layer_lines.LINES)
    stacks = _choose_stacks(stack or [], layer_lines.STACKS)
    if show:
        for line in lines:
            typer.echo(f"{line.name:<10}  {line.title}")
        typer.echo("stacks: " + ", ".join(f"{name}={value}" for name, value in stacks.items()))
        return
    found = []
    with lab.open_lab(build_directory(programs or None), _check_repeat(repeat), mpi or None, scale,
            preset, directory or None, _note) as place:
        if sweep:
            return _sweep_layers(place, swept, full, json_file)
        place.stacks = stacks
        for line in lines:
            found.append((line, lab.measure(place, line)))
            _note("")
            if json_file != "-":
                typer.echo(layer_tables.text(*found[-1]))
    if json_file:
        conditions = {"scale": scale, "repeat": repeat, "preset": preset, "stacks": stacks}
        _write_json(json_file, layer_tables.as_data(found, **conditions))
    fine = all(not outcome.error and all(check.met for check in outcome.checks)
        for _, outcome in found)
    raise typer.Exit(0 if fine else 1)


def _choose_swept(only: str) -> tuple[str, ...]:
    from weir._errors import UsageError
    from weir.bench import sweep

    names = only.split(",") if only else list(sweep.layers())
    unknown = [name for name in names if name not in sweep.layers()]
    if unknown:
        there = ", ".join(sweep.layers())
        raise UsageError(f"--only {only}: no layer {unknown[0]} in the sweep; there are {there}")
    return tuple(names)


def _sweep_layers(place: Lab, layers: tuple[str, ...], full: bool, json_file: str) -> None:
    from weir.bench import sweep

    found: list[sweep.Ratio] = []
    for case in sweep.cases() if full else sweep.quick():
        _note(str(case))
        found += sweep.measure(place, case, layers)
    _note("")
    if json_file != "-":
        typer.echo(sweep.text(found))
    if json_file:
        _write_json(json_file, sweep.as_data(found))
    raise typer.Exit(1 if any(one.worse for one in found) else 0)


@app.command()
def wrf(
    scale: Annotated[float, typer.Option(metavar="S",
        help="Factor of the number of points; 1 is 1770 x 1986 and 2974 x 3118, 5.9 GB a "
             "frame.")] = 0.02,
    ranks: Annotated[str, typer.Option(metavar="LIST",
        help="Numbers of ranks that compute; goals are measured for a single one.")] = "4",
    servers: Annotated[int, typer.Option(metavar="N",
        help="Number of servers beside them; servers+parallel uses at least 2.")] = 1,
    steps: Annotated[int, typer.Option(metavar="N", help="Steps of the model.")] = 16,
    every: Annotated[int, typer.Option(metavar="N", help="A frame at steps 0, N, 2 N, ...")] = 5,
    interval: Annotated[float, typer.Option(metavar="SECONDS",
        help="Seconds of computing between two frames.")] = 1.0,
    compute: Annotated[str, typer.Option(metavar="sleep|cpu",
        help="sleep leaves the cores idle while computing, cpu keeps them busy.")] = "sleep",
    only: Annotated[str, typer.Option(metavar="LIST",
        help="Run these writers only: serial, collective, servers, servers+parallel, gather, "
             "...")] = "",
    skip_goals: Annotated[bool, typer.Option("--table",
        help="The table of writers alone, without the runs that only goals need.")] = False,
    repeat: Repeat = 5,
    html: Html = "",
    png: Png = "",
    json_file: JsonFile = "",
    mpi: MpiName = "",
    programs: Programs = "",
    directory: Directory = "",
    disk: Annotated[str, typer.Option(metavar="DIR",
        help="On a disk, for the runs with fsync (TMPDIR or /var/tmp).")] = "",
) -> None:
    """The reference's model output, two domains of WRF, through the output library in its four
    modes and through its peers.

    Prints what the model sees of its output, how fast each writer is, how input and restarts are
    read, the reference's criteria on each number of ranks, and the library's goals. Exit status 0
    when every goal that was measured was met and every writer that is installed ran, 1 otherwise.
    """
    from weir.bench import wrf as bench
    from weir.bench import wrf_goals, wrf_input, wrf_tables
    from weir.bench._programs import build_directory
    from weir.scaling.figure import check_drawable

    if png:
        check_drawable(png)
    chosen = tuple(only.split(",")) if only else tuple(bench.BY_NAME)
    counts = _rank_list(ranks)
    options = bench.Options(
        scale, counts[0], servers, steps, every, interval, compute, repeat, directory or None, disk
        or None, mpi or None, chosen
    )
    for count in counts:
        bench.check(replace(options, ranks=count))
    with bench.laboratory(options, build_directory(programs or None), _note) as lab:
        runs, rows = bench.on_ranks(lab, counts)
        goals = [] if skip_goals or len(counts) > 1 else wrf_goals.Goals(runs, rows).all()
        read = [] if skip_goals else wrf_input.Input(lab, max(counts), servers).rows()
        _note("")
    curves = wrf_tables.curves(rows)
    if json_file != "-":
        typer.echo(wrf_tables.text(options, lab.mpi.name, rows, goals, read))
    if json_file:
        _write_json(json_file, wrf_tables.as_data(options, lab.mpi.name, rows, goals,
            read))
    _draw_curves("WRF output benchmark", curves,
        wrf_tables.tables(options, rows, goals, read), html, png)
    failed = any(row.error and not row.error.startswith("left out") for row in [*rows, *read])
    raise typer.Exit(1 if failed or any(goal.met is False for goal in goals) else 0)


@app.command()
def olam(
    ranks: Annotated[str, typer.Option(metavar="LIST",
        help="Numbers of ranks, up to 128.")] = "1,2,4,8,16",
    only: Annotated[str, typer.Option(metavar="LIST",
        help="Run these only: disk, node-disk, nfs, lustre, global, forward, pack, interleaving, "
             "memory, techniques.")] = "",
    scale: Annotated[float, typer.Option(metavar="S",
        help="Factor of the size of the maps; 1 is 500 MB.")] = 0.1,
    execute: Annotated[float, typer.Option("--exec", metavar="SECONDS",
        help="Seconds of the time steps (8exec) on one rank.")] = 2.0,
    io_only: Annotated[bool, typer.Option("--io-only",
        help="No time steps: for more ranks than the cores can compute.")] = False,
    nfs: Annotated[str, typer.Option(metavar="DIR",
        help="Directory on an NFS mount, for nfs; default: the test file system, preset "
             "nfs.")] = "",
    repeat: Repeat = 3,
    html: Html = "",
    png: Png = "",
    json_file: JsonFile = "",
    mpi: MpiName = "",
    programs: Programs = "",
    directory: Directory = "",
    disk: Annotated[str, typer.Option(metavar="DIR",
        help="Directory on a disk, for the configuration disk; default: TMPDIR or "
             "/var/tmp.")] = "",
) -> None:
    """The OLAM study: a model whose ranks read shared maps and write many small files, on rising
    numbers of ranks.

    Prints speed-up, where each curve stops scaling, and the seconds of each phase and its barrier;
    on file systems with latency also with one rank on each node. Exit status 1 when a configuration
    failed.
    """
    from weir.bench import olam as bench
    from weir.bench import olam_contention, olam_tables
    from weir.bench._programs import build_directory
    from weir.report.frame.table import text_lines
    from weir.report.render import screen_width
    from weir.scaling.figure import check_drawable

    if png:
        check_drawable(png)
    chosen = tuple(only.split(",")) if only else bench.Options().only
    options = bench.Options(_rank_list(ranks), chosen, scale, execute, io_only,
        _check_repeat(repeat), mpi or None, nfs or None, directory or None, disk or None)
    runs = bench.Bench(bench.check(options), build_directory(programs or None), _note)
    if json_file != "-":
        typer.echo(olam_tables.header(options, runs.mpi.name) + "\n")
    found = []
    for one in runs.all():
        found.append(one)
        _note("")
        if json_file != "-":
            typer.echo(olam_tables.text(one))
    order, rates, small = olam_contention.beside(runs)
    _note("")
    tables = list(olam_tables.tables(found, order, rates, small))
    if json_file != "-":
        typer.echo("\n\n".join("\n".join(text_lines(table, screen_width(), is_split=False))
            for table in tables))
    if json_file:
        _write_json(json_file, olam_tables.as_data(options, runs.mpi.name, found, order, rates,
            small))
    curves = {one.configuration.title: one.found for one in found if one.found}
    _draw_curves("OLAM benchmark", curves, tables, html, png)
    raise typer.Exit(1 if any(one.error for one in [*found, *small]) else 0)


@app.command()
def scales(
    pes: Annotated[str, typer.Option(metavar="LIST",
        help="Numbers of PEs (ranks that do the output), up to 64.")] = "2,4,8,16",
    only: Annotated[str, typer.Option(metavar="LIST",
        help="Run these only: serial, mpi-collective, mpi-shared, offset-sharing, offset-guard, "
             "posix, posix-aio, posix-uring, posix-files, direct, direct-pwrite.")] = "",
    scale: Annotated[float, typer.Option(metavar="S",
        help="Factor of the volume; 1 is the 47 GB of the reference.")] = 0.005,
    writing: Annotated[float, typer.Option(metavar="S",
        help="The same factor, of the runs that write without encoding.")] = 0.01,
    variables: Annotated[int, typer.Option(metavar="N",
        help="Number of variables, of unequal size.")] = 40,
    nlat: Annotated[int, typer.Option(metavar="N",
        help="Latitudes of the grid; longitudes are twice as many.")] = 96,
    encoder: Annotated[str, typer.Option(metavar="NAME",
        help="What encodes the records: weir (the output library), or eccodes (ecCodes alone, "
             "which writes the same messages).")] = "weir",
    places: Annotated[str, typer.Option(metavar="LIST",
        help="Where files lie: memory, disk.")] = "memory,disk",
    rates_only: Annotated[bool, typer.Option("--table",
        help="The table of rates alone: no profiles, windows, nodes, cost of tracing.")] = False,
    minutes: Annotated[float | None, typer.Option(metavar="M",
        help="Begin no run after so many minutes.")] = None,
    resume: Annotated[str, typer.Option(metavar="FILE",
        help="Keep the runs that are done in FILE, and go on with those that it has.")] = "",
    repeat: Repeat = 3,
    html: Html = "",
    png: Png = "",
    json_file: JsonFile = "",
    mpi: MpiName = "",
    programs: Programs = "",
    directory: Directory = "",
    disk: Annotated[str, typer.Option(metavar="DIR",
        help="Directory on a disk; default: TMPDIR or /var/tmp.")] = "",
) -> None:
    """The reference's comparison of writers: collectors encode the output of a model like ECHAM as
    GRIB and write it into shared files by eleven methods.

    Prints rates beside the published ones, time by routine from weir's own trace, and goals. Each
    method's messages are compared with those of ecCodes alone. With --minutes it ends in known
    time, with --resume the same command goes on. Goals are judged row by row: met, missed, or not
    distinguishable. Exit status 0 when no goal was missed and every method ran, 1 otherwise.
    """
    from weir.bench import scales as bench
    from weir.bench import scales_figure, scales_tables
    from weir.bench._programs import build_directory

    if png:
        scales_figure.check_drawable(png)
    options = bench.check(bench.Options(_rank_list(pes, "--pes"),
        tuple(only.split(",")) if only else tuple(bench.BY_NAME), scale, writing, variables, nlat,
        encoder=encoder, repeat=_check_repeat(repeat), mpi=mpi or None, directory=directory or None,
        disk=disk or None, places=tuple(places.split(",")), minutes=minutes,
        resume=resume or None))
    runs = bench.Bench(options, build_directory(programs or None), _note)
    found = scales_tables.measure(runs, rates_only)
    _note("")
    if json_file != "-":
        typer.echo(scales_tables.text(options, runs.mpi.name, runs.steps, found))
    if json_file:
        _write_json(json_file, scales_tables.as_data(options, runs.mpi.name, runs.steps, found))
    _draw_curves("Comparison of writers", scales_tables.curves(found.rows),
        list(scales_tables.tables(found)), html, "",
        scales_tables.about(options, runs.mpi.name, runs.steps, found))
    if png:
        scales_figure.write_plots(found.rows, png)
    missed = any(goal.met is False for goal in scales_tables.goals(found))
    raise typer.Exit(1 if found.is_short() or missed else 0)


@app.command()
def datawarp(
    scale: Annotated[float, typer.Option(metavar="S",
        help="Factor of the number of points of WRF's two domains; 1 is 5.9 GB a frame.")] = 0.01,
    ranks: Annotated[int, typer.Option(metavar="N",
        help="Ranks that write and read; a multiple of 3.")] = 18,
    frames: Annotated[int, typer.Option(metavar="N", help="Frames that are written.")] = 2,
    ost_mb: Annotated[float, typer.Option(metavar="RATE",
        help="Bandwidth (MB/s) of each of the 16 OSTs.")] = 20,
    burst_mb: Annotated[float, typer.Option(metavar="RATE",
        help="Bandwidth (MB/s) of each of the 3 burst buffer nodes.")] = 60,
    json_file: JsonFile = "",
    mpi: MpiName = "",
    programs: Programs = "",
    directory: Directory = "",
) -> None:
    """The WRF reference's comparison: 3 burst buffer nodes against 3 and 16 stripes of Lustre.

    Each server is a mount of the test file system with a bandwidth of its own. Output and input of
    a job script with #DW lines, striped and private; then files and a container that one node
    wrote are read on another. Exit status 1 when something failed.
    """
    from weir.bench import datawarp as bench
    from weir.bench import datawarp_tables
    from weir.bench._programs import build_directory
    from weir.report.render import screen_width

    options = bench.check(bench.Options(scale, ranks, frames, ost_mb, burst_mb, mpi or None,
        directory or None))
    runs = bench.Bench(options, build_directory(programs or None), _note)
    rows = list(runs.rows())
    _note("")
    if json_file != "-":
        typer.echo(datawarp_tables.header(options, runs.mpi.name) + "\n")
        typer.echo(datawarp_tables.text(list(datawarp_tables.tables(rows)), screen_width()))
    if json_file:
        _write_json(json_file, datawarp_tables.as_data(options, runs.mpi.name, rows))
    raise typer.Exit(1 if any(row.error for row in rows) else 0)


def _draw_curves(title: str, found: dict[str, Scaling], tables: list[Table], html: str,
        png: str, about: str = "") -> None:
    from weir.report.html import write_page
    from weir.scaling.compute import STOP_GAIN
    from weir.scaling.figure import write_figure
    from weir.scaling.page import scalings_page

    if png and not found:
        sys.stderr.write(f"weir: {png} is not written: curves need runs on several numbers of "
                         f"ranks\n")
    if html:
        write_page(scalings_page(found, STOP_GAIN, tables, title, about), html)
    if png and found:
        write_figure(found, png)


def _rank_list(text: str, option: str = "--ranks") -> tuple[int, ...]:
    from weir._errors import UsageError

    try:
        return tuple(int(word) for word in text.split(","))
    except ValueError:
        raise UsageError(f"{option} {text}: expected numbers separated by commas, such as "
                         f"1,2,4,8") from None


def _choose_lines(only: str, lines: tuple[Line, ...]) -> tuple[Line, ...]:
    from weir._errors import UsageError

    names = only.split(",") if only else [line.name for line in lines]
    unknown = [name for name in names if name not in {line.name for line in lines}]
    if unknown:
        raise UsageError(
            f"--only {only}: no line {unknown[0]}; there are "
            f"{', '.join(line.name for line in lines)}")
    return tuple(line for line in lines if line.name in names)


def _choose_stacks(given: list[str], stacks: dict[str, str]) -> dict[str, str]:
    from weir._errors import UsageError

    chosen = dict(stacks)
    for word in given:
        name, equals, value = word.partition("=")
        if not equals or name not in stacks:
            raise UsageError(f"--stack {word}: expected NAME=STACK with one of {', '.join(stacks)}")
        chosen[name] = value
    return chosen
