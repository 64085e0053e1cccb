# SPDX-License-Identifier: Apache-2.0
"""Ordinary programs say and write the same, byte for byte, with and without the library."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from decode import read_trace
from weir_process import clean_environment

PREPARE = """
set -e
mkdir -p tree/a/b tree/c
for i in 1 2 3 4 5; do seq $((i * 100)) > tree/a/f$i; done
printf 'no newline' > tree/a/b/short
head -c 100000 /dev/zero > tree/c/zeros
ln -s ../a/f1 tree/c/link
ln tree/a/f2 tree/c/hard
find tree -exec touch -h -d '2020-01-01 00:00:00 UTC' {} +
printf '#include <stdio.h>\\nint main(void) { puts("compiled"); return 0; }\\n' > main.c
"""

GUESTS = {
    "bash": r"""
        while read -r n; do sum=$((sum + n)); done < tree/a/f5; echo $sum
        x=$(cat tree/a/f1 | sort -rn | head -3 | tr '\n' ' '); echo "$x"
        exec 5<> both; echo one >&5; echo two >> both; exec 5>&-; cat both
        ( cd tree/c && cat < link | wc -l ) ; cat <<< here; wc -c < <(cat tree/c/zeros); echo err >&2; false || echo $?
        trap 'echo trapped' USR1; kill -USR1 $$; [ -e tree/a/f1 ] && echo there; read -r -n 4 first < tree/a/b/short; echo $first
    """,
    "pipeline": "cat tree/a/* | tee copy | sort | uniq -c | sort -rn | sed -n 1,40p | awk '{s+=$1} "
    "END {print s}' ; cksum copy",
    "coreutils": r"""
        cp -a tree other; cp --sparse=always tree/c/zeros sparse; cmp sparse tree/c/zeros; mv other/a/f1 other/moved; rm -r other/c
        ls -lR --time-style=+%s other | sed 's/^total.*//' | awk '{print $1, $2, $5, $7}'; dd if=tree/a/f5 of=dd bs=7 count=20 status=none
        split -b 300 tree/a/f3 part.; cat part.* | cmp - tree/a/f3; truncate -s 5 dd; stat -c '%s %n' dd; md5sum tree/a/*; tail -c 10 dd
        printf 'b\na\n' | sort -o sorted; shuf -e x --random-source=tree/a/f5; install -m 640 main.c installed; comm -12 tree/a/f1 tree/a/f2 | wc
        head -c 3 < tree/a/f1; tac tree/a/f1 | head -2; od -An -c tree/a/b/short; paste tree/a/f1 tree/a/f2 | tail -1; mkfifo pipe
        cat tree/a/f1 > pipe & cat pipe | wc -l; wait
    """,
    "tar": """
        tar --sort=name --owner=0 --group=0 -cf tree.tar tree; sha1sum tree.tar; mkdir out; tar -C out -xf tree.tar; diff -r tree out/tree
        tar -cf - tree/a | tar -tf - | sort; gzip -n tree.tar; gunzip -c tree.tar.gz | sha1sum
    """,
    "find": "find tree -type f -size -2k | sort | xargs grep -c 1; find tree -name 'f*' -printf "
    "'%s %p\\n' | sort; find tree -newer main.c",
    "perl": r"""
        perl -e 'open F, "<", "tree/a/f5"; while (<F>) { $s += $_ } print "$s\n"; open G, ">>", "out"; print G $_ x 3 for 1..1000; close G;
                 print -s "out", "\n"; system "echo child"; print `cat tree/a/b/short`, "\n"; seek F, 0, 0; sysread F, $x, 5; print $x'
        perl -pi -e 's/1/one/' out; cksum out; perl -MFile::Find -e 'find(sub { push @a, $File::Find::name }, "tree"); print join "\n", sort @a'
    """,
    "git": """
        git -c init.defaultBranch=main init -q repo; cp -r tree/a repo/; cd repo; git add .; git commit -q -m one
        seq 50 > a/f1; git commit -q -am two; git log --format='%H %s'; git diff HEAD~1 --stat; git show HEAD~1:a/f1 | tail -1
        git gc -q; git fsck; git checkout -q HEAD~1; wc -l a/f1; git clone -q . ../clone; git -C ../clone log --oneline | cat
    """,
    "gcc": "gcc -O1 -save-temps -pipe -o main main.c 2>&1; ./main; gcc -c main.c -o main.o; ar rcD "
    "lib.a main.o; cksum lib.a main; nm main.o",
    "make": "printf 'all: x y\\nx y:\\n\\techo $@ > $@; cat $@\\n' > Makefile; make -j2 -Oline "
    "2>&1 | sort; make",
    "python": """%(python)s -I -c '
import os, io, mmap, shutil, sqlite3, subprocess, sys, tempfile, threading, zipfile, multiprocessing
print(sum(map(int, open("tree/a/f5"))))
with open("new", "wb+", buffering=0) as f:
    f.write(b"x" * 1000); f.seek(10); f.write(b"y"); f.truncate(500); print(f.tell(), os.fstat(f.fileno()).st_size)
    m = mmap.mmap(f.fileno(), 0); m[0:2] = b"mm"; m.flush(); print(m[:12]); m.close()
shutil.copytree("tree", "copied", symlinks=True); print(sorted(os.listdir("copied/a")))
db = sqlite3.connect("db"); db.execute("create table t(a)"); db.executemany("insert into t values(?)", [(i,) for i in range(1000)]); db.commit()
print(db.execute("select sum(a) from t").fetchone()); db.close()
print(subprocess.run(["cat"], input=b"through", capture_output=True).stdout)
with zipfile.ZipFile("z.zip", "w") as z: z.write("tree/a/f1"); print(z.namelist())
ts = [threading.Thread(target=lambda i=i: open(f"t{i}", "w").write("t" * i)) for i in range(20)]
[t.start() for t in ts]; [t.join() for t in ts]; print([os.path.getsize(f"t{i}") for i in range(20)])
with multiprocessing.get_context("fork").Pool(2) as p: print(p.map(os.path.getsize, ["new", "t3"]))
try: open("missing/file")
except FileNotFoundError as e: print(e)
r, w = os.pipe(); os.write(w, b"pipe"); print(os.read(r, 9)); os.sendfile(1, os.open("t5", os.O_RDONLY), 0, 5)
'""",
}


def snapshot(directory: Path) -> dict[str, str]:
    """Every file below a directory with the hash of its bytes; what git and sqlite stamp with the
    time is left out."""
    found = {}
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        if "/.git/" in f"/{name}" and not name.endswith(("HEAD", "refs/heads/main")):
            continue
        if path.is_symlink():
            found[name] = f"-> {os.readlink(path)}"
        elif path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def run_in(directory: Path, script: str, variables: dict[str, str]) -> tuple:
    directory.mkdir()
    env = clean_environment({
        "HOME": str(directory.parent), "TZ": "UTC", "GIT_AUTHOR_DATE": "1700000000 +0000",
        "GIT_COMMITTER_DATE": "1700000000 +0000",
        "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
        "GIT_CONFIG_NOSYSTEM": "1", "PYTHONDONTWRITEBYTECODE": "1", **variables,
    })  # fmt: skip
    subprocess.run(["bash", "-c", PREPARE], cwd=directory, check=True, timeout=300)
    done = subprocess.run(["bash", "-c", script], cwd=directory, env=env, capture_output=True,
        timeout=300)
    return done.returncode, done.stdout, done.stderr, snapshot(directory)


@pytest.mark.parametrize("level", ["trace", "detail"])
@pytest.mark.parametrize("name", GUESTS)
def test_output_is_the_same_byte_for_byte(preload_env, tmp_path, name, level):
    tool = {"pipeline": "awk", "coreutils": "cp", "python": "bash"}.get(name, name)
    if shutil.which(tool) is None:
        pytest.skip(f"no {tool} on this machine")
    script = GUESTS[name].replace("%(python)s", sys.executable)
    # Equal paths, one after the other: a compiler and git write down where they are.
    plain = run_in(tmp_path / "work", script, {})
    shutil.rmtree(tmp_path / "work")
    env = preload_env(level=level)
    traced = run_in(tmp_path / "work", script, env)
    assert plain[0] == 0 and b"not found" not in plain[2] and plain[1], plain[:3]
    assert traced[:3] == plain[:3]
    assert traced[3] == plain[3]
    trace = read_trace(env["WEIR_TRACE_DIR"])
    assert all(p.failures == 0 and p.lost_events == 0 for p in trace.processes.values())
    assert len(trace.processes) > 1 or name == "python"
