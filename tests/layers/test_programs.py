# SPDX-License-Identifier: Apache-2.0
"""Programs as they are, through each layer: what they print, the files they leave and what is read
back are those of a plain run."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

FORTRAN = """
program through
  implicit none
  integer :: i, size, last
  real(8) :: x(500), y(500), z
  character(40) :: line
  x = [(real(i, 8) / 7, i = 1, 500)]
  open (21, file='out_sequential', form='unformatted')
  do i = 1, 60
    write (21) i, x
  end do
  backspace (21)
  read (21) last, y
  rewind (21)
  read (21) i
  write (*, *) i, last, y(500)
  close (21)
  open (22, file='out_direct', form='unformatted', access='direct', recl=4000)
  do i = 40, 1, -1
    write (22, rec=i) x * i
  end do
  read (22, rec=17) y
  inquire (22, size=size)
  write (*, *) y(3), size
  close (22)
  open (23, file='out_stream', form='unformatted', access='stream')
  write (23) x
  write (23, pos=801) -1d0, -2d0
  read (23, pos=793) z, y(1:3)
  inquire (23, pos=i, size=size)
  write (*, *) z, y(1:3), i, size
  close (23)
  open (24, file='out_text')
  do i = 1, 3000
    write (24, '(i8, f16.4)') i, x(mod(i, 500) + 1)
  end do
  flush (24)
  inquire (file='out_text', size=size)
  rewind (24)
  do i = 1, 1234
    read (24, '(a)') line
  end do
  endfile (24)
  close (24)
  write (*, '(a, i0)') line, size
end program
"""

CXX = r"""
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
int main() {
  {
    std::ofstream text("out_text"), binary("out_binary", std::ios::binary);
    for (int i = 0; i < 5000; ++i) {
      text << "line " << i << ' ' << i / 3.0 << '\n';
      binary.write(reinterpret_cast<const char*>(&i), sizeof i);
    }
    text.seekp(100);
    text << "[here]";
  }
  std::ifstream text("out_text");
  std::string line, word;
  long lines = 0, bytes = 0;
  while (std::getline(text, line)) ++lines, bytes += static_cast<long>(line.size());
  text.clear();
  text.seekg(95);
  text >> word;
  std::cout << lines << ' ' << bytes << ' ' << word << ' ' << text.tellg() << ' ' << text.rdbuf()->in_avail() << '\n';
  std::fstream both("out_binary", std::ios::binary | std::ios::in | std::ios::out);
  for (int at = 4999; at >= 0; at -= 611) {
    int value = -1;
    both.seekg(at * 4);
    both.read(reinterpret_cast<char*>(&value), 4);
    both.seekp(at * 4);
    value = -value;
    both.write(reinterpret_cast<const char*>(&value), 4);
    std::cout << value << ' ';
  }
  both.close();
  std::ofstream("out_text", std::ios::app) << "appended\n";
  std::ostringstream all;
  all << std::ifstream("out_text").rdbuf();
  std::cout << all.str().size() << '\n';
}
"""

PYTHON = """
import os, json
with open("out_text", "w") as f:
    for i in range(4000):
        f.write(f"line {i} {i / 7:.4f}\\n")
    f.flush()
    print(f.tell(), os.path.getsize("out_text"))
with open("out_text") as f:
    print(sum(len(line) for line in f))
with open("out_binary", "wb+", buffering=0) as f:
    for i in range(300):
        f.write(bytes([i % 251]) * 97)
    f.seek(1000); f.write(b"middle"); f.seek(-10, 2)
    print(f.read(), f.truncate(20000), os.fstat(f.fileno()).st_size)
fd = os.open("out_binary", os.O_RDWR | os.O_APPEND)
os.write(fd, b"end"); print(os.pread(fd, 5, 998), os.lseek(fd, 0, 1), os.path.getsize("out_binary")); os.fsync(fd); os.close(fd)
json.dump({"k": list(range(2000))}, open("out_json", "w"))
print(len(json.load(open("out_json"))["k"]))
os.rename("out_json", "out_renamed")
"""

# Reads every output through the same layers.
BACK = (
    "import sys, zlib, glob\nfor f in sorted(glob.glob('out_*')):\n    d = open(f, 'rb').read(); "
    "print(f, len(d), zlib.crc32(d))\n"
)

CDL = """netcdf input {
dimensions: time = UNLIMITED ; lat = 45 ; lon = 90 ;
variables:
  double time(time) ; time:units = "hours since 2000-01-01" ; time:standard_name = "time" ;
  float lat(lat) ; lat:units = "degrees_north" ; lat:standard_name = "latitude" ;
  float lon(lon) ; lon:units = "degrees_east" ; lon:standard_name = "longitude" ;
  float t(time, lat, lon) ; t:units = "K" ;
data: time = 0, 6, 12 ; lat = %s ; lon = %s ; t = %s ;
}
"""


def netcdf(directory: Path, execute) -> None:
    """input.nc, of netCDF-3 and, for the library's other half, input4.nc."""
    lat = ", ".join(str(i - 22) for i in range(45))
    lon = ", ".join(str(4 * i) for i in range(90))
    t = ", ".join(str(200 + i % 97) for i in range(3 * 45 * 90))
    (directory / "input.cdl").write_text(CDL % (lat, lon, t))
    execute(["ncgen", "-o", "input.nc", "input.cdl"], cwd=directory).ok()
    execute(["ncgen", "-4", "-o", "input4.nc", "input.cdl"], cwd=directory).ok()


NCKS = (
    "ncks -h -O -d lat,3,30 input.nc out_part.nc && ncks -h -O -7 -v t input4.nc out_four.nc && "
    "ncks -h -s '%.2f ' -H -C -v t -d time,1 -d lat,5 out_part.nc"
)
CDO = (
    "cdo -s --no_history -f nc timmean input.nc out_mean.nc && cdo -s --no_history -f nc4 addc,1 "
    "input4.nc out_added.nc && "
    "cdo -s --no_history infon out_mean.nc"
)


@dataclass(frozen=True)
class Stack:
    text: str
    transforms: bool = False  # what lies on disk is another form
    short: bool = False  # for programs that ask again


STACKS = {
    "event": Stack("event|system"),
    "bufa": Stack("event|bufa:65536:4|event|system"),
    "bufa-ffio": Stack("bufa:1048576:2|system"),
    "cos": Stack("cos:196608|system", transforms=True),
    "global": Stack("global:65536:4|system"),
    "gather": Stack("gather:1048576:16|system"),
    "forward": Stack("forward:65536:16:always=1|system"),
    "keep": Stack("keep:always=1|system"),
    "stripe": Stack("stripe:dirs={directory}/a,{directory}/b:unit=65536|system", transforms=True),
    "delay": Stack("delay:op=any:us=20:jitter_us=0:rate=1:seed=1|system"),
    "error": Stack("error:op=write:errno=ENOSPC:rate=0:seed=1|system"),
    "short": Stack("short:op=read:rate=0.5:seed=1:bytes=1000|system", short=True),
}
PROGRAMS = {"gfortran": [], "cxx": [], "python": [], "ncks": ["ncks", "ncgen"],
    "cdo": ["cdo", "ncgen"]}
ASKS_AGAIN = ("cxx", "python")


@pytest.fixture(scope="module")
def commands(fc, cxx, tmp_path_factory):
    script = tmp_path_factory.mktemp("script") / "through.py"
    script.write_text(PYTHON)
    return {
        "gfortran": [fc(FORTRAN, name="through")],
        "cxx": [cxx(CXX, name="through")],
        "python": [sys.executable, "-I", script],
        "ncks": ["bash", "--norc", "-c", NCKS],
        "cdo": ["bash", "--norc", "-c", CDO],
    }


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.glob("out_*"))}


@pytest.fixture(scope="module")
def run_in(commands, execute, preload, tmp_path_factory):
    """``run_in(program, stack or None)``: (what it printed, what is read back, the files)."""
    kept = {}

    def run(program: str, name: str | None):
        if name is None and program in kept:
            return kept[program]
        work = tmp_path_factory.mktemp(f"{program}-{name}")
        (work / "a").mkdir()
        (work / "b").mkdir()
        if "ncgen" in PROGRAMS[program]:
            netcdf(work, execute)
        env = {}
        if name is not None:
            stack = STACKS[name]
            # Inputs are plain files: a layer that stores another form did not write them.
            pattern = "out_*" if stack.transforms else "*"
            rule = (
                f"rule source=t:1 name={pattern} dir={work} "
                f"stack={stack.text.format(directory=work)}\n"
            )
            env = {"LD_PRELOAD": str(preload), "WEIR_RULES": "weir-rules 1\n" + rule}
            if name in ("event", "bufa"):
                trace = work / "trace"
                trace.mkdir()
                env |= {"WEIR_TRACE_DIR": str(trace), "WEIR_LEVEL": "trace"}
        done = execute(commands[program], env=env, cwd=work, timeout=120).ok()
        assert done.stderr == "", done.stderr
        back = execute([sys.executable, "-I", "-c", BACK], env=env, cwd=work, timeout=120).ok()
        result = done.stdout, back.stdout, contents(work)
        if name is None:
            kept[program] = result
        return result

    return run


CASES = [(p, s) for p in PROGRAMS for s, stack in STACKS.items() if not stack.short
    or p in ASKS_AGAIN]


@pytest.mark.parametrize(("program", "stack"), CASES)
def test_a_program_does_the_same_through_a_layer(program, stack, run_in):
    missing = [command for command in PROGRAMS[program] if shutil.which(command) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    printed, back, files = run_in(program, None)
    printed_too, back_too, files_too = run_in(program, stack)
    assert printed_too == printed
    assert back_too == back
    assert sorted(files_too) == sorted(files) and len(files) >= 2
    if STACKS[stack].transforms:
        assert files_too != files
    else:
        assert files_too == files
