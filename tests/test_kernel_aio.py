# SPDX-License-Identifier: Apache-2.0
"""Requests that the kernel carries out by itself: by libaio, by syscall(), by liburing. Each is in
the trace with its file, place and bytes, files under layers are left to the kernel first, and what
fio counts is what the report says."""

from __future__ import annotations

import errno
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from decode import read_trace

HERE = Path(__file__).parent
NEEDS_FIO = pytest.mark.skipif(shutil.which("fio") is None, reason="no fio")
STACKS = ["bufa:64:2", "global:64:4", "keep", "gather:64:16", "event | bufa:1:2:always=1 | event"]


def has_header(name: str) -> bool:
    return Path("/usr/include", name).exists()


@pytest.fixture(params=["libaio", "direct"])
def aio(request, cc):
    """The program of kernel AIO, with the library and without."""
    if request.param == "libaio" and not has_header("libaio.h"):
        pytest.skip("no libaio-dev")
    options = ["-DDIRECT"] if request.param == "direct" else ["-Wl,--no-as-needed", "-laio"]
    return cc((HERE / "programs" / "kernel_aio.c").read_text(), *options,
        name=f"kernel-aio-{request.param}")


@pytest.fixture
def uring(cc, execute, tmp_path):
    if not has_header("liburing.h"):
        pytest.skip("no liburing-dev")
    program = cc((HERE / "programs" / "uring.c").read_text(), "-luring", name="uring")
    if execute([program], cwd=tmp_path).returncode == 77:
        pytest.skip("the kernel refuses io_uring")
    return program


@pytest.fixture
def traced(execute, preload_env, tmp_path):
    """``traced(program)``: its output, which is that of a run without weir, and its records but for
    those of other files and of stdio."""

    def run(program, level="trace"):
        bare = execute([program], cwd=tmp_path).ok()
        done = execute([program], cwd=tmp_path, env=preload_env("step", level)).ok()
        assert done.stdout == bare.stdout
        trace = read_trace(tmp_path / "run" / "step")
        assert [one for one in trace.processes.values() if one.lost_events or one.failures] == []
        return done.stdout, trace

    return run


def described(records) -> list[str]:
    """Requests and the calls that hand them in: operation, size, place, file."""
    found = []
    for one in records:
        if one.op not in ("io_submit", "io_getevents", "io_uring_enter", "async_read",
                "async_write", "fsync", "fdatasync"):
            continue
        words = [one.op, str(one.size) if one.size else "", f"@{one.offset}"
            if one.offset is not None else "", Path(one.file).name]
        words += [errno.errorcode[one.error] if one.failed else "", "short" if one.short else "",
            "nested" if one.nested else ""]
        found.append(" ".join(word for word in words if word))
    return found


def test_each_request_of_kernel_aio_is_recorded(aio, traced):
    _, trace = traced(aio)
    main = min(trace.processes)
    found = described(one for one in trace.records if one.process == main)
    fault = next(one for one in found if "EFAULT" in one)
    assert found == [
        "io_submit", "async_write 4096 @3 file nested", "async_write 300 @8192 other nested",
        "io_getevents",
        "io_submit file", "async_read 4000 @99 file short nested", "io_getevents file",
        "io_submit file", "async_read 10 @0 file nested", "io_getevents file",
        "io_submit other", "async_read 100 @8200 other nested", "io_getevents other",
        "io_submit file", "fsync file nested", "io_getevents file",
        "io_submit file", "fdatasync file nested", "io_getevents file",
        "io_submit file", fault, "io_getevents file",
        "io_submit", "async_write 7 @5000 file nested", "io_getevents file",
        "io_submit EBADF", "io_submit EFAULT", "io_submit EFAULT", "io_submit",
        "io_submit file EINVAL",
        "io_submit file", "async_write 11 @6000 file nested", "io_submit file",
        "async_write 12 @6100 file nested",
    ]  # fmt: skip
    assert fault.startswith("async_write 512 @0 file")
    children = [one for one in trace.records if one.process != main]
    assert described(children) == []  # a forked child has no context


UNCOLLECTED = """
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int count, char **arguments) {
  static struct iocb blocks[6000], *list[6000];
  aio_context_t context = 0;
  const int fd = open("file", O_RDWR | O_CREAT, 0600), n = 6000;
  for (int i = 0; i < n; ++i) {
    blocks[i] = (struct iocb){.aio_lio_opcode = IOCB_CMD_PWRITE, .aio_fildes = fd, .aio_buf = (uintptr_t)blocks, .aio_nbytes = 10, .aio_offset = 10 * i};
    list[i] = &blocks[i];
  }
  if (syscall(SYS_io_setup, (long)n, &context) != 0) return 77;
  for (int at = 0, some; at < n; at += some) {
    if ((some = syscall(SYS_io_submit, context, (long)(n - at), list + at)) <= 0) return 1;
  }
  _exit(0);
}
"""


def test_requests_that_nobody_collects_are_recorded_at_the_end(cc, execute, preload_env, tmp_path):
    """More of them than stand in the table of requests."""
    program = cc(UNCOLLECTED, "-w", name="uncollected")
    if execute([program], cwd=tmp_path).returncode == 77:
        pytest.skip("the kernel has no room for 6,000 requests")
    execute([program], cwd=tmp_path, env=preload_env("step", "trace")).ok()
    writes = [one for one in read_trace(tmp_path / "run" / "step").records
        if one.op == "async_write"]
    assert sorted(one.offset for one in writes) == list(range(0, 60000, 10)) and {one.size
        for one in writes} == {10}


def test_a_request_lasts_from_its_submission_to_its_collection(aio, traced):
    _, trace = traced(aio)
    submit, write = [next(one for one in trace.records if one.op == op)
        for op in ("io_submit", "async_write")]
    collect = next(one for one in trace.records if one.op == "io_getevents")
    assert submit.start <= write.start <= submit.end <= collect.start <= write.end <= collect.end


@pytest.mark.parametrize("level", ["summary", "detail"])
def test_levels_below_count_the_same(aio, traced, level):
    _, trace = traced(aio, level)
    sums = {}
    for one in trace.counters:
        calls, bytes_ = sums.get(one.op, (0, 0))
        sums[one.op] = (calls + one.calls, bytes_ + one.bytes)
    assert sums["async_read"] == (3, 4110) and sums["async_write"] == (6, 4096 + 300 + 7 + 11 + 12)
    assert sums["io_submit"][0] == 15 and sums["io_getevents"][0] == 8


@pytest.mark.parametrize("stack", STACKS)
def test_kernel_aio_on_files_under_layers(aio, weir, execute, tmp_path, stack):
    (tmp_path / "plain").mkdir()
    (tmp_path / "layered").mkdir()
    bare = execute([aio], cwd=tmp_path / "plain").ok()
    rules = tmp_path / "rules.toml"
    rules.write_text(f'[[rule]]\nname = "*"\nstack = "{stack}"\n')
    done = weir("run", "--rules", rules, "--", aio, cwd=tmp_path / "layered").ok()
    assert done.stdout == bare.stdout
    for name in ("file", "other"):
        assert (tmp_path / "layered" / name).read_bytes() == (tmp_path / "plain"
            / name).read_bytes()


REFUSED = """
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
static void refused(long result) { printf("%ld %d\\n", result, errno == EINVAL); errno = 0; }
int main(void) {
  aio_context_t context = 0;
  char text[100] = "text";
  int fd = open("layered", O_RDWR | O_CREAT, 0600), plain = open("/dev/null", O_RDWR);
  struct iocb one = {.aio_lio_opcode = IOCB_CMD_PWRITE, .aio_fildes = plain, .aio_buf = (uintptr_t)text, .aio_nbytes = 100}, two = one;
  two.aio_fildes = fd;
  struct iocb *list[] = {&one, &two};
  struct aiocb block = {.aio_fildes = fd, .aio_buf = text, .aio_nbytes = 100, .aio_lio_opcode = LIO_WRITE};
  struct aiocb *blocks[] = {&block};
  syscall(SYS_io_setup, 4L, &context);
  printf("%ld\\n", syscall(SYS_io_submit, context, 2L, list));
  refused(syscall(SYS_io_submit, context, 1L, list + 1));
  refused(aio_write(&block));
  refused(lio_listio(LIO_WAIT, blocks, 1, NULL));
  printf("%zd\\n", write(fd, "text", 4));
  return close(fd);
}
"""


def test_requests_on_a_file_of_another_form_are_refused(cc, weir, tmp_path):
    """The kernel would write the program's bytes into the stored form."""
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nname = "*layered"\nstack = "cos"\n')
    done = weir("run", "--rules", rules, "--", cc(REFUSED, "-w", name="refused"), cwd=tmp_path).ok()
    assert done.stdout.split("\n")[:5] == ["1", "-1 1", "-1 1", "-1 1", "4"]


def test_functions_of_these_names_that_are_not_libaios_are_left_alone(cc, traced):
    """Also where libaio is loaded, and the old io_getevents, which takes other arguments."""
    own = cc("double io_submit(int a, int b, int c, int d, double e) { return a + b + c + d + e; }",
        "-shared", "-fPIC", name="libown.so")
    program = cc(
        """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <stdio.h>
        double io_submit(int a, int b, int c, int d, double e);
        int main(void) {
          void *aio = dlopen("libaio.so.1", RTLD_NOW | RTLD_GLOBAL);
          printf("%g\\n", io_submit(1, 2, 3, 4, .5));
          if (!aio) return 0;
          printf("%d\\n", dlvsym(aio, "io_getevents", "LIBAIO_0.1") == dlvsym(aio, "io_getevents", "LIBAIO_0.4"));
          return 0;
        }
        """, str(own), f"-Wl,-rpath,{own.parent}", "-ldl", name="calls-own",
    )  # fmt: skip
    said, trace = traced(program)
    assert said.startswith("10.5\n") and described(trace.records) == []


def test_requests_of_liburing_are_recorded_as_they_are_submitted(uring, traced):
    said, trace = traced(uring)
    writes = [f"async_write {1000 + i} @{4096 * (4 * n + i)} file nested" for n in range(5)
        for i in range(4)]
    found = described(trace.records)
    assert [one for one in found if "async" in one or "sync" in one] == [
        *writes, "async_write 300 @0 other nested", "fsync other nested",
        "async_read 13 @0 early nested",
        *(["async_read 64 @10 other nested"] if said.count("submitted") == 8 else []),
    ]  # fmt: skip
    assert found.count("io_uring_enter") >= said.count("submitted")
    assert [one.op for one in trace.records if one.op.startswith("io_uring")][0] == "io_uring_setup"


@pytest.mark.parametrize("stack", STACKS)
def test_files_leave_their_layers_before_liburing_reads_them(uring, weir, tmp_path, stack):
    rules = tmp_path / "rules.toml"
    rules.write_text(f'[[rule]]\nname = "*"\nstack = "{stack}"\n')
    done = weir("run", "--rules", rules, "--", uring, cwd=tmp_path).ok()
    assert "read under a layer" in done.stdout and (tmp_path / "early").read_bytes(
        ) == b"under a layer"


def fio_options(engine: str, rw: str) -> list[str]:
    return [
        "fio", "--name=j", "--size=2M", "--bs=16k", f"--rw={rw}", f"--ioengine={engine}",
        "--iodepth=8", "--randseed=5", "--filename=data",
        "--output-format=json", "--output=out.json", "--fallocate=none",
    ]  # fmt: skip


def calls_of(file: dict, kind: str) -> int:
    return sum(one["calls"] for name, one in file["ops"].items()
        if name.removeprefix("async_").removeprefix("aio_").removeprefix("p") == kind)


@NEEDS_FIO
@pytest.mark.parametrize("rw", ["write", "randread", "randrw"])
@pytest.mark.parametrize("engine", ["libaio", "posixaio", "psync"])
def test_what_fio_counts_is_what_the_report_says(weir, tmp_path, engine, rw):
    (tmp_path / "data").write_bytes(bytes(2 << 20))
    weir("trace", "-q", "--level", "trace", "-o", "run", "--", *fio_options(engine, rw),
        cwd=tmp_path).ok()
    job = json.loads((tmp_path / "out.json").read_text())["jobs"][0]
    made = json.loads(weir("report", "run", "--json", cwd=tmp_path).ok().stdout)
    file = next(one for one in made["files"] if one["file"].endswith("/data"))
    read, written = job["read"], job["write"]
    assert (file["bytes_read"], file["bytes_written"]) == (read["io_bytes"], written["io_bytes"])
    assert (calls_of(file, "read"), calls_of(file, "write")) == (read["total_ios"],
        written["total_ios"])
    assert made["unseen"]["bytes"] == 0


@NEEDS_FIO
@pytest.mark.parametrize("stack", [None, *STACKS])
@pytest.mark.parametrize("engine", ["libaio", "io_uring"])
def test_fio_verifies_what_it_wrote(weir, tmp_path, engine, stack):
    options = [*fio_options(engine, "randrw"), "--verify=crc32c", "--verify_fatal=1"]
    if subprocess.run(options, cwd=tmp_path, capture_output=True, timeout=300).returncode != 0:
        pytest.skip(f"the kernel refuses {engine}")
    rules = tmp_path / "rules.toml"
    rules.write_text(f'[[rule]]\nname = "*"\nstack = "{stack or "event"}"\n')
    weir("run", "--rules", rules, "--", *options, cwd=tmp_path).ok()
    assert json.loads((tmp_path / "out.json").read_text())["jobs"][0]["error"] == 0


RING = r"""
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
#ifdef LIBRARY
#include <liburing.h>
#endif
int main(int count, char** arguments) {
  char data[30000];
  for (unsigned i = 0; i < sizeof data; ++i) data[i] = 'a' + i % 26;
  int fd = open(arguments[1], O_RDWR | O_CREAT, 0644);
  if (write(fd, data, sizeof data) != sizeof data) return 1;
#ifdef LIBRARY
  struct io_uring ring;
  printf("%d\n", io_uring_queue_init(4, &ring, 0));
#else
  struct io_uring_params parameters = {0};
  const long ring = syscall(425, 4, &parameters);
  printf("%d\n", ring < 0 ? -errno : 0);
#endif
  printf("%d %zd\n", close(fd), (ssize_t)0);
}
"""


@pytest.mark.parametrize("stack", ["cos:16", "stripe:dirs={0}/a,{0}/b:unit=4KiB", "bufa:64:2"])
@pytest.mark.parametrize("way", ["syscall", "liburing"])
def test_no_ring_beside_files_of_another_form(weir, cc, execute, tmp_path, stack, way):
    """The kernel would write the program's bytes over the form that a layer stores: EPERM, as where
    rings are forbidden, and in the trace."""
    if way == "liburing" and not has_header("liburing.h"):
        pytest.skip("no liburing-dev")
    program = cc(RING, *(["-DLIBRARY", "-luring"] if way == "liburing" else []), name=f"ring-{way}")
    if execute([program, tmp_path / "plain"]).ok().stdout.split()[0] != "0":
        pytest.skip("the kernel refuses io_uring")
    for directory in ("a", "b"):
        (tmp_path / directory).mkdir()
    (tmp_path / "rules.toml").write_text(
        f'[[rule]]\nname = "layered"\nstack = "{stack.format(tmp_path)}"\n')
    done = weir("run", "--rules", tmp_path / "rules.toml", "--trace", tmp_path / "run", "--",
        program, tmp_path / "layered").ok()
    keeps_form = not stack.startswith("bufa")
    assert done.stdout.split()[0] == (str(-errno.EPERM) if keeps_form else "0")
    (step,) = (path for path in (tmp_path / "run").iterdir() if path.is_dir())
    made = [one for one in read_trace(step).records if one.op == "io_uring_setup"]
    assert [one.error if one.failed else 0 for one in made] == [errno.EPERM if keeps_form else 0]
    assert ((tmp_path / "layered").read_bytes() != (tmp_path / "plain").read_bytes()) == keeps_form
