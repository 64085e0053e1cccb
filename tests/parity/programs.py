# SPDX-License-Identifier: Apache-2.0
"""The programs of the parity tests: each a function that makes its inputs and returns (command,
environment)."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

FORTRAN = """
program parity
  implicit none
  integer :: i, u
  real(8) :: x(1000), y(1000)
  x = [(real(i, 8), i = 1, 1000)]
  open (newunit=u, file='sequential.dat', form='unformatted', access='sequential')
  do i = 1, 300
    write (u) x
  end do
  rewind (u)
  do i = 1, 300
    read (u) y
  end do
  close (u)
  open (unit=61, file='direct.dat', form='unformatted', access='direct', recl=8000)
  do i = 50, 1, -1
    write (61, rec=i) x
  end do
  do i = 1, 50, 3
    read (61, rec=i) y
  end do
  close (61)
  open (unit=62, file='stream.dat', form='unformatted', access='stream')
  write (62) x, 'text', 42
  read (62, pos=9) y(1:10)
  close (62)
  open (unit=63, file='formatted.txt')
  do i = 1, 2000
    write (63, '(i8, f12.3)') i, x(1)
  end do
  close (63)
  write (77, *) 'implicit'
  if (any(y(1:10) /= x(2:11))) error stop 'wrong data'
end program
"""

PYTHON = """
import json, os, pathlib, shutil, subprocess, tempfile
text = "line of text\\n" * 5000
pathlib.Path("a.txt").write_text(text)
assert pathlib.Path("a.txt").read_text() == text
with open("b.bin", "wb", buffering=0) as f:
    for i in range(200):
        f.write(bytes(100))
    f.seek(50)
    f.truncate(15000)
fd = os.open("b.bin", os.O_RDWR)
os.pread(fd, 100, 700), os.pwrite(fd, b"x" * 33, 5), os.pwritev(fd, [b"a", b"bc"], 9), os.fsync(fd), os.close(fd)
shutil.copyfile("b.bin", "c.bin")
json.dump({"k": list(range(3000))}, open("d.json", "w"))
with tempfile.NamedTemporaryFile(dir=".") as t:
    t.write(b"temporary")
os.rename("d.json", "e.json")
subprocess.run(["cat", "a.txt"], stdout=open("f.txt", "w"), check=True)
os.unlink("c.bin")
"""

BASH = """
set -e
seq 1 20000 > numbers
sort -r numbers | head -100 > sorted
cp numbers copy
cat copy sorted >> numbers
for i in 1 2 3 4 5; do echo "$i" > "small.$i"; done
( head -n 2 numbers; tail -n 3 copy ) > counts &
wait
dd if=numbers of=blocks bs=512 count=40 2> /dev/null
gzip -c numbers > numbers.gz
gunzip -c numbers.gz | cmp - numbers
tar cf all.tar small.*
mkdir out && tar xf all.tar -C out
mv out/small.1 out/renamed && rm -r out
"""


def fortran(directory: Path, fc) -> tuple[list, dict]:
    return [fc(FORTRAN, name="parity")], {}


def python(directory: Path, fc) -> tuple[list, dict]:
    (directory / "script.py").write_text(PYTHON)
    return [sys.executable, "-I", directory / "script.py"], {}


def bash(directory: Path, fc) -> tuple[list, dict]:
    return [shutil.which("bash"), "--norc", "-c", BASH], {"PATH": "/usr/bin:/bin"}


CDL = """netcdf input {
dimensions: time = UNLIMITED ; lat = 90 ; lon = 180 ;
variables:
  double time(time) ; time:units = "hours since 2000-01-01" ; time:standard_name = "time" ;
  float lat(lat) ; lat:units = "degrees_north" ;
  float lon(lon) ; lon:units = "degrees_east" ;
  float t(time, lat, lon) ; t:units = "K" ;
data: time = 0, 6, 12 ; %s
}
"""


def netcdf(directory: Path, fc) -> tuple[list, dict]:
    """CDO where it is there, else NCO, on a netCDF-3 file that ncgen makes."""
    axis = " lat = %s ;\n lon = %s ;\n" % tuple(", ".join(str(i - n // 2) for i in range(n))
        for n in (90, 180))
    (directory / "input.cdl").write_text(CDL % axis)
    cdo = shutil.which("cdo")
    tool = f"{cdo} -f nc -timmean" if cdo else f"{shutil.which('ncks')} -O -v t"
    return [shutil.which("bash"), "--norc", "-c",
        f"ncgen -o input.nc input.cdl && {tool} input.nc output.nc"], {"PATH": "/usr/bin:/bin"}


PROGRAMS = {"gfortran": (fortran, ["gfortran"]), "python": (python, []),
    "bash": (bash, ["gzip", "tar"]), "netcdf": (netcdf, ["ncgen"])}
