# SPDX-License-Identifier: Apache-2.0
"""The fifth round of held-out cases of bench/estimates.py: what makes the input, the command.

PYTHON and MPIRUN as in estimate_cases.py. Packages of Debian: gawk kyotocabinet-utils libvips-tools
qpdf flac gnuplot-nox dar mrbayes lmdb-utils emboss vsearch genisoimage mtools rrdtool ruby tcl
php-cli lua5.4 nodejs gdal-bin netcdf-bin subversion; of PyPI: diskcache plyvel rocksdict tables
tiledb tensorboardX ase nibabel.
"""

from __future__ import annotations

import shlex


def _script(name: str, *lines: str) -> str:
    """The shell command that writes a file of these lines."""
    return f"printf '%s\\n' {shlex.join(lines)} >{name}"


_TREE = ("mkdir tree; for n in $(seq {count}); do head -c {bytes} /dev/urandom | base64 "
    ">tree/$n.txt; done")  # fmt: skip
_FASTA = ("awk 'BEGIN {{ srand(9); for (i = 0; i < {count}; i++) {{ printf \">s%d\\n\", i; for (k ="
    " 0; k < 12; k++) {{ s = \"\"; for (j = 0; j < 60; j++) s = s substr(\"ACGT\", int(rand() * 4)"
    " + 1, 1); print s }} }} }}' >in.fa")
_PPM = ("PYTHON -c \"import numpy as n; open('in.ppm', 'wb').write(b'P6 3000 2200 255 ' + "
    "n.random.default_rng(1).integers(0, 99, 3000 * 2200 * 3, dtype='u1').tobytes())\"")
_PDF = ("PYTHON -c \"import matplotlib; matplotlib.use('Agg'); import matplotlib.pyplot as p; from "
    "matplotlib.backends.backend_pdf import PdfPages; o = PdfPages('in.pdf'); [(p.figure("
    "figsize=(3, 2)), p.plot([0, i]), o.savefig(), p.close()) for i in range(90)]; o.close()\"")
_CDL = ("awk 'BEGIN { print \"netcdf a { dimensions: t = unlimited; x = 1500; variables: float "
    "a(t, x); float b(t, x); data:\"; for (v = 0; v < 2; v++) { printf v ? \"b = \" : \"a = \"; "
    "for (i = 0; i < 90000; i++) printf \"%s%d\", i ? \", \" : \"\", i * 7 % 1000; print \";\" } "
    "print \"}\" }' >in.cdl")
_NEXUS = ("awk 'BEGIN { srand(2); print \"#NEXUS\\nbegin data; dimensions ntax=6 nchar=60; format "
    "datatype=dna; matrix\"; for (i = 0; i < 6; i++) { s = \"\"; for (j = 0; j < 60; j++) s = s "
    "substr(\"ACGT\", int(rand() * 4) + 1, 1); print \"t\" i, s } print \";end;\\nbegin mrbayes; "
    "set autoclose=yes nowarn=yes seed=3 swapseed=3; mcmcp ngen=20000 samplefreq=10 "
    "printfreq=1000 nchains=1 nruns=2 diagnfreq=5000; mcmc; end;\" }' >in.nex")
FIFTH = {
    "php": (_script("s.php", "<?php", "$f = fopen('out.csv', 'w');",
        "for ($i = 0; $i < 3000; $i++) fputcsv($f, [$i, sqrt($i), \"row $i\"]);", "fclose($f);",
        "$s = 0; $f = fopen('out.csv', 'r');", "while ($r = fgetcsv($f)) $s += $r[1];",
        "echo $s;"), "php -n s.php"),
    "lua": (_script("s.lua", "local f = io.open('model.log', 'w')", "for i = 1, 2000 do",
        "  f:write(string.format('step %d energy %.6f\\n', i, math.sin(i))); f:flush()", "end",
        "f:close()"), "lua5.4 s.lua"),
    "tclsh": (_script("s.tcl", "set f [open in.txt w]",
        "for {set i 0} {$i < 60000} {incr i} {puts $f \"$i some text of line $i\"}", "close $f",
        "set f [open in.txt]; set g [open out.txt w]",
        "while {[gets $f l] >= 0} {puts $g [string toupper $l]}", "close $f; close $g"),
        "tclsh s.tcl"),
    "ruby": (_script("s.rb", "500.times do |i|",
        "  File.open('job.log', 'a') { |f| f.puts \"step #{i} done\" }",
        "  File.write('state.txt', i.to_s) if i % 50 == 0", "end"), "ruby s.rb"),
    "node": (_script("s.js", "const fs = require('fs');",
        "for (let i = 0; i < 400; i++) fs.appendFileSync('run.log', `line ${i}\\n`);",
        "const f = fs.openSync('table.txt', 'w');",
        "for (let i = 0; i < 1500; i++) fs.writeSync(f, `${i} ${Math.sqrt(i)}\\n`);",
        "fs.closeSync(f);"), "node s.js"),
    "gawk": ("seq 60000 | sed 's/$/ some text of the row/' >big", "gawk '{ f = \"part\" int((NR "
        "- 1) / 150) \".txt\"; print >f; if (NR % 150 == 0) close(f) }' big"),
    "kchashmgr": ("seq 8000 | awk '{ print \"key\" $1 \"\\t\" \"value of row \" $1 }' >rows",
        "sh -c 'kchashmgr create all.kch; kchashmgr import all.kch rows'"),
    "mdb_load": ("mkdir db; seq 4000 | awk '{ print \"k\" $1; print \"value of row \" $1 }' >rows",
        "mdb_load -T -n -f rows all.mdb"),
    "plyvel": (_script("s.py", "import plyvel", "d = plyvel.DB('db', create_if_missing=True)",
        "for i in range(4000): d.put(b'%08d' % (i * 7 % 4000), b'value %d' % i * 9)",
        "print(sum(len(v) for _, v in d))", "d.close()"), "PYTHON s.py"),
    "rocksdict": (_script("s.py", "from rocksdict import Rdict", "d = Rdict('db')",
        "for i in range(3000): d[i * 7 % 3000] = f'value {i}' * 9",
        "print(sum(len(v) for v in d.values()))", "d.close()"), "PYTHON s.py"),
    "diskcache": (_script("s.py", "import diskcache", "c = diskcache.Cache('cache')",
        "for i in range(120): c[i] = bytes(40000 + i)", "print(sum(len(c[i]) for i in range(120)))",
        "c.close()"), "PYTHON s.py"),
    "tables": (_script("s.py", "import tables, numpy as n",
        "f = tables.open_file('t.h5', 'w')",
        "a = f.create_earray('/', 'a', tables.Float64Atom(), (0, 200), expectedrows=600)",
        "for i in range(300):", "    a.append(n.full((1, 200), i * 0.5)); f.flush()",
        "for i in range(100): f.create_array('/', f's{i}', n.arange(500) + i)", "f.close()"),
        "PYTHON s.py"),
    "tiledb": (_script("s.py", "import tiledb, numpy as n",
        "d = tiledb.Domain(tiledb.Dim('x', domain=(0, 3999), tile=100, dtype='i4'))",
        "tiledb.Array.create('a', tiledb.ArraySchema(domain=d, attrs=[tiledb.Attr('v', "
        "dtype='f8')]))",
        "for i in range(20):", "    with tiledb.open('a', 'w', timestamp=i + 1) as a: "
        "a[i * 200:i * 200 + 200] = n.arange(200.0) + i",
        "with tiledb.open('a') as a: print(a[:]['v'].sum())"), "PYTHON s.py"),
    "tensorboardx": (_script("s.py", "from tensorboardX import SummaryWriter",
        "w = SummaryWriter('log', filename_suffix='.x')",
        "for i in range(1500): w.add_scalar('loss', 1 / (i + 1), i)",
        "w.close()"), "PYTHON s.py"),
    "ase": (_script("s.py", "from ase.build import bulk", "from ase.io import Trajectory, read, "
        "write", "a = bulk('Cu', cubic=True) * (4, 4, 4)",
        "with Trajectory('a.traj', 'w') as t:", "    for i in range(150):",
        "        a.rattle(0.01, seed=i); t.write(a)",
        "write('all.xyz', read('a.traj', ':'))"), "PYTHON s.py"),
    "nibabel": (_script("s.py", "import nibabel as b, numpy as n",
        "x = n.random.default_rng(1).random((24, 24, 12, 80), dtype='f4')",
        "b.save(b.Nifti1Image(x, n.eye(4)), 'all.nii')",
        "for i, v in enumerate(b.four_to_three(b.load('all.nii'))): b.save(v, f'v{i:03}.nii.gz')"),
        "PYTHON s.py"),
    "ncgen": (_CDL, "ncgen -o out.nc in.cdl"),
    "ogr2ogr": ("awk 'BEGIN { print \"id,lon,lat,name\"; for (i = 0; i < 4000; i++) print i \",\" "
        "i % 360 - 180 \",\" i % 170 - 85 \",place \" i }' >in.csv", "ogr2ogr -f 'ESRI Shapefile' "
        "-oo X_POSSIBLE_NAMES=lon -oo Y_POSSIBLE_NAMES=lat out.shp in.csv"),
    "vips": (_PPM, "vips dzsave in.ppm tiles --suffix .png[compression=1] --vips-concurrency=1"),
    "qpdf": (_PDF, "qpdf --deterministic-id --split-pages in.pdf page-%d.pdf"),
    "flac": ("PYTHON -c \"import wave, numpy as n; w = wave.open('in.wav', 'wb'); w.setparams((2, "
        "2, 44100, 0, 'NONE', '')); w.writeframes((n.random.default_rng(1).random(6000000) * 9000)"
        ".astype('<i2').tobytes())\"", "flac -s -f -1 -o out.flac in.wav"),
    "gnuplot": (_script("s.gp", "set terminal svg size 300,200", "do for [i=1:90] {",
        "set output sprintf('p%03d.svg', i)", "plot sin(x * i)", "}", "set output"),
        "gnuplot s.gp"),
    "dar": (_TREE.format(count=150, bytes=15000), "dar -q -N -c all -R . -g tree"),
    "mb": (_NEXUS, "mb in.nex"),
    "seqretsplit": (_FASTA.format(count=250),
        "seqretsplit -sequence in.fa -outseq x.fa -auto"),
    "vsearch": (_FASTA.format(count=4000), "vsearch --quiet --threads 1 --derep_fulllength in.fa "
        "--output out.fa --uc out.uc"),
    "genisoimage": (_TREE.format(count=150, bytes=15000),
        "genisoimage -quiet -o all.iso tree"),
    "mcopy": (f"{_TREE.format(count=60, bytes=15000)}; mformat -C -i disk.img -T 8000 -h 16 -s 63 "
        "::", "sh -c 'mcopy -i disk.img tree/*.txt ::'"),
    "rrdtool": ("rrdtool create a.rrd --start 1000000000 --step 60 DS:x:GAUGE:120:U:U "
        "RRA:AVERAGE:0.5:1:2000; for i in $(seq 300); do echo \"update a.rrd $((1000000000 + i * "
        "60)):$i\"; done >commands", "sh -c 'rrdtool - <commands >out.txt'"),
    "svnadmin": ("svnadmin create a; mkdir tree; for n in $(seq 30); do seq $n 300 >tree/$n; done; "
        "svn import -q -m one tree file://$PWD/a/trunk; svnadmin dump -q a >all.dump; rm -r a tree",
        "sh -c 'svnadmin create b; svnadmin load -q b <all.dump'"),
}  # fmt: skip
