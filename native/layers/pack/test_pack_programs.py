# SPDX-License-Identifier: Apache-2.0
"""Programs of others on a directory of packed files: the same as on real ones."""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid

import pytest

from weir.pack import verify

# Reads files of $1, and writes into the new directory $2, which is compared.
READERS = {
    "cp": 'cp -r "$1"/. "$2"',
    "cp -p": 'cp -rp "$1"/. "$2"; stat -c "%n %s %a %Y" "$1"/*.dat > "$2"/stats',
    "tar": 'tar -C "$1" -cf - . | tar -C "$2" -xf -',
    "rsync": 'rsync -rt "$1"/ "$2"/; rsync -rtn --itemize-changes "$1"/ "$2"/ > changes; '
        'mv changes "$2"',
    "find": 'cd "$1"; find . -name "*.dat" -size +1c -printf "%f %s\\n" | sort > "$2"/found; '
        'find . -type f -exec cat {} + | sort > "$2"/all',
    "ls": 'cd "$1"; ls > "$2"/names; ls -l --time-style=+ | cut -d" " -f1,5- > "$2"/long',
    "grep": 'cd "$1"; grep -r "file 1" . | sort > "$2"/lines',
    "diff": 'diff -r "$1" "$1" > "$2"/same',
    "python": 'python3 -c "import shutil, sys, os; '
        "shutil.copytree(sys.argv[1], sys.argv[2], dirs_exist_ok=True); "
        "print(sorted((e.name, e.is_file(), e.stat().st_size) "
        'for e in os.scandir(sys.argv[1])))" "$1" "$2" > "$2"/entries',
    "python zipfile": 'cd "$1"; python3 -m zipfile -c "$2"/z.zip *.dat; '
        'python3 -m zipfile -l "$2"/z.zip | cut -c1-40 > "$2"/list; rm "$2"/z.zip',
}
# Change files of $1.
WRITERS = {
    "sed -i": 'cd "$1"; sed -i s/file/number/ 1*.dat',
    "mv": 'cd "$1"; mv 1.dat one.dat; mv 2.dat two.txt; mkdir sub; mv 3.dat sub/3.dat',
    "rm": 'cd "$1"; rm 1.dat; rm -f none.dat; rm 2*.dat',
    "cp onto": 'cd "$1"; cp 1.dat copy.dat; cp -f 2.dat 3.dat',
    "append": 'cd "$1"; for i in 1 2 3; do echo more >> $i.dat; done; truncate -s 3 4.dat',
    "attributes": 'cd "$1"; chmod 600 1.dat; touch -d @5 2.dat; '
        'stat -c "%n %s %a" *.dat > about; stat -c %Y 2.dat >> about',
    "script": 'cd "$1"; printf "#!/bin/sh\\necho ran > said\\n" > run.dat; chmod +x run.dat; '
        "./run.dat",
    "tar -z": 'cd "$1"; tar --mtime=@0 -czf archive.dat 1.dat 2.dat; tar -tzf archive.dat > list',
    "git": 'cd "$1"; export GIT_CONFIG_GLOBAL=/dev/null; git init -q .; git add .; '
        "git -c user.name=a -c user.email=a@b commit -qm one --date=@0; "
        "git status --short > clean; "
        "git ls-files > tracked; rm -rf .git",
    "dd": 'cd "$1"; dd if=1.dat of=dd.dat bs=2 2>/dev/null; dd if=2.dat of=dd.dat bs=1 count=3 '
        "conv=notrunc 2>/dev/null; dd if=3.dat of=dd.dat oflag=append conv=notrunc 2>/dev/null; "
        "dd if=4.dat of=seek.dat bs=1 seek=100 2>/dev/null; cat 5.dat > cat.dat; "
        "dd if=6.dat of=direct.dat oflag=direct bs=4096 2>/dev/null",
    "sort -o": 'cd "$1"; sort -r 1*.dat -o sorted.dat; sort sorted.dat -o sorted.dat; '
        "cat 2*.dat | sort -u > unique.dat; uniq sorted.dat once.dat",
    "split": 'cd "$1"; cat *.dat > all; split -b 100 all part. --additional-suffix=.dat; '
        "cat part.*.dat | cmp - all; csplit -s -f c -b %d.dat all 5 9",
    "rsync": 'cd "$1"; mkdir to; rsync -t *.dat to; rsync -t --inplace 1.dat to/2.dat; '
        "rsync -t --append all.dat to 2>/dev/null || true; rsync -t --checksum 3.dat to",
    "tar --sparse": 'cd "$1"; truncate -s 9000 1.dat; echo end >> 1.dat; '
        "tar -cSf sparse 1.dat 2.dat; mkdir to; tar -C to -xSf sparse; cmp 1.dat to/1.dat; "
        "rm sparse",
    "sqlite3": 'cd "$1"; python3 -c "import sqlite3; c = sqlite3.connect(\'base.dat\'); '
        "c.execute('create table t(a)'); c.executemany('insert into t values (?)', "
        "[(i,) for i in range(999)]); c.commit(); c.execute('delete from t where a % 2'); "
        "c.commit(); print(c.execute('select sum(a) from t').fetchall())" '" > sum; rm base.dat',
    "sqlite3 in processes": 'cd "$1"; sqlite3 base.dat "pragma journal_mode=wal; '
        'create table t(a)"; for j in 1 2 3 4; do for i in $(seq 9); do '
        'echo "insert into t values ($j$i);"; done | sqlite3 -cmd ".timeout 50000" base.dat & '
        'done; wait; '
        'sqlite3 base.dat "select count(*), sum(a) from t; pragma integrity_check" > sum; '
        "rm base.dat*",
    "gcc -shared": 'cd "$1"; echo "int f(void) { return 7; }" > f.c; echo "int f(void); '
        'int main(void) { return f(); }" > m.c; gcc -shared -fPIC -o libf.dat f.c; '
        "gcc -o m.dat m.c -L. -l:libf.dat -Wl,-rpath,.; ./m.dat || echo $? > status; "
        "rm m.dat libf.dat",
    "ln": 'cd "$1"; ln 1.dat hard.dat; ln -s 2.dat soft; cat soft > through; '
        "stat -c %h hard.dat > links",
}


@pytest.fixture
def shell(preload, tmp_path):
    job = f"pytest-pack-{uuid.uuid4().hex[:12]}"
    rules = "weir-rules 1\nrule source=test:1 name=*.dat stack=pack:name=out.zip:always=1|system\n"
    packed = {"LD_PRELOAD": str(preload), "WEIR_RULES": rules, "WEIR_JOB": job}

    def run(script, *arguments, pack):
        env = {**os.environ, "LC_ALL": "C.UTF-8", **(packed if pack else {})}
        done = subprocess.run(["bash", "-euc", script, "test", *map(str, arguments)], env=env,
            capture_output=True, text=True, timeout=300, cwd=tmp_path, check=False)
        assert done.returncode == 0 and not done.stderr, done.stderr
        return done.stdout

    yield run
    shutil.rmtree(f"/dev/shm/weir.{os.geteuid()}.{job}", ignore_errors=True)


# Redirections of a shell go to a program that it starts, which makes real files.
MAKE = """
mkdir "$1"; cd "$1"; echo real > real.txt
python3 -c '
import os
for i in range(1, 31): open(f"{i}.dat", "w").write(f"file {i}\\n")
for name in os.listdir("."): os.utime(name, (1e9, 1e9))'
"""


def tree(directory):
    return {str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*")) if path.is_file()}


def needed(name):
    program = name.split()[0]
    if program in ("rsync", "git") and shutil.which(program) is None:
        pytest.skip(f"{program} is not installed here")


@pytest.mark.parametrize("name", READERS)
def test_programs_that_read(shell, tmp_path, name):
    needed(name)
    seen = {}
    for pack in (False, True):
        directory, out = tmp_path / str(pack) / "d", tmp_path / str(pack) / "out"
        out.mkdir(parents=True)
        shell(MAKE, directory, pack=pack)
        shell(READERS[name], directory, out, pack=pack)
        # the names of what was written may match the rule too
        shell('cd "$1"; mkdir "$2"; for f in *; do cat "$f" > "$2/$f.seen"; done', out,
            tmp_path / str(pack) / "seen", pack=pack)
        seen[pack] = {n: data.replace(b"/True/", b"/False/") for n, data in
            tree(tmp_path / str(pack) / "seen").items()}
        assert not pack or sorted(os.listdir(directory)) == ["out.zip", "real.txt"]
    assert seen[True] == seen[False] != {}
    assert verify(tmp_path / "True" / "d" / "out.zip") == (30, [])


def test_what_dd_and_touch_write_is_packed(shell, tmp_path):
    """Both copy the file onto the number of a standard stream."""
    shell('mkdir "$1"; cd "$1"; seq 100 | dd of=dd.dat bs=7 2>/dev/null; touch -d @5 touched.dat; '
        "dd if=dd.dat of=again.dat 2>/dev/null; cmp dd.dat again.dat; stat -c %Y touched.dat",
        tmp_path / "d", pack=True)
    assert os.listdir(tmp_path / "d") == ["out.zip"]
    assert verify(tmp_path / "d" / "out.zip") == (3, [])


STREAM = """
import os, sys
directory = sys.argv[1]
fd = os.open(f"{directory}/out.dat", os.O_WRONLY | os.O_CREAT, 0o644)
os.dup2(fd, 1)
os.close(fd)
libc = __import__("ctypes").CDLL(None)
libc.puts(b"by the stream")
libc.fflush(None)
os.write(1, b"by the number\\n")
libc.puts(b"at the end")
"""


def test_what_a_stream_writes_when_the_program_ends_is_there(shell, tmp_path):
    """The C library writes what standard output holds after everything else, unseen."""
    lines = {}
    for pack in (False, True):
        directory = tmp_path / str(pack)
        shell(f"mkdir $1; python3 -c '{STREAM}' $1", directory, pack=pack)
        lines[pack] = shell('cat "$1"/out.dat', directory, pack=pack)
    assert lines[True] == lines[False] == "by the stream\nby the number\nat the end\n"


@pytest.mark.parametrize("name", WRITERS)
def test_programs_that_write(shell, tmp_path, name):
    needed(name)
    seen = {}
    for pack in (False, True):
        directory, out = tmp_path / str(pack) / "d", tmp_path / str(pack) / "out"
        out.mkdir(parents=True)
        shell(MAKE, directory, pack=pack)
        shell(WRITERS[name], directory, pack=pack)
        shell('cd "$1"; find . -type f | while read -r f; do '
            'cat "$f" > "$2/$(echo "$f" | tr / +).seen"; done', directory, out, pack=pack)
        seen[pack] = tree(out)
    assert seen[True] == seen[False] != {}
    assert verify(tmp_path / "True" / "d" / "out.zip")[1] == []
