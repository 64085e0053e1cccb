# SPDX-License-Identifier: Apache-2.0
"""Programs that change files by system call instructions of their own, as those in Rust do whose
libraries use rustix. A file that layers have, and such a call, would not meet."""

from __future__ import annotations

import platform

import pytest

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="x86-64 alone is looked at")

# Needs what Rust's run-time library needs of the compiler's, so that its code is looked at.
PROGRAM = r"""
    #include <fcntl.h>
    #include <stdio.h>
    #include <string.h>
    #include <unistd.h>
    extern void _Unwind_GetTextRelBase(void);
    void* volatile needed = (void*)_Unwind_GetTextRelBase;
    #if defined DIRECT
    static long own_rename(const char* from, const char* to) {
      long result = 316;
      register long flags __asm__("r8") = 0;
      register const char* there __asm__("r10") = to;
      __asm__ volatile("movl $316, %%eax\n syscall" : "=a"(result)
                       : "D"(AT_FDCWD), "S"(from), "d"(AT_FDCWD), "r"(there), "r"(flags)
                       : "rcx", "r11", "memory");
      return result;
    }
    #elif defined BY_ARGUMENT
    long own_call(long number, long a, const void* b, long c, const void* d);
    __asm__("own_call: subq $24, %rsp\n movq %rdi, 8(%rsp)\n movq %rsi, %rdi\n movq %rdx, %rsi\n"
            "movq %rcx, %rdx\n movq %r8, %r10\n xorl %r8d, %r8d\n movq 8(%rsp), %rax\n syscall\n"
            "addq $24, %rsp\n ret");
    static long own_rename(const char* from, const char* to) {
      return own_call(316, AT_FDCWD, from, AT_FDCWD, to);
    }
    #else
    static long own_rename(const char* from, const char* to) { return rename(from, to); }
    #endif
    int main(int count, char** names) {
      char text[16] = "";
      int fd;
      if (count > 1) {
        fd = open(names[1], O_RDONLY);
        if (fd < 0 || read(fd, text, sizeof text) != 7 || strcmp(text, "before\n") != 0) return 5;
        close(fd);
        fd = open(names[1], O_WRONLY | O_APPEND);
        return fd >= 0 && write(fd, "after\n", 6) == 6 && close(fd) == 0 &&
                       own_rename(names[1], "out.dat") == 0 ? 0 : 6;
      }
      fd = open("out.new", O_RDWR | O_CREAT, 0644);
      if (fd < 0 || write(fd, "whole\n", 6) != 6 || close(fd) != 0) return 1;
      if (own_rename("out.new", "out.dat") != 0) return 2;
      fd = open("out.dat", O_RDONLY);
      if (fd < 0 || read(fd, text, sizeof text) != 6 || strcmp(text, "whole\n") != 0) return 3;
      return access("out.new", F_OK) == 0 ? 4 : 0;
    }
"""
STACKS = ["pack:name=all.zip:always=1", "stage:tier={tier}", "keep:always=1", "bufa:4:4:always=1"]
MESSAGE = "makes system calls on files without the C library; what it writes has no layers"


@pytest.fixture
def rules(tmp_path):
    def written(stack: str) -> str:
        path, tier = tmp_path / "rules.toml", tmp_path / "tier"
        tier.mkdir()
        path.write_text(f'[[rule]]\nname = "out.*"\nstack = "{stack.format(tier=tier)} | system"\n')
        return str(path)

    return written


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("way", ["DIRECT", "BY_ARGUMENT"])
def test_its_files_have_no_layers_and_it_says_so(weir, cc, rules, tmp_path, stack, way):
    program = cc(PROGRAM, f"-D{way}", name=f"own-{way.lower()}")
    done = weir("run", "--rules", rules(stack), "--", program, cwd=tmp_path).ok()
    assert f"{program} {MESSAGE}" in done.stderr
    assert (tmp_path / "out.dat").read_text() == "whole\n"
    assert not (tmp_path / "all.zip").exists()


@pytest.mark.parametrize("stack", STACKS)
def test_it_reads_what_others_wrote_and_writes_real_files(weir, cc, rules, tmp_path, stack):
    program = cc(PROGRAM, "-DDIRECT", name="own-direct")
    script = f'echo before > out.old; {program} out.old'
    weir("run", "--rules", rules(stack), "--", "sh", "-c", script, cwd=tmp_path).ok()
    assert (tmp_path / "out.dat").read_text() == "before\nafter\n"
    assert not (tmp_path / "out.old").exists()


def test_calls_of_the_c_library_alone_keep_layers(weir, cc, rules, tmp_path):
    program = cc(PROGRAM, name="own-none")
    done = weir("run", "--rules", rules(STACKS[0]), "--", program, cwd=tmp_path).ok()
    assert MESSAGE not in done.stderr
    assert (tmp_path / "all.zip").exists() and not (tmp_path / "out.dat").exists()


def test_files_that_only_their_layers_can_read_keep_them(weir, cc, rules, tmp_path):
    program = cc(PROGRAM, "-DDIRECT", name="own-direct")
    weir("run", "--rules", rules("cos:4"), "--", program, cwd=tmp_path).ok()
    assert (tmp_path / "out.dat").read_bytes() != b"whole\n"
