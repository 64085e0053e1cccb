# SPDX-License-Identifier: Apache-2.0
"""Unit, access and form of Fortran's openings reach the rules: an `error` layer refuses exactly the
openings that its rule names."""

from __future__ import annotations

import pytest

PROGRAM = """
program openings
  implicit none
  integer :: u, e
  call opened('s61', 61, 'sequential', 'unformatted')
  call opened('f61', 61, 'sequential', 'formatted')
  call opened('d62', 62, 'direct', 'unformatted')
  call opened('e62', 62, 'DIRECT  ', 'Formatted')
  call opened('t63', 63, 'stream', 'unformatted')
  open (64, file='x64', iostat=e)
  call say('default64', e)
  open (65, file='x65', access='direct', recl=8, iostat=e)
  call say('direct65', e)
  open (newunit=u, file='x', form='unformatted', iostat=e)
  call say('newunit', e)
  write (71, *, iostat=e) 'list'
  call say('implicit71', e)
  write (72, iostat=e) 1
  call say('implicit72', e)
  write (*, '(a)') 'done'
contains
  subroutine opened(name, unit, access, form)
    character(*), intent(in) :: name, access, form
    integer, intent(in) :: unit
    if (access == 'sequential' .or. access == 'stream') then
      open (unit, file=name, access=access, form=form, iostat=e)
    else
      open (unit, file=name, access=access, form=form, recl=8, iostat=e)
    end if
    call say(name, e)
  end subroutine
  subroutine say(name, e)
    character(*), intent(in) :: name
    integer, intent(in) :: e
    if (e /= 0) write (*, '(2a)') 'refused ', name  ! iostat is not always the errno: libgfortran loads its locale in between
    if (e == 0 .and. name(1:1) /= 'i' .and. name /= 'newunit') close (unit_of(name))
  end subroutine
  integer function unit_of(name)
    character(*), intent(in) :: name
    read (name(len(name) - 1:), *) unit_of
  end function
end program
"""

REFUSED = {
    "unit=61": {"s61", "f61"},
    "unit=61-63": {"s61", "f61", "d62", "e62", "t63"},
    "unit=71": {"implicit71"},
    "access=direct": {"d62", "e62", "direct65"},
    "access=stream": {"t63"},
    "access=sequential form=unformatted": {"s61", "newunit", "implicit72"},
    "access=sequential form=formatted": {"f61", "default64", "implicit71"},
    "access=direct form=unformatted": {"d62", "direct65"},
    "access=direct form=formatted": {"e62"},
    "unit=62 form=unformatted": {"d62"},
    "name=x*": {"default64", "direct65", "newunit"},
}


@pytest.fixture(scope="module")
def openings(fc):
    return fc(PROGRAM, name="openings")


@pytest.mark.parametrize("conditions", REFUSED)
@pytest.mark.parametrize("traced", [False, True])
def test_a_rule_for_units_meets_their_openings_alone(conditions, traced, openings, execute, preload,
        preload_env, tmp_path):
    rules = (
        f"weir-rules 1\nrule source=t:1 {conditions} "
        f"stack=error:op=open:errno=ENOSPC:rate=1|system\n"
    )
    env = preload_env() if traced else {"LD_PRELOAD": str(preload)}
    directory = tmp_path / "work"
    directory.mkdir()
    done = execute([openings], env={**env, "WEIR_RULES": rules, "WEIR_QUIET": "1"},
        cwd=directory).ok()
    lines = done.stdout.splitlines()
    assert lines[-1] == "done"
    assert {line.split()[1] for line in lines if line.startswith("refused")} == REFUSED[conditions]


C_PROGRAM = r"""
#include <fcntl.h>
#include <stdio.h>
int main(void) { return open("x", O_RDWR | O_CREAT, 0644) < 0 || fopen("y", "w") == NULL; }
"""


@pytest.mark.parametrize("conditions", ["unit=0-99", "access=sequential", "form=unformatted"])
def test_rules_for_units_leave_other_openings_alone(conditions, cc, execute, preload, tmp_path):
    rules = (
        f"weir-rules 1\nrule source=t:1 {conditions} "
        f"stack=error:op=open:errno=ENOSPC:rate=1|system\n"
    )
    execute([cc(C_PROGRAM, name="opens")], env={"LD_PRELOAD": str(preload), "WEIR_RULES": rules},
        cwd=tmp_path).ok()
