# SPDX-License-Identifier: Apache-2.0
"""weir doctor PROGRAM: programs that differ in one thing each, and what is said of them."""

from __future__ import annotations

import os
import random
import shutil
import struct
from collections import Counter

import pytest

from weir import InputError
from weir.capture.doctor import examine_program
from weir.capture.doctor._direct import candidates, number_set

HELLO = '#include <stdio.h>\nint main(void){puts("x");return 0;}\n'
FORTRAN = "program p\nwrite(61,*) 1\nend program p\n"


def said_of(program) -> dict[str, tuple[str, str]]:
    return {f.name: (f.status, f.text) for f in examine_program(str(program))}


def findings_of(program) -> list[str]:
    return [f.name for f in examine_program(str(program)) if f.status == "finding"]


def test_an_ordinary_program_is_seen(cc):
    said = said_of(cc(HELLO))
    assert said["linkage"] == ("fine", "dynamically linked: its calls of the C library are seen")
    assert said["mpi"][0] == "note" and "no MPI" in said["mpi"][1]
    assert findings_of(cc(HELLO)) == []


def test_a_static_program_is_not_seen_at_all(cc):
    program = cc(HELLO, "-static", name="static")
    assert findings_of(program) == ["linkage"]
    assert said_of(program)["linkage"][1].startswith(
        "statically linked: not seen at all; link it dynamically")
    assert findings_of(cc(HELLO, "-static-pie", name="static-pie")) == ["linkage"]


def test_a_static_program_without_glibc_is_said_to_be_one(cc):
    source = "void _start(void){__asm__(\"mov $60,%eax; xor %edi,%edi; syscall\");}"
    program = cc(source, "-static", "-nostdlib", name="bare")
    assert "without glibc (musl, for example)" in said_of(program)["linkage"][1]


def test_a_program_linked_with_musl_is_not_seen(cc, tmp_path):
    program = cc(HELLO, "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1", name="musl")
    assert findings_of(program) == ["linkage"] and "musl" in said_of(program)["linkage"][1]


def test_gfortran_statements_are_seen_with_the_shared_library_alone(fc):
    assert said_of(fc(FORTRAN))["fortran"][0] == "fine"
    for stripped in ([], ["-s"]):
        said = said_of(fc(FORTRAN, "-static-libgfortran", *stripped))
        assert said["linkage"][0] == "fine"
        assert said["fortran"][0] == "finding" and "statements and units are not" in said[
            "fortran"][1]


def test_mpi_is_reported_by_name(mpi):
    source = "#include <mpi.h>\nint main(int c,char**v){MPI_Init(&c,&v);MPI_Finalize();return 0;}"
    status, text = said_of(mpi.cc(source))["mpi"]
    assert status == "fine"
    assert ("Open MPI" in text) == ("openmpi" in mpi.launcher[0]) and ("MPICH" in text) == (
        "mpich" in mpi.launcher[0])
    fortran = said_of(mpi
        .fc("program p\nuse mpi\ninteger :: e\ncall mpi_init(e)\ncall mpi_finalize(e)\nend program "
            "p\n"))
    assert fortran["mpi"] == (status, text) and fortran["fortran"][0] == "fine"


@pytest.fixture
def copy(tmp_path, cc):
    """A copy of a small program that a test may change."""

    def make(mode: int = 0o755):
        path = tmp_path / "program"
        shutil.copy(cc(HELLO), path)
        path.chmod(mode)
        return path

    return make


@pytest.mark.parametrize(("mode", "word"), [(0o4755, "setuid"), (0o2755, "setgid"),
    (0o6755, "setuid")])
def test_a_setuid_program_of_somebody_else_is_not_seen(copy, mode, word, weir, tmp_run):
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to somebody else")
    path = copy()
    os.chown(path, 65534, 65534)
    path.chmod(mode)
    said = said_of(path)
    assert said["privileged"][0] == "finding" and word in said["privileged"][1]
    # And that is true: the loader ignores the library.
    path.parent.chmod(0o755)
    done = weir("trace", "-o", tmp_run, "--", path)
    if os.statvfs(path).f_flag & os.ST_NOSUID == 0:
        assert done.returncode == 3 and "no trace: " in done.stderr


def test_a_setuid_program_of_ones_own_is_seen_by_oneself(copy):
    said = said_of(copy(0o4755))
    assert said["privileged"][0] == "note" and "somebody else" in said["privileged"][1]


def test_file_capabilities_are_found(copy):
    path = copy()
    try:
        os.setxattr(path, "security.capability", struct.pack("<5I", 0x02000001, 1 << 10, 0, 0, 0))
    except OSError as error:
        pytest.skip(f"file capabilities cannot be set here: {error}")
    said = said_of(path)
    assert said["capabilities"][0] == ("note" if os.geteuid() == 0 else "finding")
    assert "file capabilities" in said["capabilities"][1]


def test_a_file_that_may_not_be_executed_is_said(copy):
    assert findings_of(copy(0o644)) == ["executable"]


def changed(path, offset: int, value: bytes):
    data = bytearray(path.read_bytes())
    data[offset : offset + len(value)] = value
    path.write_bytes(data)
    return path


def test_a_program_of_another_architecture_is_not_seen(copy, tmp_path):
    arm = changed(copy(), 18, struct.pack("<H", 183))
    assert findings_of(arm) == ["architecture"] and "64-bit program for AArch64" in said_of(
        arm)["architecture"][1]
    header = b"\x7fELF\x01\x01\x01" + bytes(9) + struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, 0x8048000,
        52, 0, 0, 52, 32, 0, 40, 0, 0)
    small = tmp_path / "small"
    small.write_bytes(header)
    small.chmod(0o755)
    assert findings_of(small) == ["architecture"] and "32-bit program for x86" in said_of(
        small)["architecture"][1]


@pytest.mark.parametrize("keep", [4, 5, 16, 40, 63, 64, 100, 200, 700, 4096])
def test_a_file_cut_anywhere_is_damaged_or_still_understood(copy, keep):
    path = copy()
    path.write_bytes(path.read_bytes()[:keep])
    try:
        assert examine_program(str(path))
    except InputError as error:
        assert "ELF headers are damaged" in str(error)


def test_changed_bytes_never_make_it_fail_otherwise(copy):
    seed = random.randrange(1 << 32)
    print("seed", seed)
    rng = random.Random(seed)
    whole = copy().read_bytes()
    for _ in range(150):
        path = copy()
        data = bytearray(whole)
        for _ in range(rng.randint(1, 12)):
            data[rng.randrange(4, 1000)] = rng.randrange(256)
        path.write_bytes(data)
        try:
            examine_program(str(path))
        except InputError:
            pass


def test_direct_system_calls_are_found_by_number(cc):
    source = """
    static __attribute__((noinline)) long own_write(int f, const void *b, long n) {
      long r; __asm__ volatile("mov $1,%%eax; syscall" : "=a"(r) : "D"(f), "S"(b), "d"(n) : "rcx", "r11", "memory"); return r; }
    int main(void) { return own_write(1, "x", 1) != 1; }
    """
    said = said_of(cc(source, name="direct"))
    assert said["direct_calls"][0] == "finding" and said["direct_calls"][1].endswith(
        "not seen: write (1)")


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("b801000000 0f05", {"write": 1}),
        ("48c7c000000000 0f05", {"read": 1}),
        ("31c0 90 0f05", {"read": 1}),
        ("b801000000 31c0 0f05", {"read": 1}),
        ("b8aa010000 0f05 b801010000 0f05 b801010000 0f05", {"io_uring_enter": 1, "openat": 2}),
        ("b8e7000000 0f05", {}),
        ("0f05", {}),
        ("b801000000" + "90" * 24 + "0f05", {}),
        ("", {}),
    ],
)
def test_the_number_of_a_direct_call_is_looked_for_in_front_of_it(code, found):
    assert Counter(c.call for c in candidates(bytes.fromhex(code))) == found


@pytest.mark.parametrize(
    ("instructions", "number"),
    [
        ("mov $0x1,%eax", 1),
        ("mov $0x101,%rax; mov %rsi,%rdx; cmp $0x3,%eax; test %rax,%rax", 257),
        ("mov $0x1,%eax; xor %eax,%eax; nop", 0),
        ("mov $0x1,%eax; mov %rdi,%rax", None),
        ("mov $0x1,%eax; call 1040", None),
        ("mov $0x1,%eax; pop %rax", None),
        ("mov $0x1,%ebx", None),
        ("", None),
    ],
)
def test_the_number_is_what_was_set_last(instructions, number):
    assert number_set([tuple(i.split(" ", 1)) if " " in i else (i, "")
        for i in instructions.split("; ")]) == number


OWN_CALLS = """
int main(void) {
  long r;
  __asm__ volatile("xor %%eax,%%eax; nop; syscall" : "=a"(r) : "D"(0), "S"(&r), "d"(0L) : "rcx", "r11", "memory");
  __asm__ volatile("mov $257,%%eax; syscall" : "=a"(r) : "D"(-1), "S"("x"), "d"(0L) : "rcx", "r11", "r10", "memory");
  __asm__ volatile("mov $39,%%eax; syscall" : "=a"(r) : : "rcx", "r11", "memory");
  return 0; }
"""
# The bytes of the instruction, and of one that sets its number, within other instructions.
CHANCE = """
int main(void) {
  __asm__ volatile("xor %%eax,%%eax; mov $0x050f1234,%%ecx; mov $1,%%eax; mov $0x050f1234,%%ecx" : : : "eax", "ecx");
  __asm__ volatile("mov $1,%%eax; mov $0x1234050f,%%ecx" : : : "eax", "ecx");
  return 0; }
"""


def test_a_disassembler_confirms_what_is_really_an_instruction(cc):
    assert said_of(cc(OWN_CALLS, name="own"))["direct_calls"][1].endswith(
        "not seen: openat (1), read (1)")
    assert said_of(cc(OWN_CALLS, "-s", name="own-stripped"))["direct_calls"][1].endswith(
        "not seen: openat (1), read (1)")
    if shutil.which("objdump") is None:
        pytest.skip("no objdump")
    assert "direct_calls" not in said_of(cc(CHANCE, name="chance"))
    assert "direct_calls" not in said_of(cc(CHANCE, "-s", name="chance-stripped"))


def test_without_a_disassembler_a_cleared_register_is_no_sign_of_a_read(cc, monkeypatch):
    program, chance = cc(OWN_CALLS, name="own"), cc(CHANCE.replace("mov $1", "mov $39"),
        name="chance-read")
    assert len(candidates(chance.read_bytes())) >= 1
    monkeypatch.setenv("PATH", "/nowhere")
    assert said_of(program)["direct_calls"][1].endswith("not seen: openat (1)")
    assert "direct_calls" not in said_of(chance)


@pytest.mark.parametrize("name", ["bash", "python3", "cdo", "gcc", "gdb", "ncks", "sed", "tar"])
def test_programs_of_the_system_make_no_calls_of_their_own(name):
    path = shutil.which(name, path="/usr/bin:/bin")
    if path is None:
        pytest.skip(f"no {name} on this machine")
    assert "direct_calls" not in said_of(path)


def test_io_uring_syscall_mmap_and_dlopen_are_named(cc):
    source = """
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <sys/mman.h>
    #include <unistd.h>
    #include <sys/syscall.h>
    int io_uring_queue_init(void) { return 0; }
    int main(int c, char **v) {
      dlopen(v[0], RTLD_NOW); mmap(0, 4096, 1, 2, 0, 0);
      return syscall(SYS_getpid) == 0 && io_uring_queue_init(); }
    """
    said = said_of(cc(source, name="various"))
    assert {n: s for n, (s, _) in said.items() if n in ("io_uring", "syscall", "mmap",
        "dlopen")} == {
        "io_uring": "finding", "syscall": "note", "mmap": "note", "dlopen": "note"
    }  # fmt: skip
    assert "RTLD_DEEPBIND" in said["dlopen"][1]


def test_liburing_is_recognised_by_its_name(cc):
    library = cc("int io_uring_queue_init(void){return 0;}", "-shared", "-fPIC",
        "-Wl,-soname,liburing.so.2", name="liburing.so")
    program = cc("int main(void){return 0;}", "-Wl,--no-as-needed", str(library),
        f"-Wl,-rpath,{library.parent}", name="uses-ring")
    status, text = said_of(program)["io_uring"]
    assert status == "note" and "requests are seen as they are submitted" in text


def test_a_namespace_of_its_own_is_said(cc):
    source = (
        "#define _GNU_SOURCE\n#include <dlfcn.h>\nint main(void){return "
        "dlmopen(LM_ID_NEWLM,\"x\",RTLD_NOW)!=0;}"
    )
    assert "namespace of its own is not seen" in said_of(cc(source, name="dlmopen"))["dlopen"][1]


def test_a_library_that_is_missing_is_named(cc, tmp_path):
    library = tmp_path / "libgone_for_weir.so"
    shutil.copy(cc("int gone(void){return 1;}", "-shared", "-fPIC",
        "-Wl,-soname,libgone_for_weir.so", name="libgone.so"), library)
    program = cc("int gone(void);int main(void){return gone();}", f"-L{tmp_path}",
        "-lgone_for_weir", name="needs")
    library.unlink()
    assert "libgone_for_weir.so not found" in said_of(program)["libraries"][1] and findings_of(
        program) == ["libraries"]


@pytest.mark.parametrize("link", [False, True])
def test_libraries_beside_a_program_are_found_by_whatever_name_it_is_called(cc, tmp_path, link):
    home, elsewhere = tmp_path / "home", tmp_path / "elsewhere"
    (home / "bin").mkdir(parents=True)
    (home / "lib").mkdir()
    elsewhere.mkdir()
    shutil.copy(cc("int near(void){return 0;}", "-shared", "-fPIC", "-Wl,-soname,libnear_weir.so",
        name="libnear.so"), home / "lib" / "libnear_weir.so")
    program = cc("int near(void);int main(void){return near();}", f"-L{home}/lib", "-lnear_weir",
        "-Wl,-rpath,$ORIGIN/../lib", name="finds")
    shutil.move(program, home / "bin" / "finds")
    if link:
        (elsewhere / "finds").symlink_to(home / "bin" / "finds")
    assert findings_of(elsewhere / "finds" if link else home / "bin" / "finds") == []


def test_a_sanitizer_is_said(cc):
    try:
        program = cc(HELLO, "-fsanitize=address", name="asan")
    except AssertionError:
        pytest.skip("no address sanitizer for this compiler")
    assert findings_of(program) == ["sanitizer"]


def test_a_shared_library_and_an_object_are_no_programs(cc):
    assert said_of(cc("int x;", "-shared", "-fPIC", name="libx.so"))["linkage"][0] == "note"
    assert "object" in said_of(cc("int x;", "-c", name="x.o"))["linkage"][1]


def test_a_go_program_is_not_seen(cc):
    program = cc('__attribute__((section(".go.buildinfo"))) const char b[16] = "Go";\n' + HELLO,
        "-static", name="go-like")
    assert findings_of(program) == ["linkage"] and "Go program" in said_of(program)["linkage"][1]
    cgo = cc('__attribute__((section(".go.buildinfo"))) const char b[16] = "Go";\n' + HELLO,
        name="cgo-like")
    assert findings_of(cgo) == ["go"] and "only what its C parts do" in said_of(cgo)["go"][1]


def script(tmp_path, first: str, name: str = "job.sh"):
    path = tmp_path / name
    path.write_text(f"{first}\necho x\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("first", ["#!/bin/sh", "#! /bin/sh -e", "#!/usr/bin/env sh",
    "#!/usr/bin/env -S A=1 sh -e", "echo no first line"])
def test_a_script_is_followed_to_its_interpreter(tmp_path, first):
    said = said_of(script(tmp_path, first))
    assert said["script"][0] == "fine" and said["linkage"][0] == "fine"
    assert os.path.basename(said["program"][1]) == "sh"


def test_a_script_of_a_static_interpreter_is_not_seen_itself(tmp_path, cc):
    static = cc(HELLO, "-static", name="static")
    assert findings_of(script(tmp_path, f"#!{static}")) == ["linkage"]


def test_interpreters_that_lead_nowhere_are_said(tmp_path):
    assert findings_of(script(tmp_path, "#!/nowhere/sh")) == ["interpreter"]
    assert "/nowhere/sh: no such file" in said_of(tmp_path / "job.sh")["interpreter"][1]
    loop = script(tmp_path, f"#!{tmp_path}/loop.sh", "loop.sh")
    assert findings_of(loop) == ["interpreter"]


def test_files_that_are_no_programs(tmp_path):
    binary = tmp_path / "binary"
    binary.write_bytes(b"GRIB\0\0\1\2")
    binary.chmod(0o755)
    assert findings_of(binary) == ["program"]
    empty = tmp_path / "empty"
    empty.write_bytes(b"")
    assert "is empty" in said_of(empty)["script"][1]


@pytest.mark.parametrize(
    ("mode", "begin"),
    [
        (0o644, b"just words\n"),
        (0o644, b"echo x\n"),
        (0o755, bytes(range(1, 256)) * 4),
        (0o755, "Höhe".encode("utf-16-le")),
        (0o755, b"\xc3\xa9 \xff\xfe\xfd\xfc"),
    ],
)
def test_a_file_of_data_is_not_called_a_script(tmp_path, mode, begin):
    data = tmp_path / "data"
    data.write_bytes(begin)
    data.chmod(mode)
    said = said_of(data)
    assert "script" not in said and "neither an ELF program nor a script" in said["program"][1]
    assert ("executable" in said) == (mode == 0o644)


@pytest.mark.parametrize("text", [b"echo x\n", "echo Höhe # 高さ\n".encode() * 999,
    "echo x # H\xf6he \n".encode("latin-1") * 99, b"\techo \033[1m\r\n"])
def test_text_without_a_first_line_of_its_own_is_one(tmp_path, text):
    path = tmp_path / "job"
    path.write_bytes(text)
    path.chmod(0o755)
    assert said_of(path)["script"][0] == "fine"


@pytest.mark.parametrize(("name", "text"), [("no-such-program", "not found in PATH"),
    ("./no-such-file", "no such file"), (".", "not a regular")])
def test_what_is_not_there_is_bad_input(name, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=text):
        examine_program(name)


def test_programs_are_searched_as_a_shell_does(monkeypatch, tmp_path, cc):
    shutil.copy(cc(HELLO), tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    assert examine_program("./model")[0].text == "./model"
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert examine_program("model")[0].text == str(tmp_path / "model")
