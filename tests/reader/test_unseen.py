# SPDX-License-Identifier: Apache-2.0
"""What was not seen is stated first, by name and likely way; what was seen raises no alarm."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time

import pytest

from weir.report.processes.account import past_calls

MAPPED = """
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
int main(void) {
  int fd = open("mapped", O_RDWR | O_CREAT | O_TRUNC, 0600);
  ftruncate(fd, 8 << 20);
  char *at = mmap(0, 8 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  memset(at, 1, 8 << 20);
  return 0;
}
"""
STATS = (
    'struct stat about; for (int i = 0; i < 3000; ++i) stat("/", &about), lseek(0, 0, SEEK_CUR);'
)
PRINTS = (
    'FILE *log = fopen("log", "w");'
    'for (int i = 0; i < 3000; ++i) fprintf(log, "line %d", i);'
    "fclose(log);"
)
MAPPED_COLD = """
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int count, char **arguments) {
  int fd = open(arguments[1], O_RDONLY), sum = 0;
  char *at = mmap(0, 8 << 20, PROT_READ, MAP_SHARED, fd, 0);
  for (int i = 0; i < 8 << 20; i += 4096) sum += at[i];
  return sum == 1;
}
"""
SEEKS = """
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **arguments) {
  const int kind = atoi(arguments[1]);
  FILE *f = fopen("big", kind == 2 ? "r+" : "r");
  char to[9000];
  srand(1);
  for (int i = 0; i < 3000; ++i) {
    const int place = rand();
    if (kind != 1) fseek(f, place % (7 << 20), SEEK_SET);
    else fseek(f, place % 6000 - 3000, SEEK_CUR);
    if (fread(to, 1, i % 3 ? 4 : place % 9000, f) > sizeof to) return 1;
    if (i % 100 == 0) fflush(f);
    if (kind == 2 && i % 7 == 0) fseek(f, place % 1000, SEEK_SET), fwrite(to, 1, 4, f);
  }
  return fclose(f);
}
"""
# Starts its argument without a call of the C library's that could be seen, as a daemon of a batch
# system does, and with nothing in its environment.
SRUN = """
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int count, char **arguments) {
  char *none[] = {0};
  if (fork() == 0) {
    if (fork() == 0) syscall(SYS_execve, arguments[1], arguments + 1, none);
    _exit(0);
  }
  wait(0);
  return 0;
}
"""


@pytest.fixture
def traced(weir, tmp_path):
    """``traced(command...)``: statuses of weir trace and weir report, its first line, the JSON."""

    def call(*command, level="trace", env=None):
        run = tmp_path / "run"
        shutil.rmtree(run, ignore_errors=True)
        done = weir(
            "trace", "-q", "--level", level, "-o", run, "--", *command, cwd=tmp_path, env=env
        )
        report = weir("report", run)
        as_json = json.loads(weir("report", run, "--json").stdout)
        return done.returncode, report.returncode, report.stdout.split("\n", 1)[0], as_json

    return call


@pytest.fixture
def storage(tmp_path):
    """Skips where the kernel counts no pages that are written: a file system in memory."""

    def counted():
        with open("/proc/self/io") as figures:
            return int(next(line for line in figures if line.startswith("write_bytes")).split()[1])

    before = counted()
    (tmp_path / "probe").write_bytes(bytes(1 << 20))
    if counted() - before < 1 << 20:
        pytest.skip("this file system counts no written pages (tmpfs)")


@pytest.fixture
def big(tmp_path):
    (tmp_path / "big").write_bytes(os.urandom(8 << 20))


@pytest.mark.parametrize("level", ["summary", "trace"])
@pytest.mark.parametrize(
    "script",
    [
        "env -i /bin/dd if=/dev/zero of=z bs=1M count=5; true",
        "exec env -i /bin/dd if=/dev/zero of=z bs=1M count=5",
    ],
)
def test_a_program_without_an_environment_is_named(traced, script, level):
    _, status, first, made = traced("bash", "-c", script, level=level)
    assert status == 4 and not made["complete"]
    assert first.startswith(
        "note: INCOMPLETE: 10.5 of 10.5 MB that the kernel counted were not seen; "
        "1 program left no records: /bin/dd (pid "
    )
    assert "started without LD_PRELOAD" in first and made["unseen"][
        "statement"
    ] == first.removeprefix("note: ")
    assert next(iter(made)) == "format" and list(made)[1] == "unseen"
    assert made["unseen"]["processes"] == []  # bash is not blamed


def test_a_program_with_another_preload_is_named_with_it(traced, cc, tmp_path):
    """As mpiexec -env LD_PRELOAD X starts ranks."""
    other = cc("int nothing;", "-shared", "-fPIC", name="other.so")
    _, status, first, made = traced("env", f"LD_PRELOAD={other}", "dd", "if=/dev/zero", "of=z",
        "bs=1M", "count=5")
    assert status == 4
    assert f"started with LD_PRELOAD={other}, without weir's library in it" in first
    assert [one["reason"].count("WEIR_TRACE_DIR") for one in made["unseen"]["programs"]] == [0]


@pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None,
    reason="another user needs root and setpriv",
)
def test_a_program_that_runs_as_another_user_is_named(traced):
    _, status, first, _ = traced(
        "setpriv",
        "--reuid",
        "65534",
        "--clear-groups",
        "dd",
        "if=/dev/zero",
        "of=/dev/null",
        "bs=1M",
        "count=5",
    )
    assert (
        status == 4
        and "1 program left no records: dd (pid " in first
        and "runs as another user (65534)" in first
    )


def test_what_is_harmless_makes_no_run_incomplete(traced, cc, tmp_path):
    static = cc("int main(void) { return 0; }", "-static", name="nothing")
    status, reported, _, made = traced("bash", "-c", f"{static}; env -i {static}; true")
    assert (status, reported, made["complete"]) == (0, 0, True)
    assert [one["matters"] for one in made["unseen"]["programs"]] == [False, False]
    (note,) = (note for note in made["notes"] if "left no records" in note)
    assert "2 programs left no records. Their parents got less than 64 KiB" in note
    assert 0 < note.index(": started without") < note.index(": static, setuid")


STATIC_SHELL = """
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
static char block[1 << 20];
int main(void) {
  int status = system("cat /etc/hostname > name"), fd = open("big", O_WRONLY | O_CREAT, 0600);
  for (int i = 0; i < 5; ++i) write(fd, block, sizeof block);
  return status;
}
"""


@pytest.mark.parametrize("level", ["trace", "summary"])
def test_a_static_command_is_missed_though_programs_that_it_starts_are_seen(traced, cc, level):
    status, reported, first, made = traced(cc(STATIC_SHELL, "-static", name="model"), level=level)
    assert (status, reported, made["complete"]) == (0, 4, False)
    assert "5.2 of 5.3 MB that the kernel counted were not seen; 1 program left no" in first
    (one,) = made["unseen"]["programs"]
    assert one["program"].endswith("model") and one["matters"] and one["pid"] > 0


RAW = """
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
static long raw(long number, long a, long b, long c) {
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return result;
}
int main(void) {
  static char block[1 << 20];
  memset(block, 1, sizeof block);
  long fd = raw(SYS_open, (long)"raw", O_CREAT | O_WRONLY, 0600);
  for (int i = 0; i < 6; ++i) raw(SYS_write, fd, (long)block, sizeof block);
  raw(SYS_exit_group, 0, 0, 0);
}
"""


def test_a_program_that_makes_and_ends_by_system_calls_of_its_own(traced, cc, tmp_path):
    """As Go programs do: its own end is not seen, but whoever started the job has its figures."""
    status, reported, first, made = traced(cc(RAW, name="raw"))
    assert (status, reported, made["complete"]) == (0, 4, False)
    assert "6.3 of 6.3 MB that the kernel counted were not seen" in first
    ended = "it ended with status 0, by a system call that weir did not see"
    assert any(ended in note for note in made["notes"])


def test_a_failed_exec_is_no_start(traced):
    status, reported, _, made = traced(
        "bash", "-c", "PATH=/nowhere; no_such_program; env; /etc/passwd; true"
    )
    assert (reported, made["unseen"]["programs"]) == (0, [])


@pytest.mark.parametrize(
    "before", ["", STATS, PRINTS], ids=["alone", "after stats", "after fprintf"]
)
def test_files_written_through_mappings_are_missed_aloud(traced, storage, cc, before):
    """Whatever the process did beside that: calls that make no page dirty explain no byte that went
    to storage."""
    _, status, first, _ = traced(
        cc(MAPPED.replace("  int fd", before + "  int fd"), "-w", name="mapped")
    )
    assert status == 4 and "likely by a mapping of files" in first


@pytest.mark.skipif(shutil.which("fio") is None, reason="no fio")
@pytest.mark.parametrize(
    ("engine", "way"),
    [("psync", None), ("libaio", None), ("io_uring", "io_uring"), ("mmap", "mapping")],
)
def test_engines_of_fio(traced, weir, tmp_path, engine, way):
    options = (
        "--name=j",
        "--size=16M",
        "--bs=64k",
        "--rw=write",
        f"--ioengine={engine}",
        f"--directory={tmp_path}",
    )
    _, status, first, made = traced("fio", *options)
    if way is None:
        assert status == 0 and made["unseen"]["bytes"] == 0
        return
    if made["unseen"]["kernel_bytes"] < 1 << 20:
        pytest.skip(
            "this file system counts no written pages (tmpfs), or the kernel has no io_uring"
        )
    assert status == 4 and way in first and "fio" in first
    assert made["unseen"]["bytes"] < 1.5 * (
        16 << 20
    )  # what fio laid out was seen; a page that is read and changed counts once
    table = weir("report", tmp_path / "run", "--tables", "processes").stdout.splitlines()
    (found,) = [line.split() for line in table if " *  " in line]
    assert float(found[found.index("*") - 1]) > 10
    remark = "*: INCOMPLETE, more than 1 MiB and 1 % of the bytes of the process were not seen"
    assert remark in " ".join(table)


@pytest.mark.skipif(shutil.which("fio") is None, reason="no fio")
@pytest.mark.parametrize("direct", [0, 1])
@pytest.mark.parametrize("way", ["--rw=read", "--rw=write"])
@pytest.mark.parametrize("job", ["--thread", "--group_reporting"], ids=["thread", "process"])
def test_rings_of_fio(traced, storage, tmp_path, job, way, direct):
    """fio makes its system calls of io_uring itself. In a thread it is one process with thousands
    of calls that move nothing."""
    options = (
        "--name=j",
        "--size=8M",
        "--bs=64k",
        way,
        job,
        f"--direct={direct}",
        "--ioengine=io_uring",
        f"--directory={tmp_path}",
    )
    done, status, first, made = traced("fio", *options)
    if done != 0:
        pytest.skip("this file system has no direct I/O, or the kernel has no io_uring")
    if way == "--rw=read" and status == 0:
        assert (
            made["unseen"]["kernel_bytes"] < 12 << 20
        )  # pages in memory: storage was read for what fio laid out alone
        return
    assert (
        status == 4
        and first.startswith("note: INCOMPLETE: ")
        and "not seen: fio " in first
        and "likely by io_uring" in first
    )
    assert 6 << 20 < made["unseen"]["bytes"] < 12 << 20


def test_a_process_that_moved_nothing_is_no_line_of_the_table(traced, weir, tmp_path):
    _, status, _, made = traced(
        "bash", "-c", "true > empty; (exit 0); printf %01000d 1 > out; true"
    )
    assert status == 0 and len(made["processes"]) == 2
    table = weir("report", tmp_path / "run", "--tables", "processes").stdout.splitlines()
    assert len([line for line in table if line.startswith("main ")]) == 1
    assert "1 process with less than 500 bytes: not listed (--json lists them)" in table


def test_a_cut_trace_is_the_cause_of_what_is_missing(traced, weir, big, tmp_path):
    """No other way is guessed where records are lost with a part of the file."""
    assert traced("dd", "if=big", "of=copy", "bs=4k")[1] == 0
    (trace,) = (tmp_path / "run").rglob("*.weir")
    os.truncate(trace, trace.stat().st_size // 2)
    done = weir("report", tmp_path / "run")
    (said, *others) = json.loads(weir("report", tmp_path / "run", "--json").stdout)["notes"]
    assert done.returncode == 4
    assert re.match(r"INCOMPLETE: damaged: \S+\.weir: .*; [\d.]+ of [\d.]+ MB .* not seen: dd ",
        said)
    cause = re.match(r"INCOMPLETE: (damaged: .*? at byte \d+)", said)
    assert "likely" not in said and cause is not None and cause[1] not in others


def test_a_program_whose_records_are_cut_off_is_not_called_static(weir, tmp_path):
    weir("trace", "-q", "-o", tmp_path / "run", "--", "bash", "-c",
        "dd if=/dev/zero of=x bs=1M count=8; true", cwd=tmp_path)
    (trace,) = (tmp_path / "run" / "main").glob("*.weir")
    programs, end = [], trace.stat().st_size
    while not programs and end > 4096:
        end -= 4096
        os.truncate(trace, end)
        made = json.loads(weir("report", tmp_path / "run", "--json").stdout)
        programs = made["unseen"]["programs"]
    assert [one["program"].rpartition("/")[2] for one in programs] == ["dd"]
    assert programs[0]["reason"] == (
        "its records are lost with the damage of the trace, or it left none")


@pytest.mark.parametrize(("read", "written", "mapped", "has_ring", "counted"), [
    (8 << 20, 8 << 20, 8 << 20, False, [0, 8 << 20]),  # a mapping that is changed: once
    (8 << 20, 2 << 20, 8 << 20, False, [6 << 20, 2 << 20]),
    (8 << 20, 0, 8 << 20, False, [8 << 20, 0]),
    (8 << 20, 8 << 20, 0, False, [0, 8 << 20]),  # what is read is text of programs
    (8 << 20, 8 << 20, 0, True, [8 << 20, 8 << 20]),  # io_uring reads and writes
    (-5, 3, 100, False, [0, 0]),
])  # fmt: skip
def test_pages_of_a_mapping_count_once(read, written, mapped, has_ring, counted):
    assert past_calls(read, written, mapped, has_ring) == counted


@pytest.mark.parametrize(("mapped", "has_ring", "counted"), [
    (0, False, 3 << 20),  # nothing but the pages of the trace explains the rest
    (8 << 20, False, 8 << 20), (16 << 20, False, 11 << 20), (0, True, 11 << 20),
])  # fmt: skip
def test_pages_of_the_trace_explain_what_no_mapping_does(mapped, has_ring, counted):
    assert past_calls(0, 11 << 20, mapped, has_ring, by_trace=8 << 20)[1] == counted


SLOW = """
import os, sys
ask, answer, out = os.open(sys.argv[1], os.O_RDONLY), os.open(sys.argv[2], os.O_WRONLY), \
    os.open("slow", os.O_WRONLY | os.O_CREAT)
while os.read(ask, 1):
    os.write(out, bytes(4096))
    os.write(answer, b"x")
"""


def test_a_slow_writer_whose_trace_is_written_back_raises_no_alarm(
    preload_env, tmp_path, weir
):
    """The kernel counts the pages around a record each time that the trace is clean when it is
    stored."""
    ask, answer = tmp_path / "ask", tmp_path / "answer"
    for fifo in (ask, answer):
        os.mkfifo(fifo)
    slow = subprocess.Popen([sys.executable, "-c", SLOW, ask, answer], cwd=tmp_path,
        env=os.environ | preload_env("step", level="trace"))
    with open(ask, "wb", buffering=0) as to, open(answer, "rb", buffering=0) as answers:
        trace = os.open(next((tmp_path / "run" / "step").glob("*.weir")), os.O_RDONLY)
        for _ in range(120):
            to.write(b"x")
            assert answers.read(1) == b"x"
            os.fsync(trace)
        os.close(trace)
    assert slow.wait() == 0
    made = json.loads(weir("report", tmp_path / "run", "--json").ok().stdout)
    assert made["unseen"]["bytes"] == 0


@pytest.mark.parametrize("kind", [0, 1])
def test_what_streams_pass_over_is_known_to_the_byte(traced, cc, big, kind):
    _, status, _, made = traced(cc(SEEKS, "-w", name="seeks"), str(kind))
    one = made["processes"][0]
    assert (
        status == 0
        and one["kernel_bytes_read"] > 1.5 * one["seen_bytes_read"]
        and made["unseen"]["bytes"] == 0
    )


def test_a_stream_that_is_read_and_written_is_no_alarm(traced, cc, big):
    assert traced(cc(SEEKS, "-w", name="seeks"), "2")[1] == 0


def test_the_kernels_figure_is_the_kernels(traced, tmp_path):
    _, _, _, made = traced("bash", "-c", "printf %074d 1 > small")
    assert (tmp_path / "small").stat().st_size == 74
    assert [one["kernel_bytes_written"] for one in made["processes"]] == [74]


def test_a_launcher_whose_ranks_left_nothing_is_no_rank(traced, weir, cc, tmp_path):
    """srun is not installed here: a mock of its name starts the rank as slurmd does, unseen."""
    srun = cc(SRUN, "-w", name="srun")
    status, reported, first, made = traced(srun, "/bin/true")
    assert (status, reported, made["complete"]) == (3, 4, False)
    assert first.startswith("note: INCOMPLETE: no rank was traced")
    assert made["steps"][0]["ranks"] == 0
    assert "its ranks were started without LD_PRELOAD" in first


@pytest.mark.any_mpi
@pytest.mark.mpi
@pytest.mark.timeout(60)
def test_a_launcher_that_failed_is_no_sign_of_ranks_without_weir(weir, mpi, tmp_path):
    done = weir("trace", "-o", tmp_path / "run", "--", *mpi.launch(1, "/nonexistent/model"),
        env=mpi.env)
    assert done.returncode not in (0, 3)
    assert f"the launcher ended with exit status {done.returncode}; what it printed" in done.stderr
    first = weir("report", tmp_path / "run").stdout
    assert "alone left records: it ended with" in " ".join(first.split())


def test_segments_that_a_launcher_maps_for_its_ranks_raise_no_alarm(traced, cc, tmp_path):
    """Open MPI's mpirun makes segments of PMIx in its session directory; here a program of its name
    does, as much every time."""
    launcher = cc(
        MAPPED.replace(
            "return 0", 'return system("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1 sh -c true")'
        ),
        "-w",
        name="orterun",
    )
    _, status, first, made = traced(launcher)
    assert (status, made["unseen"]["statement"], made["steps"][0]["ranks"]) == (0, None, 1), first


@pytest.mark.parametrize("path", ["data", "ompi.node.0/pid.1/pmix_dstor/segment"])
def test_segments_of_mpi_are_no_data(traced, cc, big, tmp_path, path):
    """What is read from storage beside a segment that MPI maps is text of programs, not the
    segment; of a file of data it is the file."""
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "big").rename(file)
    with open(file, "rb") as stream:
        os.fsync(stream.fileno())
        os.posix_fadvise(stream.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    _, status, first, made = traced(cc(MAPPED_COLD, name="cold"), file)
    if path == "data":
        assert status == 4 and "likely by a mapping of files" in first
    else:
        assert (status, made["unseen"]["statement"]) == (0, None), first


def test_ranks_without_an_environment_are_named(traced, mpi):
    _, status, first, _ = traced(*mpi.launch(2, "env", "-i", "/bin/true"), env=mpi.env)
    assert (
        status == 4
        and "2 programs left no records: /bin/true" in first
        and re.search(r"ranks [01], [01]|rank [01].*rank [01]", first)
    )


@pytest.mark.parametrize("script", [
    "gcc -static -x c - -o p <<<'int main(void){return 0;}'", "tar cf t.tar big && tar xf t.tar",
    "sort -R big | md5sum", "gzip -k big; sed s/a/b/ big > s",
    "git init -q g && cd g && cp ../big . && git add big && "
    "git -c user.name=a -c user.email=b commit -qm c && git gc -q",
    "python3 -c 'import json, email; open(\"o\", \"wb\").write(open(\"big\", \"rb\").read())'",
    "cp --sparse=always big c; cat big c > d; dd if=d of=e bs=4k status=none",
    "perl -ne 'print' big > o; head -c 1M big | od | tail -1",
    "mkdir d && cd d && mkdir $(seq 500) && touch $(seq -f f%g 1000) && "
    "chmod 600 f* && mv f1 1 && rm -r *",
    "make -s -f <(printf '1:\\n\\techo int f\\;>1.c; gcc -c 1.c -o 1\\n')",
], ids=lambda script: script.split()[0])  # fmt: skip
def test_healthy_programs_raise_no_alarm(traced, big, script):
    status, reported, first, made = traced("bash", "-c", script)
    assert (reported, made["unseen"]["statement"]) == (0, None), first


KILLED = """
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **arguments) {
  static char bytes[3 << 20];
  int fd = open("out", O_RDWR | O_CREAT | O_TRUNC, 0600);
  syscall(SYS_write, fd, bytes, sizeof bytes);
  if (!strcmp(arguments[1], "SIGABRT")) abort();
  if (!strcmp(arguments[1], "SIGSEGV")) *(volatile int *)8 = 1;
  raise(SIGKILL);
}
"""


@pytest.mark.parametrize("level", ["summary", "trace"])
@pytest.mark.parametrize("signal", ["SIGSEGV", "SIGABRT", "SIGKILL"])
def test_a_child_that_is_killed_is_named_with_its_signal(traced, cc, signal, level):
    killed = cc(KILLED, "-w", name="killed")
    command = f"{killed} {signal} 2>/dev/null; true"
    _, status, _, made = traced("bash", "-c", command, level=level)
    bash, *_, child = made["processes"]  # and the shell that was forked, before it is the program
    assert (bash["end"], child["end"]) == ("exit", signal) and child["command"].startswith(
        str(killed)
    )
    assert bash["kernel_bytes_written"] == bash["seen_bytes_written"]  # bash is not blamed
    assert child["kernel_bytes_written"] >= 3 << 20 and status == 0
    (note,) = (one for one in made["notes"] if " did not exit normally: " in one)
    assert note.startswith("step main: 1 of ") and note.count("(pid ") == 1
    assert note.endswith(f"(pid {child['pid']}: killed by {signal})")


UNSEEN = KILLED.replace("syscall(SYS_write, ", "raw(SYS_write, ").replace(
    "int main",
    "static void raw(long a, long b, void *c, long d) "
    '{ __asm__ volatile("syscall" : "+a"(a) : "D"(b), "S"(c), "d"(d) : "rcx", "r11", "memory"); }'
    "\nint main",
)


@pytest.mark.parametrize("static", [True, False])
def test_what_a_killed_child_moved_unseen_is_its_own(traced, cc, static):
    """Bytes of system calls that no hook saw, of a child that could not ask for its figures."""
    killed = cc(UNSEEN, "-w", *(["-static"] if static else []), name="hidden")
    _, status, first, made = traced("bash", "-c", f"{killed} SIGSEGV 2>/dev/null; true")
    assert status == 4 and "bash" not in first and "3.1 MB" in first
    if static:
        (program,) = made["unseen"]["programs"]
        assert (program["signal"], program["program"]) == (11, str(killed))
        assert "killed by SIGSEGV" in first and 3 << 20 <= program["group_bytes"] < 3.1 * (1 << 20)
    else:
        (blamed,) = made["unseen"]["processes"]
        assert blamed["command"] == f"{killed} SIGSEGV"


@pytest.mark.parametrize("when", ["later", "in a handler"])
def test_children_that_died_before_they_are_asked_for_have_their_figures(traced, cc, root, when):
    """By calls that do not block; also while another one waits."""
    killed = cc(UNSEEN, "-w", name="hidden")
    reaps = cc(root / "tests/programs/reaps.c", "-w", name="reaps")
    done, status, first, made = traced(reaps, killed, when)
    assert (done, status) == (0, 4), first
    children = [one for one in made["processes"] if one["end"] == "SIGSEGV"]
    assert len(children) == 2 and made["unseen"]["programs"] == []
    assert {one["pid"] for one in made["unseen"]["processes"]} == {one["pid"] for one in children}
    for one in children:
        assert 3 << 20 <= one["kernel_bytes_written"] < 3.1 * (1 << 20), made["processes"]


def test_a_killed_command_is_named_with_its_signal(traced, cc):
    _, _, _, made = traced(cc(KILLED, "-w", name="killed"), "SIGKILL")
    assert made["processes"][0]["end"] == "SIGKILL"


def test_a_killed_child_of_a_parent_that_polls_is_the_likely_way(traced):
    """timeout(1) finds an ended child without blocking."""
    script = "dd if=/dev/zero of=z bs=1M count=3 status=none; kill -9 $$"
    _, _, _, made = traced("timeout", "60", "bash", "-c", script)
    assert [one["end"] for one in made["processes"] if one["command"].startswith("bash")] == [
        "SIGKILL"
    ]
    assert made["unseen"]["bytes"] == 0  # what dd moved was seen, whoever waited for it


@pytest.mark.parametrize("level", ["summary", "trace"])
def test_programs_without_records_have_their_own_bytes(traced, cc, level):
    static = cc(KILLED.replace("syscall(SYS_write", "if (count == 2) syscall(SYS_write"), "-w",
                "-static", name="static")  # fmt: skip
    script = f"{static} SIGKILL 2>&-; env -i /bin/dd if=/dev/zero of=z bs=1M count=5 2>&-; true"
    _, status, first, made = traced("bash", "-c", script, level=level)
    one, other = sorted(made["unseen"]["programs"], key=lambda program: program["group_bytes"])
    assert status == 4 and one["program"] == str(static) and other["program"] == "/bin/dd"
    assert 3 << 20 <= one["group_bytes"] < 3.1 * (1 << 20)
    assert 10 << 20 <= other["group_bytes"] < 10.1 * (1 << 20)
    assert first.index("/bin/dd (pid") < first.index(f"{str(static)[:60]} (pid")
    assert ", 10.5 MB: " in first


def test_programs_that_share_their_bytes_say_so(traced):
    """A parent with two threads cannot part what its children brought in."""
    program = (
        "import subprocess, threading\n"
        "event = threading.Event()\n"
        "threading.Thread(target=event.wait).start()\n"
        "for n in '35': subprocess.run(['/bin/dd', 'if=/dev/zero', 'of=z', 'bs=1M', 'count=' + n],"
        " env={}, stderr=subprocess.DEVNULL)\n"
        "event.set()"
    )
    _, status, first, made = traced("python3", "-c", program)
    one, other = made["unseen"]["programs"]
    assert status == 4 and one["group_pids"] == other["group_pids"] == [one["pid"], other["pid"]]
    assert f"/bin/dd (pid {one['pid']}, {other['pid']}, " in first
    assert first.count("MB together: ") == first.count(str(other["pid"])) == 1


@pytest.mark.parametrize("kilobytes", [8000, 12000])
def test_a_limit_on_the_address_space_is_the_reason(traced, kilobytes):
    """Less than the loader needs for the library, and less than the recorder needs."""
    script = f"ulimit -v {kilobytes}; dd if=/dev/zero of=z bs=64k count=50 2>&-; true"
    _, status, first, made = traced("bash", "-c", script)
    limit = f"its address space is limited to {kilobytes * 1024 / 1e6:.0f} MB (ulimit -v)"
    assert status == 4 and "1 program left no records: /usr/bin/dd (pid " in first
    assert limit in first and [one["command"][:4] for one in made["processes"]] == ["bash"]


APPENDS = """
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int count, char **arguments) {
  static char hidden[8 << 20];
  int log = open("log", O_WRONLY | O_CREAT | (arguments[1][0] == 'a' ? O_APPEND : O_TRUNC), 0600);
  for (int i = 0; i < 20000; ++i) write(log, "a line of a program that writes many\\n", 37);
  if (count > 2) {  /* as a ring does: pages become dirty without a call that is counted */
    int fd = open("hidden", O_RDWR | O_CREAT | O_TRUNC, 0600);
    ftruncate(fd, 8 << 20);
    char *at = mmap(0, 8 << 20, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    memset(at, 1, 8 << 20);
  }
  return 0;
}
"""


@pytest.mark.parametrize("level", ["summary", "detail", "trace"])
@pytest.mark.parametrize("how", ["append", "write"])
def test_small_writes_in_order_hide_no_output(traced, storage, cc, how, level):
    appends = cc(APPENDS, "-w", name="appends")
    _, status, first, made = traced(appends, how, level=level)
    assert (status, made["unseen"]["statement"]) == (0, None), first
    _, status, first, made = traced(appends, how, "hidden", level=level)
    assert status == 4 and 6 << 20 < made["unseen"]["bytes"] < 10 << 20, first


WRITERS = [
    "for i in $(seq 3000); do echo line $i; done > log",
    "for i in $(seq 300); do echo line $i >> log; done",
    "for k in 1 2 3 4; do (for i in $(seq 2000); do echo line $i; done) & done > log; wait",
    'python3 -c \'f = open("o", "r+b", 0)\nfor i in range(1500): f.read(4093); f.write(b"x")\'',
    'python3 -c \'import os\nf = os.open("n", os.O_WRONLY | os.O_CREAT | os.O_SYNC)\n'
    'for i in range(300): os.write(f, b"x" * 100)\'',
    'python3 -c \'import random\nf = open("o", "r+b", 0)\n'
    'for i in range(1500): f.seek(random.randrange(8 << 20)); f.write(b"x")\'',
    'python3 -c \'import sqlite3\nd = sqlite3.connect("d"); d.execute("create table t(a)")\n'
    'for i in range(150): d.execute("insert into t values(1)"); d.commit()\'',
    "dd if=/dev/zero of=z bs=100 count=300 oflag=dsync status=none",
    "zip -q z.zip o && unzip -qo z.zip -d u",
    "rsync -a o copy && cp o o2 && mv o2 o3",
]


@pytest.mark.parametrize("script", WRITERS, ids=range(len(WRITERS)))
def test_small_writes_raise_no_alarm(traced, big, tmp_path, script):
    (tmp_path / "big").rename(tmp_path / "o")
    _, status, first, made = traced("bash", "-c", script)
    assert (status, made["unseen"]["statement"]) == (0, None), first


@pytest.mark.skipif(os.geteuid() != 0, reason="another user needs root")
def test_a_forked_child_of_another_user_is_named(traced, tmp_path):
    """su forks, gives up its user, and is refused by the trace at its first call."""
    tmp_path.chmod(0o777)
    program = (
        "import os\n"
        "if os.fork() == 0:\n"
        " os.setuid(65534)\n"
        " os.write(os.open('/dev/null', os.O_WRONLY), bytes(3 << 20))\n"
        " os._exit(0)\n"
        "os.wait()\n"
    )
    _, status, first, made = traced("python3", "-c", program)
    (one,) = made["unseen"]["programs"]
    assert status == 4 and "runs as another user (65534)" in first
    assert one["group_bytes"] >= 3 << 20 and made["unseen"]["processes"] == []


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind")
def test_what_valgrind_reads_is_valgrinds(traced):
    _, status, first, made = traced("valgrind", "-q", "/bin/true")
    assert status == 4 and "likely by valgrind, which reads the program's files" in first
    (one,) = made["unseen"]["processes"]
    assert "valgrind" in one["command"] and "direct system calls" not in first


def test_processes_of_several_nodes_have_their_node(traced, weir, cc, tmp_path):
    raw = cc(RAW, name="raw")
    script = f"for i in 1 2; do WEIR_NODE=node$i bash -c '{raw}; env -i {raw}; true'; done"
    _, status, first, _ = traced("bash", "-c", script)
    assert status == 4 and "(node1, pid " in first and "(node2, pid " in first
    assert f"{str(raw)[:60]} (node" in first
    table = weir("report", tmp_path / "run", "--tables", "processes").stdout
    (head,) = (line for line in table.splitlines() if line.startswith("Step"))
    assert head.split()[:4] == ["Step", "node", "rank", "pid"]
    assert any(line.split()[:2] == ["main", "node2"] for line in table.splitlines())


def test_a_program_that_goes_to_another_node_of_the_machine_is_seen(traced, tmp_path):
    """env changes WEIR_NODE and becomes the program: its start is on one node, its records are on
    the other."""
    copy = "dd if=/dev/zero of=%s bs=1M count=12 status=none"
    script = " & ".join(f"env WEIR_NODE=n{at} {copy % f'o.{at}'}" for at in (1, 2)) + " & wait"
    _, status, text, _ = traced("bash", "-c", script)
    assert status == 0 and "INCOMPLETE" not in text and "did not exit normally" not in text
    assert "3 nodes" in text and (tmp_path / "o.2").stat().st_size == 12 << 20


@pytest.mark.parametrize("how", ["%s &", "nohup setsid %s &", "(%s &) &"])
def test_what_runs_in_the_background_is_named_until_it_ends(weir, tmp_path, how):
    """It waits for a writer of its fifo, and then writes 50 kB."""
    os.mkfifo(tmp_path / "fifo")
    script = how % "sh -c ': >begun; exec cat fifo >out 2>err'"
    script += "\nuntil [ -e begun ]; do sleep 0.05; done"
    done = weir("trace", "-o", "run", "--", "sh", "-c", script, cwd=tmp_path).ok()
    try:
        assert "weir: 1 process runs still in the background: " in done.stderr
        report = weir("report", "run", cwd=tmp_path)
        named = re.match(
            r"note: INCOMPLETE: 1 process runs still in the background: cat fifo \(pid (\d+)\)\n",
            report.stdout)
        assert report.returncode == 4 and named, report.stdout[:500]
        assert not json.loads(weir("report", "run", "--json", cwd=tmp_path).stdout)["complete"]
    finally:
        (tmp_path / "fifo").write_bytes(bytes(50_000))
    for _ in range(1000):
        if not os.path.exists(f"/proc/{named[1]}/exe"):  # a zombie has none
            break
        time.sleep(0.01)
    later = json.loads(weir("report", "run", "--json", cwd=tmp_path).ok().stdout)
    assert later["complete"] and [one["bytes_written"] for one in later["files"] if one["file"]
        .endswith("/out")] == [50_000]


def test_what_runs_beside_a_report_within_the_step_is_no_alarm(weir, tmp_path):
    command = f"{sysconfig.get_path('scripts')}/weir report run >report"
    script = f"mkfifo fifo; cat fifo >out 2>err & {command}; status=$?; : >fifo; wait; exit $status"
    weir("trace", "-o", "run", "--", "sh", "-c", script, cwd=tmp_path).ok()
    report = (tmp_path / "report").read_text()
    assert "INCOMPLETE" not in report and re.search(r"cat fifo \(pid \d+: still running\)", report)
