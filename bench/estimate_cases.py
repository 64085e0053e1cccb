# SPDX-License-Identifier: Apache-2.0
"""The cases of bench/estimates.py: workloads of this repository, and programs of others.

PYTHON stands for this interpreter, MPIRUN for the launcher with RANKS ranks.
"""

from __future__ import annotations

import shlex

from estimate_fifth import FIFTH
from estimate_fourth import FOURTH
from estimate_third import THIRD

RANKS = 4  # of programs of others
CASES: dict[str, tuple[int, str, str]] = {  # ranks, arguments that make the input, of the run
    "scf": (4, "--setup --dir . --megabytes 8",
        "--dir . --megabytes 8 --iterations 3 --compute 1"),
    "overlap": (4, "--setup --file sections.dat --planes 64 --ghost 8",
        "--file sections.dat --planes 64 --ghost 8 --compute 1"),
    "sharedread": (4, "--setup --file climate.nc --times 3",
        "--file climate.nc --times 3 --compute 1"),
    "matrix": (8, "", "--file matrix.dat --rows 880 --columns 300 --mode noview"),
    "olam": (4, "--setup --input . --input-mb 8",
        "--input . --output . --input-mb 8 --frames 30 --sleep 0.4 --result-kb 40 --plot-kb 40"),
    "4dvar": (4, "", "--scale 0.12 --compute 0.5"),
}  # fmt: skip
_CAVITY = "/usr/share/doc/openfoam-examples/examples/incompressible/icoFoam/cavity/cavity"
_MDP = ("integrator = md", "nsteps = 400", "dt = 0.002", "nstxout = 10", "nstvout = 10",
    "nstenergy = 10", "nstlog = 10", "nstxout-compressed = 10", "tcoupl = v-rescale",
    "tc-grps = System", "tau_t = 0.1", "ref_t = 300", "constraints = h-bonds")  # fmt: skip
_ZARR = ("import numpy as np, pandas as pd, xarray as xr",
    "t = pd.date_range('2000-01-01', periods=48)",
    "grid = np.arange(48 * 90 * 180, dtype='f4').reshape(48, 90, 180)",
    "data = xr.Dataset({'air': (('time', 'lat', 'lon'), grid)}, {'time': t})",
    "data.to_zarr('air.zarr', mode='w', zarr_format=2, consolidated=True, "
    "encoding={'air': {'chunks': (4, 30, 60)}})",
    "print(float(xr.open_zarr('air.zarr').air.mean()))")  # fmt: skip
_CSV = ("import numpy as np, pandas as pd",
    "table = pd.DataFrame(np.arange(400000.0).reshape(40000, 10))",
    "table.to_csv('table.csv')", "again = pd.read_csv('table.csv', index_col=0)",
    "[np.save(f'column{i}.npy', again.iloc[:, i]) for i in range(10)]")  # fmt: skip
OTHERS = {  # programs of others: what makes the input, the command
    "healthy": ("head -c 50000000 /dev/urandom >big", "dd if=big of=copy bs=1M status=none"),
    "tar": ("mkdir tree; for n in $(seq 60); do head -c 100000 /dev/urandom >tree/$n; done",
        "tar cf all.tar tree"),
    "gzip": ("head -c 12000000 /dev/urandom >big", "gzip -1 -k big"),
    "dd": ("true", "dd if=/dev/zero of=out bs=4k count=3000 status=none"),
    "split": ("seq 60000 >big", "split -l 200 -a 4 big part."),
    "ncks": ("PYTHON -c \"import netCDF4 as n; d = n.Dataset('in.nc', "
        "'w', format='NETCDF3_CLASSIC'); d.createDimension('t'); d.createDimension('x', 2000); "
        "v = [d.createVariable(f'v{i}', 'f4', ('t', 'x')) for i in range(20)]; "
        "[v[i].__setitem__(t, t + i) for t in range(20) for i in range(20)]; d.close()\"",
        "ncks -O in.nc out.nc"),
    "cdo": ("cdo -s -f nc -seltimestep,1/12 -for,1,12 x.nc; cdo -s -f nc -mul -enlarge,r360x180 "
        "x.nc -random,r360x180 in.nc", "cdo -s -O -f nc copy in.nc out.nc"),
    "sqlite3": ("seq 20000 | sed 's/.*/INSERT INTO t VALUES(&, \"some text of row &\");/' >rows; "
        "(echo 'CREATE TABLE t(a, b);BEGIN;'; cat rows; echo 'COMMIT;CREATE INDEX i ON t(b);') "
        ">load.sql", "sqlite3 all.db '.read load.sql'"),
    "lmp": ("printf '%s\\n' 'units lj' 'lattice fcc 0.8442' 'region b block 0 6 0 6 0 6' "
        "'create_box 1 b' 'create_atoms 1 box' 'mass 1 1.0' 'velocity all create 1.44 87287' "
        "'pair_style lj/cut 2.5' 'pair_coeff 1 1 1.0 1.0 2.5' 'fix 1 all nve' "
        "'dump d all atom 1 dump.txt' 'run 200' >in.lj", "lmp -in in.lj"),
    # -G: bytes that do not depend on the time; -C: each rank reads what another one wrote
    "ior": ("true", "MPIRUN ior -a POSIX -t 8k -b 1m -s 2 -w -r -C -k -G 17 -o ior.dat"),
    "ior-own": ("true", "MPIRUN ior -a POSIX -F -t 4k -b 2m -w -r -k -G 17 -o ior.dat"),
    "ior-mpiio": ("true", "MPIRUN ior -a MPIIO -t 8k -b 8k -s 128 -w -r -C -k -G 17 -o ior.dat"),
    "ior-large": ("true", "MPIRUN ior -a POSIX -F -t 1m -b 16m -w -r -k -G 17 -o ior.dat"),
    "mdtest": ("true", "MPIRUN mdtest -F -C -E -n 100 -w 2000 -e 2000 -d md"),
    "icoFoam": (f"cp -r {_CAVITY}/* . && sed -i 's/^writeInterval.*/writeInterval 5;/; "
        "s/^endTime .*/endTime 0.2;/' system/controlDict && blockMesh >log", "icoFoam"),
    "nccopy": ("PYTHON -c \"import netCDF4 as n; d = n.Dataset('in.nc', 'w'); "
        "d.createDimension('t'); d.createDimension('x', 20000); v = [d.createVariable(f'v{i}', "
        "'f4', ('t', 'x'), chunksizes=(1, 2000)) for i in range(5)]; [v[i].__setitem__(t, t + i) "
        "for t in range(20) for i in range(5)]; d.close()\"", "nccopy -k classic in.nc out.nc"),
    "h5repack": ("PYTHON -c \"import netCDF4 as n; d = n.Dataset('in.h5', 'w'); "
        "d.createDimension('x', 400000); v = [d.createVariable(f'v{i}', 'f4', ('x',), "
        "chunksizes=(2000,)) for i in range(5)]; [v[i].__setitem__(slice(None), i) "
        "for i in range(5)]; d.close()\"", "h5repack -f GZIP=1 in.h5 out.h5"),
    "sort": ("seq 400000 | rev | dd of=big bs=1M iflag=fullblock status=none", "sort -S 1M -T . -o out big"),
    "zip": ("mkdir tree; for n in $(seq 150); do head -c 20000 /dev/urandom >tree/$n; done",
        "zip -q -r all.zip tree"),
    "cp": ("mkdir tree; for n in $(seq 150); do head -c 20000 /dev/urandom >tree/$n; done",
        "cp -r tree copy"),
    "bzip2": ("seq 300000 >big", "bzip2 -k big"),
}  # fmt: skip
_SAM = ("BEGIN { srand(7); print \"@SQ\\tSN:c1\\tLN:1000000\"; for (i = 0; i < 40000; i++) "
    "{ s = \"\"; for (j = 0; j < 75; j++) s = s substr(\"ACGT\", int(rand() * 4) + 1, 1); "
    "printf \"r%d\\t0\\tc1\\t%d\\t60\\t75M\\t*\\t0\\t0\\t%s\\t*\\n\", "
    "i, int(rand() * 999000) + 1, s } }")  # fmt: skip
_FASTA = ("BEGIN { srand(3); for (i = 0; i < 1500; i++) { printf \">s%d\\n\", i; for (k = 0; "
    "k < 20; k++) { s = \"\"; for (j = 0; j < 60; j++) s = s substr(\"ACGT\", int(rand() * 4) + 1, "
    "1); print s } } }")  # fmt: skip
_SILICON = ("&control calculation='scf', prefix='si', outdir='.', disk_io='high',",
    "pseudo_dir='/usr/share/espresso/pseudo' /",
    "&system ibrav=2, celldm(1)=10.2, nat=2, ntyp=1, ecutwfc=16 /", "&electrons /",
    "ATOMIC_SPECIES", " Si 28.086 Si.pz-vbc.UPF", "ATOMIC_POSITIONS alat", " Si 0 0 0",
    " Si 0.25 0.25 0.25", "K_POINTS automatic", " 4 4 4 0 0 0")  # fmt: skip
_DASK = ("import dask.array as da",
    "x = da.arange(40 * 100 * 100, chunks=100000).reshape(40, 100, 100).rechunk((2, 25, 25))",
    "x.to_zarr('x.zarr', overwrite=True, zarr_format=2)",
    "print(float(da.from_zarr('x.zarr').mean().compute()))")  # fmt: skip
_H5PY = ("import h5py, numpy as np",
    "with h5py.File('t.h5', 'w') as f:",
    "    d = f.create_dataset('t', (0, 500), maxshape=(None, 500), chunks=(4, 500), "
    "compression='gzip')",
    "    for i in range(600):",
    "        d.resize(i + 1, axis=0)",
    "        d[i] = np.random.default_rng(i).random(500)",
    "        f.create_dataset(f'step{i}', data=np.arange(i))")  # fmt: skip
_FITS = ("import numpy as np", "from astropy.io import fits", "from astropy.table import Table",
    "r = np.random.default_rng(1)",
    "hdus = [fits.PrimaryHDU()] + [fits.ImageHDU(r.random((100, 100))) for _ in range(150)]",
    "fits.HDUList(hdus).writeto('all.fits', overwrite=True)",
    "[fits.PrimaryHDU(r.random((64, 64))).writeto(f'{i:03}.fits', overwrite=True) "
    "for i in range(100)]",
    "Table({'a': np.arange(20000), 'b': r.random(20000)}).write('t.csv', format='ascii.csv', "
    "overwrite=True)")  # fmt: skip
_R = ("set.seed(1); d <- as.data.frame(matrix(runif(200000), ncol = 10))",
    "write.csv(d, 'd.csv'); e <- read.csv('d.csv')",
    "for (i in 1:80) write.table(e[((i - 1) * 200 + 1):(i * 200), ], sprintf('p%03d.txt', i))",
    "saveRDS(e, 'e.rds', compress = FALSE)")  # fmt: skip
_PARQUET = ("import numpy as np, pyarrow as pa, pyarrow.dataset as ds",
    "n = 60000",
    "t = pa.table({'day': np.arange(n) % 120, 'x': np.arange(n) / 7})",
    "ds.write_dataset(t, 'parts', format='parquet', partitioning=['day'], "
    "existing_data_behavior='overwrite_or_ignore')",
    "print(ds.dataset('parts', partitioning=['day']).to_table().num_rows)")  # fmt: skip
# Programs that no estimate was fitted to: each was run once, after the model had been settled.
SECOND = {  # the second round
    "git": ("git init -q src && cd src && git config user.email a@b && git config user.name a && "
        "for c in $(seq 12); do for n in $(seq 20); do head -c 3000 /dev/urandom | base64 "
        ">f$c.$n; done; git add . && git commit -q -m $c; done", "git clone -q --no-local src dst"),
    "unzip": ("mkdir tree; for n in $(seq 200); do head -c 9000 /dev/urandom | base64 >tree/$n; "
        "done; zip -q -r all.zip tree; rm -r tree", "unzip -q all.zip"),
    "cpio": ("mkdir tree; for n in $(seq 100); do head -c 20000 /dev/urandom >tree/$n; done; "
        "find tree -type f | sort >list", "sh -c 'cpio -o --quiet -O all.cpio <list'"),
    "xz": ("seq 900000 >big", "xz -0 -k -T1 big"),
    "samtools": (f"awk '{_SAM}' >in.sam", "samtools sort -m 2M -o out.bam in.sam"),
    "makeblastdb": (f"awk '{_FASTA}' >db.fa", "makeblastdb -in db.fa -dbtype nucl -out db"),
    "R": (f"printf '%s\\n' {shlex.join(_R)} >script.R", "Rscript --vanilla script.R"),
    "gm": ("gm convert -size 640x640 plasma: in.ppm", "gm convert in.ppm -crop 40x40 "
        "+adjoin tile%03d.ppm"),
    "ffmpeg": ("true", "ffmpeg -v error -f lavfi -i testsrc=duration=8:size=160x120:rate=25 -y "
        "f%04d.png"),
    "ffmpeg-nut": ("true", "ffmpeg -v error -f lavfi -i testsrc=duration=8:size=160x120:rate=25 "
        "-c:v rawvideo -y all.nut"),
    "pw.x": (f"printf '%s\\n' {shlex.join(_SILICON)} >si.in", "MPIRUN pw.x -in si.in"),
    "h5py": (f"printf '%s\\n' {shlex.join(_H5PY)} >script.py", "PYTHON script.py"),
    "astropy": (f"printf '%s\\n' {shlex.join(_FITS)} >script.py", "PYTHON script.py"),
    "dask": (f"printf '%s\\n' {shlex.join(_DASK)} >script.py", "PYTHON script.py"),
    "pyarrow": (f"printf '%s\\n' {shlex.join(_PARQUET)} >script.py", "PYTHON script.py"),
    "grib_copy": ("cdo -s -f grb -seltimestep,1/60 -for,1,60 x.grb; cdo -s -f grb -mul -enlarge,"
        "r180x90 x.grb -random,r180x90 in.grb", "grib_copy in.grb out.grb"),
    "fio": ("true", "fio --name=j --rw=write --bs=4k --size=6m --ioengine=psync --filename=f "
        "--randseed=5 --output=log"),
}  # fmt: skip
HELD_OUT = {  # the first round
    "hacc": ("true", "MPIRUN hacc_io 20000 hacc.dat"),
    "hacc-own": ("true", "MPIRUN hacc_io_fpp 20000 hacc.dat"),
    "h5bench": ("printf '%s\\n' MEM_PATTERN=CONTIG FILE_PATTERN=INTERLEAVED TIMESTEPS=3 "
        "DELAYED_CLOSE_TIMESTEPS=0 COLLECTIVE_DATA=NO COLLECTIVE_METADATA=NO STRIDE_SIZE=1 "
        "'EMULATED_COMPUTE_TIME_PER_TIMESTEP=1 s' NUM_DIMS=1 BLOCK_SIZE=64 DIM_1=8192 DIM_2=1 "
        "DIM_3=1 >h5bench.cfg", "MPIRUN h5bench_write h5bench.cfg out.h5"),
    "gmx": (f"printf '%s\\n' {shlex.join(_MDP)} >grompp.mdp; exec >log 2>&1; "
        "gmx solvate -cs spc216 -box 2.3 2.3 2.3 -o box.gro; n=$(($(sed -n 2p box.gro) / 3)); "
        "printf '%s\\n' '#include \"oplsaa.ff/forcefield.itp\"' '#include \"oplsaa.ff/spc.itp\"' "
        "'[ system ]' water '[ molecules ]' \"SOL $n\" >topol.top; gmx grompp -f grompp.mdp "
        "-c box.gro -p topol.top -o topol.tpr -maxwarn 5",
        "gmx -quiet mdrun -s topol.tpr -nt 1 -reprod"),
    "gdalwarp": ("gdal_create -q -of GTiff -outsize 2000 1500 -bands 3 -burn 7 -a_srs EPSG:4326 "
        "-a_ullr 5 56 15 47 in.tif", "gdalwarp -q -overwrite -t_srs EPSG:3857 in.tif out.tif"),
    "ncrcat": ("PYTHON -c \"import netCDF4 as n; [(d := n.Dataset(f'in{k:02}.nc', 'w', "
        "format='NETCDF3_64BIT_OFFSET'), d.createDimension('time'), d.createDimension('x', 4000), "
        "[d.createVariable(f'v{i}', 'f4', ('time', 'x')).__setitem__(slice(0, 2), i + k) for i in "
        "range(8)], d.close()) for k in range(24)]\"", "sh -c 'ncrcat -h -O in*.nc out.nc'"),
    "rsync": ("mkdir tree; for n in $(seq 120); do head -c 20000 /dev/urandom >tree/$n; done",
        "rsync -a tree/ copy/"),
    "xarray": (f"printf '%s\\n' {shlex.join(_ZARR)} >script.py", "PYTHON script.py"),
    "pandas": (f"printf '%s\\n' {shlex.join(_CSV)} >script.py", "PYTHON script.py"),
}  # fmt: skip
# Held-out programs, by round: those that no estimate had been fitted to when they ran first.
ROUNDS = {"first": HELD_OUT, "second": SECOND, "third": THIRD, "fourth": FOURTH,
    "fifth": FIFTH}  # fmt: skip
