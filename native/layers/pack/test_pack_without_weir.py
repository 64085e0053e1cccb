# SPDX-License-Identifier: Apache-2.0
"""Programs without weir make files in a directory whose names the process has read before."""

from __future__ import annotations

import pytest

CASES = {
    "a child that has been waited for": """
import subprocess
open("one.dat", "w").write("1")
for number in range(3):
    names = [f"{letter}{number}.dat" for letter in "abcd"]
    subprocess.run(["env", "-i", "sh", "-c", "for f; do echo real > $f; done", "sh", *names],
        check=True)
    try: os.open(names[0], os.O_WRONLY | os.O_CREAT | os.O_EXCL); print("made")
    except OSError as error: print(error.strerror)
    open(names[1], "w").write("new"); open(names[2], "a").write("more")
    os.rename("one.dat", names[3]); os.rename(names[3], "one.dat")
    print([open(name).read() for name in names[:3]], os.path.exists(names[3]))
    os.unlink(names[1]); print(os.path.exists(names[1]), len(os.listdir()) - 2 * number)""",
    "system()": """
open("one.dat", "w").write("1"); os.system("env -i sh -c 'echo real > b.dat'")
open("b.dat", "a").write("more"); print(open("b.dat").read())""",
    "one that nobody has waited for": """
import subprocess, time
open("one.dat", "w").write("1"); pipe = subprocess.PIPE
other = subprocess.Popen(["env", "-i", "sh", "-c", "read x; echo real > b.dat; echo; read x"],
    stdin=pipe, stdout=pipe)
other.stdin.write(b"go\\n"); other.stdin.flush(); other.stdout.readline()
time.sleep(1.1)  # the directory is looked at once a second
open("b.dat", "a").write("more"); print(open("b.dat").read())
other.communicate()""",
}


@pytest.mark.parametrize("case", CASES)
def test_a_file_made_without_weir_is_not_new(case, as_without_layer):
    as_without_layer(CASES[case])
