# SPDX-License-Identifier: Apache-2.0
"""The fourth round of held-out cases of bench/estimates.py: what makes the input, the command."""

from __future__ import annotations

_TREE = ("mkdir tree; for n in $(seq {count}); do head -c {bytes} /dev/urandom | base64 "
    ">tree/$n.txt; done")  # fmt: skip
_SOURCES = ("mkdir src; for n in $(seq 150); do for k in $(seq 60); do printf "
    "'int f%d_%d(int a)\\n{\\n  return a + %d;\\n}\\n\\n' $n $k $k; done >src/$n.c; "
    "done")  # fmt: skip
FOURTH = {
    "csplit": ("seq 20000 >big", "csplit -s -n 4 -f part. big 100 {198}"),
    "ctags": (_SOURCES, "ctags -R -f tags src"),
    "ar": (_TREE.format(count=150, bytes=15000), "sh -c 'ar rcD all.a tree/*.txt'"),
    "dpkg-deb": (f"mkdir -p p/DEBIAN; printf '%s\\n' 'Package: p' 'Version: 1' 'Architecture: all' "
        f"'Maintainer: me' 'Description: p' >p/DEBIAN/control; cd p; "
        f"{_TREE.format(count=120, bytes=15000)}", "dpkg-deb -Zgzip -z1 -b p p.deb"),
    "lz4": ("seq 1500000 >big", "lz4 -q -1 -k big big.lz4"),
    "jq": ("seq 150000 | sed 's/.*/{\"a\": &, \"b\": [&, \"text of &\"]}/' >in.json",
        "sh -c 'jq -c .b in.json >out.json'"),
    "openssl": ("head -c 12000000 /dev/urandom >big",
        "openssl enc -aes-256-ctr -K 00112233445566778899aabbccddeeff00112233445566778899aabbccdd"
        "eeff -iv 00112233445566778899aabbccddeeff -in big -out big.enc"),
    "perl": ("seq 200000 >big", "perl -i.bak -pe 's/7/seven/g' big"),
    "pod2man": ("mkdir pod; for n in $(seq 100); do printf '=head1 N%d\\n\\nText B<of> %d.\\n\\n"
        "=cut\\n' $n $n >pod/$n.pod; done",
        "sh -c 'for n in $(seq 20); do pod2man -d 1 -r 1 pod/$n.pod pod/$n.1; done'"),
    "compileall": ("mkdir src; for n in $(seq 120); do printf 'def f%d(a):\\n    return a\\n' $n "
        ">src/m$n.py; done", "PYTHON -m compileall -q --invalidation-mode unchecked-hash src"),
    "ncdump": ("PYTHON -c \"import netCDF4 as n; d = n.Dataset('in.nc', 'w'); "
        "d.createDimension('x', 60000); v = [d.createVariable(f'v{i}', 'f4', ('x',), "
        "chunksizes=(2000,)) for i in range(4)]; [v[i].__setitem__(slice(None), i) for i in "
        "range(4)]; d.close()\"", "sh -c 'ncdump in.nc >out.cdl'"),
    "gs": ("printf '%s\\n' '%!PS' '/Times-Roman findfont 9 scalefont setfont' '1 1 60 { /p exch def"
        " 1 1 60 { /k exch def 40 k 12 mul moveto (page and line of some text) show p 9 string cvs"
        " show k 9 string cvs show } for showpage } for' >in.ps",
        "gs -q -dBATCH -dNOPAUSE -sDEVICE=pgmraw -r40 -sOutputFile=page%03d.pgm in.ps"),
}  # fmt: skip
