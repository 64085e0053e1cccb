# SPDX-License-Identifier: Apache-2.0
"""fio: writes with each of its engines, then reads and verifies."""

from __future__ import annotations

from harness.model import Step, Suite
from harness.run import debian_version

_ENGINES = ("sync", "psync", "vsync", "pvsync", "pvsync2", "mmap", "posixaio", "libaio", "io_uring",
    "splice")


def _steps(_place):
    common = ("--size=2m", "--verify=crc32c", "--verify_fatal=1", "--randseed=5", "--minimal",
        "--fallocate=none")
    for engine in _ENGINES:
        for pattern, block in (("write", "64k"), ("randwrite", "4k"), ("randrw", "8k")):
            name = f"{engine} {pattern}"
            command = ("fio", f"--name={engine}-{pattern}", f"--ioengine={engine}",
                f"--rw={pattern}", f"--bs={block}", *common)
            yield Step(name, (*command, "--iodepth=4"), time_limit_s=60)
    shared = ("--name=shared", "--filename=shared", "--ioengine=psync", "--rw=randwrite", "--bs=4k",
        "--numjobs=3")
    apart = ("--offset_increment=2m", "--fsync=20")
    yield Step("three processes, one file", ("fio", *shared, *apart, *common), time_limit_s=60)
    threads = ("--name=threads", "--thread", "--ioengine=psync", "--rw=randrw", "--bs=4k",
        "--numjobs=3")
    yield Step("three threads", ("fio", *threads, *common), time_limit_s=60)
    buffers = ("--name=direct", "--ioengine=psync", "--direct=1", "--rw=randwrite", "--bs=4k")
    yield Step("direct", ("fio", *buffers, *common), time_limit_s=60)


SUITE = Suite(
    name="fio",
    title="fio with verify: ten engines, sequential, random and mixed; processes and threads on "
          "one file",
    steps=_steps,
    version=lambda _: debian_version("fio"),
    packages=("fio",),
    needs=("fio",),
)
