# SPDX-License-Identifier: Apache-2.0
"""Storage engines and disk images: Berkeley DB, RocksDB and qemu-img, by the commands that come
with them."""

from __future__ import annotations

from harness.model import Step, Suite
from harness.run import debian_version

_BERKELEY = {
    **{f"load {kind}": f"""awk 'BEGIN {{ for (i = 1; i < 20000; i++) {{ {key}
            printf "v%d_%s\\n", i, (i % 97 ? "x" : sprintf("%3000d", i)) }} }}' > {kind}.in
        db5.3_load -T -t {kind} -f {kind}.in {kind}.db && db5.3_verify {kind}.db
        pairs() {{ db5.3_dump -p $1 | grep '^ ' | {pairs}; }}
        pairs {kind}.db | sha256sum && db5.3_dump {kind}.db | db5.3_load {kind}.again
        pairs {kind}.db > {kind}.pairs && pairs {kind}.again | cmp - {kind}.pairs"""
        for kind, key, pairs in (
            ("btree", r'printf "k%07d\n", i * 7919 % 20011;', "cat"),
            ("hash", r'printf "k%07d\n", i * 7919 % 20011;', "paste - - | sort"),
            ("recno", "", "cat"))},
    # two writers in one environment: a mapped cache and lock table, and a log of 1 MiB files
    "processes": r"""mkdir env backup
        printf '%s\n' 'set_flags DB_AUTO_COMMIT on' 'set_cachesize 0 524288 1' \
            'set_lg_max 1048576' > env/DB_CONFIG
        db5.3_recover -e -h env
        db5.3_load -h env -T -t btree -f btree.in a.db & one=$!
        db5.3_load -h env -T -t hash -f hash.in b.db & two=$!
        wait $one; wait $two
        db5.3_checkpoint -h env -1 && db5.3_archive -h env -l | wc -l
        db5.3_dump -h env -p a.db > a.dump && db5.3_verify -h env a.db b.db""",
    "recover": r"""db5.3_hotbackup -h env -b backup && db5.3_dump -p backup/a.db | cmp - a.dump
        rm -f env/__db.* && db5.3_recover -ce -h env && db5.3_dump -h env -p a.db | cmp - a.dump
        rm env/a.db && db5.3_recover -ce -h env && db5.3_dump -h env -p a.db | cmp - a.dump""",
    "perl": r"""perl -MDB_File -MFcntl -e '
        sub open_db { tie %h, "DB_File", "p.db", $_[0], 0644, $DB_BTREE or die $! }
        open_db(O_RDWR | O_CREAT); $h{"k$_"} = "v" . $_ x 3 for 1 .. 30000;
        $_ % 3 or delete $h{"k$_"} for 1 .. 30000; untie %h;
        open_db(O_RDONLY); print scalar(keys %h), " $h{k1000}\n"'""",
}
_BENCH = """db_bench --db=$PWD/{name} --seed=7 --num=20000 --value_size=200 --threads=1 {options} \\
        --write_buffer_size=262144 --target_file_size_base=262144 --compression_type=none \\
        --benchmarks=fillrandom,overwrite,readrandom,readseq,deleterandom,compact,verifychecksum \\
        > {name}.log 2>&1 || {{ tail -5 {name}.log; false; }}
        grep -o '[0-9]* of [0-9]* found' {name}.log && ldb --db={name} checkconsistency
        ldb --db={name} scan --hex | sha256sum"""
_ROCKSDB = {
    # each command opens the database, replays its log, and writes it anew
    "ldb": r"""for i in $(seq 40); do ldb --db=db --create_if_missing put k$i v$i; done | uniq -c
        ldb --db=db batchput a 1 b 2 c 3 && ldb --db=db delete k7 && ldb --db=db get k8
        ldb --db=db compact && ldb --db=db scan > scan && sha256sum scan""",
    "copies": r"""ldb --db=db checkpoint --checkpoint_dir=$PWD/checkpoint
        ldb --db=checkpoint scan | cmp - scan
        ldb --db=db dump | ldb --db=loaded --create_if_missing load
        ldb --db=loaded scan | cmp - scan
        ldb --db=db backup --backup_dir=$PWD/backup
        ldb --db=restored restore --backup_dir=$PWD/backup && ldb --db=restored scan | cmp - scan
        for file in backup/shared_checksum/*.sst; do sst_dump --file=$file --command=scan; done |
            grep -c '=>'""",
    **{name: _BENCH.format(name=name, options=options) for name, options in {
        "buffered": "",
        "direct": "--use_direct_reads --use_direct_io_for_flush_and_compaction",
        "mapped": "--mmap_read --mmap_write",
        "synced": "--sync --use_fsync --num=3000",
        "ranges": "--bytes_per_sync=65536 --wal_bytes_per_sync=65536 --num=30000",
    }.items()},
    "threads": r"""db_bench --db=$PWD/threads --num=5000 --threads=4 --duration=2 \
        --benchmarks=fillseq,readwhilewriting,multireadrandom > threads.log 2>&1
        ldb --db=threads checkconsistency && ldb --db=threads scan | cut -c1-20 | wc -l""",
}
_FORMATS = ("qcow2", "qcow", "qed", "vdi", "vhdx", "vmdk", "vpc", "parallels")
_QEMU = {
    **{f"cache {cache}": f"qemu-img convert -t {cache} -T {cache} -O qcow2 disk.raw {cache}.qcow2"
        f" && qemu-img check {cache}.qcow2 && qemu-img compare -T {cache} disk.raw {cache}.qcow2"
        for cache in ("none", "writeback", "writethrough", "directsync", "unsafe")},
    **{f"format {name}": f"qemu-img convert -O {name} disk.raw d.{name} &&"
        f" qemu-img convert -f {name} -O raw d.{name} {name}.raw &&"
        f" truncate -s 32M {name}.raw && cmp disk.raw {name}.raw" for name in _FORMATS},
    "compressed": "qemu-img convert -c -m 8 -W -O qcow2 disk.raw c.qcow2 && "
        "qemu-img compare disk.raw c.qcow2",
    **{f"engine {engine}": f"cp disk.raw {engine}.raw && qemu-img create -q -f qcow2 -F raw"
        f" -b {engine}.raw {engine}.over && qemu-io --cache={cache} --aio={engine}"
        r" -c 'write -P 171 64k 200k' -c 'read -P 171 64k 200k' -c 'aio_write -P 7 3M 1M'"
        r" -c aio_flush -c 'aio_read -P 7 3M 1M' -c aio_flush -c 'write -z 1M 2M'"
        f" -c 'discard 5M 1M' -c flush {engine}.over | grep -v ops && qemu-img check {engine}.over"
        f" && qemu-img commit -q {engine}.over && sha256sum {engine}.raw"
        for engine, cache in (("threads", "writeback"), ("native", "none"),
            ("io_uring", "writeback"))},
    "holes": "cp disk.raw holes.raw && qemu-img map --output=json holes.raw",
    "snapshots": "qemu-img snapshot -c s1 writeback.qcow2 && qemu-img resize -q writeback.qcow2 40M"
        " && qemu-io -c 'write -P 9 33M 1M' writeback.qcow2 | grep -v ops;"
        " qemu-img snapshot -l writeback.qcow2 | wc -l; qemu-img check writeback.qcow2;"
        " qemu-img snapshot -d s1 writeback.qcow2 && qemu-img check writeback.qcow2;"
        " qemu-img dd if=disk.raw of=dd.raw bs=64k count=90 -O raw &&"
        " cmp -n 5898240 dd.raw disk.raw"
        " && qemu-img bench -c 50 -w -f raw -t none dd.raw | grep -c Run",
}
_DISK = r"""
import random
source = random.Random(5)
with open("disk.raw", "wb") as file:
    for at in (0, 1 << 20, 5 << 20, 20 << 20):
        file.seek(at)
        file.write(source.randbytes(300_000))
    file.truncate(32 << 20)
"""


def _scripts(scripts):
    for name, script in scripts.items():
        yield Step(name, ("bash", "-ec", f"set -o pipefail; {script}"), compare_output=True)


def _images(_place):
    yield Step("disk", ("/usr/bin/python3", "-c", _DISK), prepare=True)
    yield from _scripts(_QEMU)


SUITES = [
    Suite(
        name="berkeley-db",
        title="Berkeley DB: load, dump, verify, two processes in one environment, recovery, perl",
        steps=lambda _: _scripts(_BERKELEY),
        version=lambda _: debian_version("libdb5.3"),
        packages=("db5.3-util", "perl"),
        needs=("db5.3_load", "perl"),
        outputs=("*.dump", "*.pairs", "p.db"),
    ),
    Suite(
        name="rocksdb",
        title="RocksDB: ldb and db_bench with buffered, direct, mapped and synchronous I/O",
        steps=lambda _: _scripts(_ROCKSDB),
        version=lambda _: debian_version("rocksdb-tools"),
        packages=("rocksdb-tools",),
        needs=("ldb", "db_bench", "sst_dump"),
        outputs=("scan",),
    ),
    Suite(
        name="qemu-img",
        title="qemu-img and qemu-io: five cache modes, eight formats, three engines, snapshots",
        steps=_images,
        version=lambda _: debian_version("qemu-utils"),
        packages=("qemu-utils",),
        needs=("qemu-img", "qemu-io"),
        outputs=("*.raw", "*.qcow2", "d.*"),
    ),
]
