# SPDX-License-Identifier: Apache-2.0
"""Parallel applications that Debian packages, with their example inputs: LAMMPS, Quantum ESPRESSO,
OpenFOAM."""

from __future__ import annotations

from harness.model import Step, Suite
from harness.run import debian_version

_MPIRUN = ("mpirun.openmpi", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "-n", "2")
_LAMMPS = "/usr/share/doc/lammps-examples/examples"
_CAVITY = "/usr/share/doc/openfoam-examples/examples/incompressible/icoFoam/cavity/cavity"
_PSEUDO = "/usr/share/espresso/pseudo"
_SILICON = f"""&control
 calculation='scf', prefix='si', pseudo_dir='{_PSEUDO}', outdir='out', disk_io='high'
/
&system
 ibrav=2, celldm(1)=10.2, nat=2, ntyp=1, ecutwfc=12
/
&electrons
/
ATOMIC_SPECIES
 Si 28.086 Si.pz-vbc.UPF
ATOMIC_POSITIONS
 Si 0 0 0
 Si 0.25 0.25 0.25
K_POINTS automatic
 2 2 2 0 0 0
"""
_PARTS = (
    "FoamFile{version 2.0;format ascii;class dictionary;object decomposeParDict;}\n"
    "numberOfSubdomains 2;\nmethod simple;\ncoeffs{n (2 1 1);}\n"
)


def _shell(script: str) -> tuple[str, ...]:
    return ("bash", "-ec", script)


def _lammps(_place):
    more = (
        "dump d all custom 50 melt.dump id x y z\\ndump_modify d sort id\\nrun 100\\n"
        "write_restart melt.restart\\nwrite_data melt.data\\n"
    )
    script = f"cp {_LAMMPS}/melt/in.melt melt.in; printf '{more}' >> melt.in"
    yield Step("inputs", _shell(script), prepare=True)
    yield Step("melt", (*_MPIRUN, "lmp", "-in", "melt.in", "-log", "melt.log"), time_limit_s=180)
    read = "printf 'read_restart melt.restart\\nrun 20\\nwrite_data again.data\\n' > again.in;"
    yield Step("restart", _shell(read + " ".join(_MPIRUN) + " lmp -in again.in -log again.log"),
        time_limit_s=180)


def _espresso(_place):
    yield Step("inputs",
        _shell(f"cat > si.in <<'END'\n{_SILICON}END\nsed s/scf/nscf/ si.in > nscf.in"),
        prepare=True)
    yield Step("scf", (*_MPIRUN, "pw.x", "-in", "si.in"), time_limit_s=180)
    yield Step("nscf", (*_MPIRUN, "pw.x", "-in", "nscf.in"), time_limit_s=180)


def _openfoam(_place):
    environment = {"WM_PROJECT_DIR": "/usr/share/openfoam"}
    shorter = "sed -i 's/endTime .*0.5;/endTime 0.1;/' system/controlDict"
    prepare = (
        f"cp -r {_CAVITY}/* . && {shorter} && cat > system/decomposeParDict <<'END'\n{_PARTS}END\n"
    )
    yield Step("inputs", _shell(prepare), prepare=True)
    for handler in ("uncollated", "collated", "masterUncollated"):
        options = ("-fileHandler", handler)
        # with weir: what a layer has of these files is not at its place yet
        yield Step(f"{handler} clean", _shell("rm -rf proc* 0.*; mkdir -p kept"))
        parallel = (*_MPIRUN, "icoFoam", "-parallel", *options)
        for command in (("blockMesh",), ("decomposePar", "-force", *options), parallel,
                ("reconstructPar", *options)):
            name = next(c for c in command if c.endswith(("Mesh", "Par", "Foam")))
            yield Step(f"{handler} {name}", command, env=environment, time_limit_s=180)
        yield Step(f"{handler} keep", _shell(f"cp -r 0.1 kept/{handler}"))


SUITES = [
    Suite(
        name="lammps",
        title="LAMMPS, its example melt, with dump, restart and data files, 2 ranks",
        steps=_lammps,
        version=lambda _: debian_version("lammps"),
        packages=("lammps", "lammps-examples", "openmpi-bin"),
        needs=("lmp", f"{_LAMMPS}/melt"),
        outputs=("*.dump", "*.data", "*.restart"),
    ),
    Suite(
        name="espresso",
        title="Quantum ESPRESSO pw.x: silicon, self-consistent and after it from its files, 2 "
              "ranks",
        steps=_espresso,
        version=lambda _: debian_version("quantum-espresso"),
        packages=("quantum-espresso", "quantum-espresso-data", "openmpi-bin"),
        needs=("pw.x", f"{_PSEUDO}/Si.pz-vbc.UPF"),
        outputs=("out/*", "out/si.save/*"),
    ),
    Suite(
        name="openfoam",
        title="OpenFOAM icoFoam: its cavity, decomposed and put together, three file handlers, 2 "
              "ranks",
        steps=_openfoam,
        version=lambda _: debian_version("openfoam"),
        packages=("openfoam", "openfoam-examples", "openmpi-bin"),
        needs=("icoFoam", _CAVITY),
        outputs=("kept/**/*", "constant/polyMesh/*"),
    ),
]
