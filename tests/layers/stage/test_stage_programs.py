# SPDX-License-Identifier: Apache-2.0
"""Programs of others whose files are on a tier, in two steps: the first writes, the second reads.
They print what they print without a tier, and the same files come to their place."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from weir_process import clean_environment

CAVITY = Path("/usr/share/doc/openfoam-examples/examples/incompressible/icoFoam/cavity/cavity")
MELT = """units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 4 0 4 0 4
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
fix 1 all nve
dump 1 all custom 20 dump.*.txt id x y z
thermo 50
run 100
write_restart melt.restart
"""
AGAIN = """read_restart melt.restart
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
fix 1 all nve
thermo 50
run 100
write_data again.data nocoeff
"""
NETCDF = """
import netCDF4, numpy, sys
for name in ("NETCDF3_CLASSIC", "NETCDF4"):
    with netCDF4.Dataset(name + ".nc", "w", format=name) as f:
        f.createDimension("t", None); f.createDimension("x", 1000)
        v = f.createVariable("v", "f4", ("t", "x"))
        for i in range(50): v[i] = numpy.arange(1000) * i
    with netCDF4.Dataset(name + ".nc", "a") as f: f.title = "again"
"""
NETCDF_BACK = """
import netCDF4
for name in ("NETCDF3_CLASSIC", "NETCDF4"):
    with netCDF4.Dataset(name + ".nc") as f: print(f.title, f["v"][:].sum(), f["v"].shape)
"""
GIT = "export GIT_AUTHOR_DATE=2020-01-01T00:00Z GIT_COMMITTER_DATE=2020-01-01T00:00Z " \
    "HOME=/nowhere GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a " \
    "GIT_COMMITTER_EMAIL=a@b; "


@dataclass(frozen=True)
class Case:
    """Two shell scripts; what the second prints is compared, and the files of these patterns."""

    needs: str
    first: str
    second: str
    files: str = "*"


CASES = {
    "cp": Case("cp", "seq 20000 > a; cp -p a b; cp a c; mkdir d; cp -r a b c d; ln -s a l; rm c",
        "cmp a d/c && cp -r d e && ls -R | grep -v total && wc -c a b d/* && rm -r e && cat l | "
        "tail -1"),
    "tar": Case("tar", "mkdir d; for i in $(seq 60); do seq $i > d/f$i; done; tar -cf all.tar "
        "--sort=name --mtime=@0 d; tar -czf - d | wc -c > size",
        "mkdir o; tar -xf all.tar -C o; diff -r d o/d && tar -tf all.tar | wc -l", "**/f*"),
    "rsync": Case("rsync", "mkdir d; for i in $(seq 60); do seq $i > d/f$i; done; rsync -a d/ o; "
        "echo more >> d/f7; rm d/f9; rsync -a --delete --inplace d/ o; rsync -ac d/ p",
        "diff -r d o && diff -r d p && ls o | wc -l"),
    "links": Case("rsync",
        "mkdir d; seq 20000 > d/a; ln d/a d/b; [ d/a -ef d/b ] || echo DIFFERENT; "
        "mv d/a d/b && echo moved; rsync -aH d/ o; rsync -aH d/ o; tar -cf t.tar d; "
        "cp -a d c; cp -al d l",
        "ls -A d o c l; stat -c '%n %h' */a */b; find . -samefile d/a | sort; tar -tvf t.tar | "
        "grep -c 'link to'; [ o/a -ef o/b ] && [ c/a -ef c/b ] && echo same; mv d/a d/b 2>&1; "
        "echo $?", "**/[ab]"),
    "git": Case("git", GIT + "git init -q -b m . && for i in 1 2 3; do seq $i > f$i; git add .; "
        "git commit -qm $i; done; git gc -q; git checkout -q -b o HEAD~1; echo x >> f1; "
        "git commit -qam o; git merge -q m -m merged",
        GIT + "git fsck --strict && git log --oneline --graph && git status --short && git diff "
        "--stat m && git stash list", "f*"),
    "sqlite3": Case("sqlite3",
        "sqlite3 a.db 'create table t(x, y)'; for i in $(seq 20); do "
        "sqlite3 a.db \"insert into t values($i, hex(zeroblob(2000)))\"; done; "
        "sqlite3 a.db 'pragma journal_mode=wal; update t set y = x * 2; vacuum'",
        "sqlite3 a.db 'pragma integrity_check; select sum(x), sum(y) from t'; ls"),
    "gcc": Case("gcc",
        "echo 'int f(void) { return 7; }' > f.c; echo 'int f(void); int main(void) { "
        "return f(); }' > m.c",
        "gcc -shared -fPIC -o libf.so f.c; gcc -o m m.c -L. -lf -Wl,-rpath,.; ./m; echo $?; "
        "strip m libf.so; ./m; echo $?", "*.c"),
    "netcdf": Case("ncdump", f"{sys.executable} -I -c '{NETCDF}'",
        f"{sys.executable} -I -c '{NETCDF_BACK}'; ncdump -h NETCDF4.nc; ncdump NETCDF3_CLASSIC.nc "
        "| tail -3", "NETCDF3*"),
    "lammps": Case("lmp", f"cat > in.melt <<'X'\n{MELT}X\nlmp -in in.melt -log none > out.txt",
        f"cat > in.again <<'X'\n{AGAIN}X\nlmp -in in.again -log none | grep '^ *[0-9]*00 '; "
        "ls; cat dump.100.txt | tail -2", "dump*"),
    "openfoam": Case("icoFoam", "export WM_PROJECT_DIR=/usr/share/openfoam; "
        f"cp -r {CAVITY}/* . && blockMesh > mesh.txt && icoFoam > ico.txt",
        "export WM_PROJECT_DIR=/usr/share/openfoam; ls; foamListTimes; tail -5 0.5/U; "
        "checkMesh | grep -c OK", "0.*/[Up]"),
}


@pytest.mark.parametrize("drain", ["async", "end"])
@pytest.mark.parametrize("name", CASES)
def test_a_program_of_others_does_the_same(name, drain, weir, preload, tmp_path, tier):
    case = CASES[name]
    if shutil.which(case.needs) is None or (name == "openfoam" and not CAVITY.exists()):
        pytest.skip(f"no {case.needs} here")
    printed, files = {}, {}
    for way in ("plain", "staged"):
        work = tmp_path / way
        work.mkdir()
        environment = clean_environment() | {"OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"}
        if way == "staged":
            environment |= {"LD_PRELOAD": str(preload), "WEIR_JOB": tier.name,
                "WEIR_RULES": f"weir-rules 1\nrule source=test:1:1 name=* dir={work} "
                              f"stack=stage:tier={tier}:drain={drain}|system\n"}
        for step in (case.first, case.second):
            done = subprocess.run(["bash", "--norc", "-c", step], cwd=work, env=environment,
                capture_output=True, text=True, timeout=300, check=False)
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr
        printed[way] = re.sub(r"/\S*/(plain|staged)", "WORK", done.stdout)
        if way == "staged":
            weir("stage", "recover", tier).ok()
        files[way] = {str(p.relative_to(work)): p.read_bytes() for p in work.rglob(case.files)
            if p.is_file()}
        assert not [*work.rglob(".weir-stage-*")]
    assert printed["staged"] == printed["plain"] and printed["plain"].strip()
    assert files["staged"].keys() == files["plain"].keys() and files["plain"]
    assert [n for n in files["plain"] if files["plain"][n] != files["staged"][n]] == []
