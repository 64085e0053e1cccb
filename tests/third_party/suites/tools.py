# SPDX-License-Identifier: Apache-2.0
"""tar, rsync, cp, git, gcc, sort, zip and their like on files made from a fixed seed."""

from __future__ import annotations

from harness.model import HERE, Step, Suite
from harness.run import debian_version

_GIT = (
    "export GIT_AUTHOR_DATE=2024-01-01T00:00Z GIT_COMMITTER_DATE=2024-01-01T00:00Z HOME=$PWD;"
    " git config --global user.name A; git config --global user.email a@b;"
    " git config --global init.defaultBranch main; git config --global gc.auto 0;"
)
_SCRIPTS = {
    "tar": "tar --sort=name --owner=0 --group=0 -cf a.tar in && mkdir tar && tar -xf a.tar -C tar"
    " && tar -df a.tar && tar -tvf a.tar && tar --append -f a.tar in/sparse && tar -tf a.tar | "
    "tail -1",
    "tar-gz": "tar --sort=name --mtime=@0 -czf - in | tar -xzf - --one-top-level=targz && diff -r "
              "in targz/in",
    "rsync": "rsync -a in/ rs/ && printf x >> in/d1/f7 && rsync -a --inplace --no-whole-file in/ "
             "rs/"
    " && diff -r in rs && rsync -a --delete --exclude 'f1*' --delete-excluded in/ rs/ && ls -R rs",
    "cp-sparse": "for how in always never auto; do cp --sparse=$how in/sparse sparse.$how;"
    " cmp in/sparse sparse.$how; done; stat -c '%n %s' sparse.*; cp -a in copy && diff -r in copy;"
    " cp --reflink=auto in/big big.copy; cp -l in/big big.link; stat -c %h big.link",
    "git": _GIT + " git init -q g && cp -r in/* g/ && cd g && chmod +x d2/f3 && git add . && git "
                  "commit -qm 1"
    " && printf more >> d1/f1 && git mv d2/f2 d2/moved && git commit -qam 2 && git rev-parse HEAD"
    " && git gc -q && git fsck --full && git clone -q . ../g2 && cd ../g2 && git status --short"
    " && git checkout -q HEAD~1 && git stash list && git log --stat | cat && git ls-files -s d2 | "
    "head",
    "gcc": "gcc -O1 -g0 -frandom-seed=1 -save-temps -c in/p.c -o p.o && gcc -O1 -flto -o p in/p.c "
           "&& ./p"
    " && ar rcsD libp.a p.o && gcc -shared -fPIC -o p.so in/p.c && nm p.o && strip -o p.s p && "
    "./p.s",
    "sort": "sort -S 1M --parallel=1 -T . in/lines > sorted && sort -c sorted && sort -S 1M -T . "
            "-m sorted sorted"
    " | uniq -c | sha256sum; sort -o in/lines2 in/lines2 && split -l 5000 "
    "--additional-suffix=.part sorted"
    " && cat x*.part | cmp - sorted && shuf --random-source=in/big sorted | sort | cmp - sorted && "
    "join sorted sorted | wc",
    "zip": "zip -qrX a.zip in && unzip -tq a.zip && unzip -q a.zip -d uz && diff -r in uz/in && "
           "zip -qd a.zip 'in/d1/*'"
    " && unzip -l a.zip | tail -1 && gzip -nc in/big > b.gz && gunzip -c b.gz | cmp - in/big && xz "
    "-kT2 -c in/big > b.xz"
    " && xz -dc b.xz | cmp - in/big && zip -qu a.zip in/d1/f1 && unzip -p a.zip in/d1/f1 | "
    "sha256sum",
    "dd": "dd if=in/big of=d bs=777 status=none && dd if=in/big of=d bs=4k conv=notrunc seek=3 "
          "skip=2 count=9 status=none"
    " && dd if=in/big of=d bs=1000 oflag=append conv=notrunc,fsync count=4 status=none && truncate "
    "-s 5000000 d"
    " && fallocate -l 6000000 d && fallocate -p -o 4096 -l 8192 d && cmp d d && tail -c 100 d | od "
    "-c | head -3"
    " && tac in/lines | tac | cmp - in/lines && tee t1 t2 < in/big > t3 && cmp t1 t3 && cmp t2 "
    "in/big",
    "sed": "sed -i 's/1/one/g' in/d3/text && head -5 in/d3/text && awk '{n += length($0)} END "
           "{print n}' in/d3/text"
    " && grep -rc one in/d3 | sort && perl -pi -e 's/one/1/g' in/d3/text && install -m 600 in/big "
    "inst"
    " && mv inst moved && shred -n 1 -u moved && ls moved in/d3; true",
}


def _steps(_place):
    yield Step("inputs", ("/usr/bin/python3", str(HERE / "programs" / "inputs.py"), "in"),
        prepare=True)
    for name, script in _SCRIPTS.items():
        yield Step(name, ("bash", "-ec", script), compare_output=True)


SUITE = Suite(
    name="tools",
    title="tar, rsync, cp, git, gcc, sort, zip, dd, sed and what is used with them",
    steps=_steps,
    version=lambda _: ", ".join(map(debian_version, ("coreutils", "tar", "rsync", "git", "gcc",
        "zip"))),
    packages=("coreutils", "tar", "rsync", "git", "gcc", "zip", "unzip", "xz-utils", "perl"),
    needs=("rsync", "git", "gcc", "zip", "unzip"),
    outputs=(
        *("a.tar", "tar/**/*", "targz/**/*", "rs/**/*", "sparse.*", "copy/**/*", "big.*", "g/d*/*",
            "g2/d*/*"),
        *("p.*", "p", "libp.a", "sorted", "x*.part", "uz/**/*", "d", "t1", "t2", "t3", "in/**/*"),
    ),
)
