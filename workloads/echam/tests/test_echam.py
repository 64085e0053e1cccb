# SPDX-License-Identifier: Apache-2.0
"""The echam workload: each writer writes the messages that ecCodes writes in one process, a step
after the other."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.any_mpi

WRITERS = ("serial", "mpi-collective", "mpi-shared", "offset-sharing", "offset-guard", "posix",
    "direct")
# Buffers are smaller than a step's part of a file, and some variables smaller than others.
SIZES = ("--files", 3, "--variables", 13, "--nlat", 8, "--steps", 4, "--buffer-kb", 4)
RECORDS = 47 + 22 + 5 + 47 + 16 + 8  # of a step


@pytest.fixture
def reference(case, output):
    alone = output("eccodes")
    case("echam", 1, "--writer", "eccodes", "--dir", alone.directory, *SIZES)
    return alone


@pytest.mark.parametrize("writer", WRITERS)
def test_every_writer_writes_the_messages_of_ecCodes_alone(case, output, reference, writer):
    found = output(writer)
    run = case("echam", 4, "--writer", writer, "--dir", found.directory, *SIZES)
    found.same_messages(reference)
    assert run["requests"] == 4 * RECORDS and run["bytes"] == found.size()


def test_another_job_that_writes_files_of_the_same_name(case, output, reference):
    """Open MPI's own MPI-IO has a semaphore of the node for a file, with the last component of its
    path as its name: one that a job has left locked must not stop another one."""
    if case.mpi.name != "openmpi":
        pytest.skip("of Open MPI alone")
    left = [Path(f"/dev/shm/sem.OMPIO_echam_{file}.grb") for file in range(3)]
    for semaphore in left:
        semaphore.write_bytes(bytes(32))  # glibc's, locked
    try:
        found = output("mpi-shared")
        case("echam", 3, "--writer", "mpi-shared", "--dir", found.directory, *SIZES,
            env={"OMPI_MCA_io": "ompio"})
        found.same_messages(reference)
        assert not [path for path in found.directory.iterdir() if path.name.startswith(".")]
    finally:
        for semaphore in left:
            semaphore.unlink()


@pytest.mark.parametrize(("writer", "io"), [("serial", "fwrite"), ("offset-guard", "aio"),
    ("offset-sharing", "uring"), ("posix", "aio"), ("direct", "uring"), ("direct", "fwrite")])
def test_each_kind_of_call_writes_them(case, output, reference, writer, io):
    found = output(writer)
    case("echam", 3, "--writer", writer, "--io", io, "--dir", found.directory, *SIZES)
    found.same_messages(reference)


@pytest.mark.parametrize(("packing", "bits"), [("grid_ccsds", 12), ("grid_simple", 11)])
def test_each_encoder_makes_the_messages_of_ecCodes_alone(case, output, packing, bits):
    sizes = (*SIZES, "--packing", packing, "--bits", bits)
    alone = output("eccodes")
    case("echam", 1, "--writer", "eccodes", "--dir", alone.directory, *sizes)
    for encoder in ("weir", "eccodes"):
        found = output(f"by-{encoder}")
        case("echam", 2, "--encoder", encoder, "--dir", found.directory, *sizes)
        found.same_messages(alone)


@pytest.mark.parametrize("io", ["pwrite", "uring", "fwrite"])
def test_records_that_are_not_copied_are_written_as_well(case, output, io):
    """--encoded: the records stay where they are, and each step has the same ones."""
    sizes = (*SIZES[:-2], "--buffer-kb", 64, "--encoded")
    found, copied = output("direct"), output("serial")
    case("echam", 1, "--writer", "serial", "--dir", copied.directory, *sizes)
    run = case("echam", 3, "--writer", "direct", "--io", io, "--dir", found.directory, *sizes)
    assert run["requests"] == 4 * RECORDS
    found.same_messages(copied)


NO_RING = """
int io_uring_queue_init(unsigned entries, void* ring, unsigned flags) {
  (void)entries, (void)ring, (void)flags;
  return -1; /* EPERM, as where kernel.io_uring_disabled is 2 */
}
"""


def test_without_io_uring_the_default_is_pwrite(case, output, reference, cc):
    refuses = {"LD_PRELOAD": str(cc(NO_RING, "-shared", "-fPIC", name="no_ring.so"))}
    found = output("direct")
    case("echam", 2, "--dir", found.directory, *SIZES, env=refuses)
    found.same_messages(reference)
    done = case.start("echam", 2, "--io", "uring", "--dir", found.directory, *SIZES, env=refuses)
    assert done.returncode != 0 and "the kernel refuses a ring; use auto or pwrite" in done.stderr


def test_one_rank_is_enough_where_nobody_stands_beside(case, output, reference):
    for writer in ("serial", "mpi-collective", "mpi-shared", "offset-sharing", "direct"):
        found = output(writer)
        case("echam", 1, "--writer", writer, "--dir", found.directory, *SIZES)
        found.same_messages(reference)


def test_more_collectors_than_variables_and_a_writer_for_each_file(case, output):
    few = ("--files", 2, "--variables", 2, "--nlat", 4, "--steps", 3)
    alone, found, direct = output("eccodes"), output("posix"), output("direct")
    case("echam", 1, "--writer", "eccodes", "--dir", alone.directory, *few)
    case("echam", 5, "--writer", "posix", "--writers", 2, "--dir", found.directory, *few)
    case("echam", 5, "--writer", "direct", "--dir", direct.directory, *few)
    found.same_messages(alone)
    direct.same_messages(alone)


@pytest.mark.parametrize("windows", [1, 5])
def test_a_model_beside_them_has_its_values_gathered(case, output, reference, windows):
    found = output("direct")
    case("echam", 5, "--model", 3, "--windows", windows, "--sweep-mb", 1, "--dir", found.directory,
        *SIZES)
    found.same_messages(reference)


def test_a_rank_that_cannot_create_its_files_ends_the_run_on_all(case, tmp_path):
    done = case.start("echam", 3, "--dir", tmp_path / "nowhere", *SIZES)
    assert done.returncode != 0
    assert "echam_0.grb cannot be created: No such file or directory" in done.stderr


@pytest.mark.parametrize(("writer", "io"), [("serial", "fwrite"), ("offset-sharing", "aio"),
    ("offset-guard", "pwrite"), ("posix", "fwrite"), ("direct", "uring"), ("direct", "pwrite")])
def test_a_full_disk_of_one_rank_is_the_result_of_all(case, output, writer, io):
    """The others go on to their end, and nobody waits for the one that failed."""
    found = output(writer)
    (found.directory / "echam_1.grb").symlink_to("/dev/full")
    done = case.start("echam", 3, "--writer", writer, "--io", io, "--dir", found.directory, *SIZES)
    assert done.returncode != 0
    assert "echam_1.grb cannot be written: No space left on device" in done.stderr


@pytest.mark.parametrize(("options", "message"), [
    (("--writer", "xios"), "there is no writer xios; expected one of serial, mpi-collective"),
    (("--encoder", "cdo"), "unknown encoder cdo: expected weir or eccodes"),
    (("--io", "mmap"), "expected auto, pwrite, fwrite, aio or uring"),
    (("--writer", "posix", "--writers", 2), "2 ranks, of which 2 do not collect"),
    (("--model", 2), "expected fewer ranks than there are"),
    (("--nlat", 1), "--nlat 2 to 10000"),
])  # fmt: skip
def test_what_cannot_be_run_is_refused(case, tmp_path, options, message):
    done = case.start("echam", 2, "--dir", tmp_path, *options)
    assert done.returncode != 0 and message in done.stderr


@pytest.mark.slow
def test_a_thousand_variables_of_unequal_size(case, output, request):
    """--slow: by all writers."""
    many = ("--files", 10, "--variables", 1000, "--nlat", 8, "--steps", 2, "--buffer-kb", 64)
    alone = output("eccodes")
    case("echam", 1, "--writer", "eccodes", "--dir", alone.directory, *many)
    for writer in WRITERS if request.config.getoption("--slow") else ("offset-guard", "direct"):
        found = output(writer)
        case("echam", 4, "--writer", writer, "--dir", found.directory, *many)
        found.same_messages(alone)
