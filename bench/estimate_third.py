# SPDX-License-Identifier: Apache-2.0
"""The third round of held-out cases of bench/estimates.py: what makes the input, the command.

PYTHON and MPIRUN as in estimate_cases.py. Most scripts are written by the first command.
"""

from __future__ import annotations

import shlex


def _script(name: str, *lines: str) -> str:
    """The shell command that writes a file of these lines."""
    return f"printf '%s\\n' {shlex.join(lines)} >{name}"


_TREE = ("mkdir tree; for n in $(seq {count}); do head -c {half} /dev/urandom | base64 "
    ">tree/$n.txt; done")  # fmt: skip
_GRIB = ("cdo -s -f grb -seltimestep,1/{steps} -for,1,{steps} x.grb; cdo -s -f grb -mul -enlarge,"
    "{grid} x.grb -random,{grid} in.grb")  # fmt: skip
_NCL = _script("s.ncl", "begin", "f = addfile(\"out.nc\", \"c\")",
    "filedimdef(f, (/\"time\", \"lat\", \"lon\"/), (/-1, 60, 90/), (/True, False, False/))",
    "filevardef(f, \"t\", \"float\", (/\"time\", \"lat\", \"lon\"/))",
    "x = onedtond(fspan(0, 1, 5400), (/60, 90/))",
    "do i = 0, 39", "f->t(i, :, :) = (/tofloat(x + i)/)", "end do",
    "asciiwrite(\"t.txt\", ndtooned(f->t(0:9, :, :)))",
    "y = asciiread(\"t.txt\", -1, \"float\")", "print(avg(y))", "end")  # fmt: skip
_GRADS = ("PYTHON -c \"import numpy as n; n.arange(60 * 90 * 40, dtype='<f4').tofile('in.dat')\"; "
    + _script("in.ctl", "dset ^in.dat", "undef -999", "xdef 90 linear 0 4",
        "ydef 60 linear -89 3", "zdef 1 levels 1000", "tdef 40 linear 00Z01jan2000 6hr", "vars 1",
        "t 0 99 temperature", "endvars") + "; "
    + _script("s.gs", "'open in.ctl'", "'set gxout fwrite'", "'set fwrite out.dat'", "i = 1",
        "while (i <= 40)", "'set t 'i", "'d t*2'", "i = i + 1", "endwhile", "'disable fwrite'",
        "'quit'"))  # fmt: skip
_METVIEW = _GRIB.format(steps=24, grid="r180x90") + "; " + _script("s.mv",
    "f = read(\"in.grb\")", "for i = 1 to count(f) do", "write(\"out.grb\", f[i] * 2)", "end for",
    "print(average(f[1]))")  # fmt: skip
_OCTAVE = _script("s.m", "x = reshape(1:120000, [], 12) / 7;", "save('-text', 'x.txt', 'x');",
    "csvwrite('x.csv', x); y = csvread('x.csv');", "load('x.txt');",
    "for i = 1:60", "z = x(i:i+20, :); save('-binary', sprintf('z%03d.bin', i), 'z');",
    "end", "disp(sum(y(:)))")  # fmt: skip
_CFGRIB = _script("script.py", "import xarray as xr",
    "d = xr.open_dataset('in.grb', engine='cfgrib')", "d.to_netcdf('out.nc', engine='netcdf4')",
    "print(d)")  # fmt: skip
_NETCDF = _script("script.py", "import netCDF4 as n, numpy as np", "d = n.Dataset('out.nc', 'w')",
    "d.createDimension('time'); d.createDimension('x', 3000)",
    "v = [d.createVariable(f'v{i}', 'f4', ('time', 'x'), zlib=True) for i in range(6)]",
    "for t in range(40):", "    for i in range(6): v[i][t] = np.arange(3000) * t + i",
    "    d.sync()", "d.close()")  # fmt: skip
_DUCKDB = _script("script.py", "import duckdb", "c = duckdb.connect('all.db')",
    "c.execute('create table t as select range a, range % 60 b, sqrt(range) c from range(120000)')",
    "c.execute(\"copy t to 'all.csv'\")",
    "c.execute(\"copy t to 'parts' (format parquet, partition_by (b))\")",
    "print(c.execute(\"select sum(c) from 'all.csv'\").fetchall())", "c.close()")  # fmt: skip
_PLOTS = _script("script.py", "import matplotlib; matplotlib.use('Agg')",
    "import matplotlib.pyplot as p, numpy as np", "f, a = p.subplots(figsize=(3, 2))",
    "for i in range(12):", "    a.clear(); a.plot(np.sin(np.arange(50) * i))",
    "    f.savefig(f'p{i:02}.svg')", "    f.savefig(f'p{i:02}.pdf')")  # fmt: skip
_PDF = ("PYTHON -c \"import matplotlib; matplotlib.use('Agg'); import matplotlib.pyplot as p; from "
    "matplotlib.backends.backend_pdf import PdfPages; o = PdfPages('in.pdf'); [(p.figure("
    "figsize=(3, 2)), p.plot([0, i]), o.savefig(), p.close()) for i in range(90)]; o.close()\"")
_JAVA = ("mkdir src classes; for n in $(seq 60); do echo \"public class C$n { int f(int x) "
    "{ return x + $n; } static class Inner { int y; } interface Face { } }\" >src/C$n.java; done")
_MAKE = ("for n in $(seq 40); do echo \"int f$n(int x) { return x + $n; }\" >f$n.c; done; "
    "echo 'int main(void) { return 0; }' >main.c; " + _script("Makefile",
        "all: $(patsubst %.c,%.o,$(wildcard *.c))", "\tcc -o all $^", "%.o: %.c",
        "\tcc -O1 -pipe -c -o $@ $<"))  # fmt: skip
_DOXYGEN = ("mkdir src; for n in $(seq 40); do echo \"/// Class $n. \nclass C$n { public: /** "
    "f. */ int f(int x); /// g\n int g; };\" >src/c$n.h; done; " + _script("Doxyfile",
        "INPUT = src", "GENERATE_LATEX = NO", "QUIET = YES", "HTML_TIMESTAMP = NO"))  # fmt: skip
_REFERENCE = ("awk 'BEGIN { srand(3); for (i = 0; i < 12; i++) { printf \">s%d\\n\", i; for (k = 0;"
    " k < 900; k++) { s = \"\"; for (j = 0; j < 60; j++) s = s substr(\"ACGT\", int(rand() * 4) + "
    "1, 1); print s } } }' >ref.fa")
_VCF = ("awk 'BEGIN { srand(5); print \"##fileformat=VCFv4.2\"; print "
    "\"##contig=<ID=1,length=9999999>\"; print \"##INFO=<ID=DP,Number=1,Type=Integer,"
    "Description=\\\"d\\\">\"; OFS = \"\\t\"; print \"#CHROM\", \"POS\", \"ID\", \"REF\", \"ALT\", "
    "\"QUAL\", \"FILTER\", \"INFO\"; for (i = 0; i < 60000; i++) print 1, int(rand() * 9e6) + 1, "
    "\".\", \"A\", \"T\", 30, \"PASS\", \"DP=\" int(rand() * 90) }' >in.vcf")
_BED = ("for f in a b; do awk -v s=$f 'BEGIN { srand(s == \"a\"); OFS = \"\\t\"; for (i = 0; i < "
    "40000; i++) { p = int(rand() * 9e6); print \"chr\" i % 5, p, p + 90, \"r\" i } }' >$f.bed; "
    "done")
_WATER = _script("h2o.inp", "&GLOBAL", "PROJECT h2o", "RUN_TYPE MD", "PRINT_LEVEL LOW",
    "&END GLOBAL", "&MOTION", "&MD", "ENSEMBLE NVE", "STEPS 30", "TIMESTEP 0.5",
    "TEMPERATURE 300", "&END MD", "&PRINT", "&VELOCITIES", "&END VELOCITIES", "&FORCES",
    "&END FORCES", "&END PRINT", "&END MOTION", "&FORCE_EVAL", "METHOD Fist", "&MM", "&FORCEFIELD",
    "&SPLINE", "EMAX_SPLINE 1000", "&END SPLINE",
    "&NONBONDED", "&LENNARD-JONES", "ATOMS Ar Ar", "EPSILON 119.8", "SIGMA 3.405", "RCUT 6.0",
    "&END LENNARD-JONES", "&END NONBONDED", "&CHARGE", "ATOM Ar", "CHARGE 0.0", "&END CHARGE",
    "&END FORCEFIELD", "&POISSON", "&EWALD", "EWALD_TYPE none", "&END EWALD", "&END POISSON",
    "&END MM", "&SUBSYS", "&CELL", "ABC 18 18 18", "&END CELL", "&COORD",
    "@INCLUDE 'argon.xyz'", "&END COORD", "&END SUBSYS", "&END FORCE_EVAL") + (
    "; for x in 0 4 8 12; do for y in 0 4 8 12; do for z in 0 4 8 12; do echo \"Ar $x $y $z\"; "
    "done; done; done >argon.xyz")  # fmt: skip
_MEEP = _script("s.ctl", "(set! geometry-lattice (make lattice (size 16 8 no-size)))",
    "(set! geometry (list (make block (center 0 0) (size infinity 1 infinity) (material (make "
    "dielectric (epsilon 12))))))",
    "(set! sources (list (make source (src (make continuous-src (frequency 0.15))) (component Ez) "
    "(center -7 0))))", "(set! pml-layers (list (make pml (thickness 1.0))))",
    "(set! resolution 10)",
    "(run-until 6 (at-every 0.5 output-efield-z) (to-appended \"ez\" (at-every 0.5 "
    "output-efield-z)))")  # fmt: skip
_NWCHEM = _script("h2o.nw", "start h2o", "geometry", "O 0 0 0", "H 0 1.43 1.1", "H 0 -1.43 1.1",
    "end", "basis", "* library 6-31g", "end", "task scf energy")
THIRD = {
    "bufr_copy": ("s=$(codes_info -s); for i in $(seq 1200); do cat "
        "$s/BUFR4_local_satellite.tmpl $s/BUFR3_local.tmpl; done >in.bufr",
        "bufr_copy in.bufr out.bufr"),
    "grib_nc": (_GRIB.format(steps=40, grid="r180x90"), "grib_to_netcdf -o out.nc in.grb"),
    "cfgrib": (_CFGRIB + "; " + _GRIB.format(steps=80, grid="r90x45"), "PYTHON script.py"),
    "ncl": (_NCL, "ncl -Q s.ncl"),
    "grads": (_GRADS, "grads -lbc s.gs"),
    "gmt": ("gmt grdmath -R0/180/0/90 -I1 X Y MUL = in.nc", "sh -c 'gmt grd2xyz in.nc >out.txt; "
        "gmt xyz2grd out.txt -R0/180/0/90 -I1 -Gout.nc'"),
    "metview": (_METVIEW, "metview -b s.mv"),
    "octave": (_OCTAVE, "octave-cli --norc -q s.m"),
    "netcdf4": (_NETCDF, "PYTHON script.py"),
    "duckdb": (_DUCKDB, "PYTHON script.py"),
    "plots": (_PLOTS, "PYTHON script.py"),
    "db_load": ("seq 60000 | sed 'p;s/$/ some text of the row/' >rows",
        "db5.3_load -T -t btree -f rows out.db"),
    "javac": (_JAVA, "sh -c 'javac -d classes src/*.java'"),
    "make": (_MAKE, "make -s"),
    "doxygen": (_DOXYGEN, "doxygen Doxyfile"),
    "7zz": (_TREE.format(count=150, half=15000), "7zz a -bd -mmt1 -mx1 all.7z tree"),
    "borg": (f"{_TREE.format(count=200, half=15000)}; BORG_BASE_DIR=$PWD/base borg init -e none "
        "repo", "sh -c 'BORG_BASE_DIR=$PWD/base BORG_RELOCATED_REPO_ACCESS_IS_OK=yes "
        "BORG_UNKNOWN_UNENCRYPTED_REPO_ACCESS_IS_OK=yes borg create -C lz4 repo::one tree'"),
    "mksquashfs": (_TREE.format(count=200, half=15000), "mksquashfs tree all.sqsh -noappend "
        "-no-progress -quiet -processors 1 -comp lz4"),
    "xorriso": (_TREE.format(count=150, half=15000),
        "xorriso -as mkisofs -quiet -o all.iso tree"),
    "hg": ("export HGUSER=me HGRCPATH=; hg init src; cd src; for c in 1 2 3 4 5; do for n in "
        "$(seq 30); do echo \"$c $n\" | sha512sum >>f$n; done; hg -q commit -A -m $c; done",
        "sh -c 'HGRCPATH= hg -q clone --pull src dst'"),
    "pdftoppm": (_PDF, "pdftoppm -r 60 -png in.pdf page"),
    "sox": ("sox -n -r 22050 -c 1 in.wav synth 60 sine 300-3000", "sox in.wav out.aiff reverb"),
    "bwa": (_REFERENCE, "bwa index ref.fa"),
    "bcftools": (_VCF, "bcftools sort -T tmp -m 1M -Ov -o out.vcf in.vcf"),
    "bedtools": (_BED, "sh -c 'bedtools sort -i a.bed >sorted.bed; bedtools intersect -a a.bed "
        "-b b.bed -wo >out.bed'"),
    "gmsh": (_script("s.geo", "SetFactory(\"Built-in\");", "Point(1) = {0, 0, 0, 0.02};",
        "Point(2) = {1, 0, 0, 0.02};", "Point(3) = {1, 1, 0, 0.02};", "Point(4) = {0, 1, 0, 0.02};",
        "Line(1) = {1, 2};", "Line(2) = {2, 3};", "Line(3) = {3, 4};", "Line(4) = {4, 1};",
        "Line Loop(1) = {1, 2, 3, 4};", "Plane Surface(1) = {1};"),
        "gmsh -v 0 -2 -format msh2 -o out.msh s.geo"),
    "cp2k": (_WATER, "MPIRUN cp2k.psmp -i h2o.inp -o out.log"),
    "meep": (_MEEP, "MPIRUN meep s.ctl"),
    "nwchem": (_NWCHEM, "MPIRUN nwchem.openmpi h2o.nw"),
    # Three that move large pieces: nothing is worth changing.
    "zstd": ("head -c 30000000 /dev/urandom >big", "zstd -q -1 -k big"),
    "sha256sum": ("head -c 30000000 /dev/urandom >big", "sh -c 'sha256sum big >sum'"),
    "pigz": ("head -c 20000000 /dev/urandom >big", "pigz -p 2 -1 -k big"),
}  # fmt: skip
