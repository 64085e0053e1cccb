# SPDX-License-Identifier: Apache-2.0
"""How programs and libraries are put together: who defines which symbol, what is loaded when and
where."""

import os
import shutil
import subprocess
import uuid

import pytest
from weir_guest import counts, lost

OWN_SYMBOLS = """
// Functions of this program that happen to have the names of libc's.
static int called;
struct thing { int a; };
double mine_1(struct thing* t) __asm__("write");
double mine_1(struct thing* t) { return called += t->a; }
const char* mine_2(void) __asm__("read");
const char* mine_2(void) { return ++called ? "mine" : ""; }
long mine_3(double x) __asm__("open");
long mine_3(double x) { return ++called, (long)x; }
int mine_4(void) __asm__("close");
int mine_4(void) { return ++called; }
void* mine_5(size_t n) __asm__("lseek");
void* mine_5(size_t n) { return ++called, (void*)n; }
int main(void) {
  struct thing two = {2};
  MUST(mine_1(&two) == 2 && strcmp(mine_2(), "mine") == 0 && mine_3(7.5) == 7 && mine_4() == 5 && mine_5(3) == (void*)3);
  FILE* f = fopen("file", "w");
  MUST(f && fputs("text", f) >= 0 && fclose(f) == 0);
  int fd = openat(AT_FDCWD, "other", O_RDWR | O_CREAT, 0644);
  MUST(pwrite(fd, "abc", 3, 0) == 3);
  void* library = dlopen(LIBRARY, RTLD_NOW | RTLD_DEEPBIND);
  MUST(library != NULL);
  int (*call)(void) = (int (*)(void))dlsym(library, "writes_itself");
  MUST(call && call() == 5 && called == 6);
  puts("right");
  return 0;
}
"""

LIBRARY = """
int writes_itself(void) {
  int fd = open("by_library", O_RDWR | O_CREAT | O_TRUNC, 0644);
  int n = (int)write(fd, "12345", 5);
  close(fd);
  return n;
}
"""


@pytest.fixture
def library(guest):
    return guest(LIBRARY, "-shared", "-fPIC", name="liba.so")


def test_a_program_with_functions_of_libcs_names(guest, traced, library):
    """Its functions are called where they were; a library loaded to look past them finds libc's."""
    trace = traced([guest(OWN_SYMBOLS, f'-DLIBRARY="{library}"')]).ok().trace
    assert [r.size for r in trace.of("pwrite", file="other")] == [3]
    assert len(trace.of("fopen", file="file")) == 1


LOADS = """
int main(void) {
  int modes[] = {RTLD_LOCAL, RTLD_GLOBAL, RTLD_LOCAL | RTLD_DEEPBIND};
  for (int i = 0; i < 3; ++i) {
    void* library = dlopen(LIBRARY, RTLD_NOW | modes[i]);
    MUST(library != NULL);
    int (*call)(void) = (int (*)(void))dlsym(library, "writes_itself");
    MUST(call() == 5 && dlclose(library) == 0);
  }
  MUST(dlopen("/no/such/library.so", RTLD_NOW) == NULL && dlerror() != NULL);
  MUST(dlsym(RTLD_DEFAULT, "no_such_function_at_all") == NULL && dlerror() != NULL && dlerror() == NULL);
  ssize_t (*by_name)(int, const void*, size_t) = dlsym(RTLD_DEFAULT, "write");
  int fd = open_new("by_name");
  MUST(by_name(fd, "x", 1) == 1);
  by_name = dlsym(RTLD_NEXT, "write");
  MUST(by_name(fd, "x", 1) == 1);
  return 0;
}
"""


def test_libraries_loaded_local_global_and_deep(guest, traced, library):
    trace = traced([guest(LOADS, f'-DLIBRARY="{library}"')]).ok().trace
    assert len(trace.of("write", file="by_library")) == 3
    assert len(trace.of("write", file="by_name")) >= 1


CONSTRUCTOR = """
__attribute__((constructor)) static void begins(void) {
  int fd = open_new("by_constructor");
  for (int i = 0; i < 10; ++i) MUST(write(fd, "12345", 5) == 5);
  MUST(close(fd) == 0);
  FILE* f = fopen("stream", "w");
  MUST(f && fputs("text", f) >= 0 && fclose(f) == 0);
  MUST(system("echo started > by_shell") == 0);
  pid_t child = fork();
  if (child == 0) _exit(write(open_new("by_child"), "abc", 3) == 3 ? 0 : 1);
  int status = 0;
  MUST(waitpid(child, &status, 0) == child && status == 0);
  if (getenv("ENDS")) exit(3);
}
int value(void) { return 5; }
"""

LINKED = """
int value(void);
int main(void) {
  int fd = open_new("by_main");
  MUST(value() == 5 && write(fd, "x", 1) == 1 && close(fd) == 0);
  return 0;
}
"""


@pytest.fixture
def linked(guest):
    """A program that is linked with a library whose constructor makes calls, as OpenFOAM's."""
    library = guest(CONSTRUCTOR, "-shared", "-fPIC", name="libconstructor.so")
    where = str(library.parent)
    return guest(LINKED, f"-L{where}", "-Wl,--no-as-needed", "-lconstructor",
        f"-Wl,-rpath,{where}", name="linked")


@pytest.mark.parametrize("rules", ["", "weir-rules 1\nrule source=test:1 name=by_* stack=bufa:65536:2:always=1|system\n"])
def test_constructors_of_libraries_of_the_program(traced, linked, rules):
    """They run before that of libweir-preload.so."""
    done = traced([linked], WEIR_RULES=rules).ok()
    trace = done.trace
    assert [r.size for r in trace.of("write", file="by_constructor")] == [5] * 10
    assert len(trace.of("fopen", file="stream")) == 1 == len(trace.of("fputs", file="stream"))
    assert [r.size for r in trace.of("write", file="by_child")] == [3]
    assert [r.size for r in trace.of("write", file="by_main")] == [1]
    assert len(trace.processes) == 3  # with the shell and the child


def test_a_constructor_that_ends_the_program(traced, linked):
    done = traced([linked], ENDS="1")
    assert done.done.returncode == 3
    assert len(done.trace.of("write", file="by_constructor")) == 10
    assert lost(done.trace) == 0
    assert all(one.end_ticks for one in done.trace.processes.values())


NAMESPACE = """
int main(void) {
  void* library = dlmopen(LM_ID_NEWLM, LIBRARY, RTLD_NOW);
  MUST(library != NULL);
  int (*call)(void) = (int (*)(void))dlsym(library, "writes_itself");
  MUST(call() == 5);
  int fd = open_new("file");
  MUST(write(fd, "x", 1) == 1);
  return 0;
}
"""


def test_a_namespace_of_its_own_is_not_seen_and_works(guest, traced, library):
    trace = traced([guest(NAMESPACE, f'-DLIBRARY="{library}"')]).ok().trace
    assert len(trace.of("write", file="file")) == 1
    assert trace.of("write", file="by_library") == []


ALLOCATOR = """
// An allocator that maps its memory and says what it does by write, from its very first call on.
static char* next;
static size_t room;
static int note = -1, is_busy;
static void* take(size_t n) {
  n = (n + 31) & ~15ul;
  if (is_busy) _exit(77);  // others wait for their own lock here, for ever
  if (room < n) {
    is_busy = 1;
    room = n > 1 << 20 ? n : 1 << 20;
    next = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (note < 0) note = open("allocations", O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (write(note, "m", 1) != 1) abort();
    is_busy = 0;
  }
  size_t* got = (size_t*)next;
  *got = n - 16;
  next += n;
  room -= n;
  return got + 2;
}
void* malloc(size_t n) { return take(n); }
void* calloc(size_t a, size_t b) { return take(a * b); }
void free(void* p) { (void)p; }
void* realloc(void* p, size_t n) {
  void* q = take(n);
  if (p) memcpy(q, p, ((size_t*)p)[-2] < n ? ((size_t*)p)[-2] : n);
  return q;
}
"""

USES_MEMORY = """
static void* volatile kept;
static void* work(void* unused) {
  for (int i = 0; i < 1000; ++i) free(kept = malloc(i));
  FILE* f = fopen("file", "w");
  fprintf(f, "%d", 1);
  fclose(f);
  return unused;
}
int main(void) {
  for (int i = 0; i < 20; ++i) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
  }
  char* big = malloc(5 << 20);
  big[5] = 1;
  puts("right");
  return 0;
}
"""


@pytest.mark.parametrize("how", ["in the program", "preloaded before", "preloaded behind"])
def test_an_allocator_that_makes_calls(guest, traced, preload, how):
    if how == "in the program":
        outcome = traced([guest(ALLOCATOR + USES_MEMORY)])
    else:
        other = guest(ALLOCATOR, "-shared", "-fPIC", name="liballocator.so")
        order = [other, preload] if how == "preloaded before" else [preload, other]
        outcome = traced([guest(USES_MEMORY)], LD_PRELOAD=":".join(map(str, order)))
    trace = outcome.ok().trace
    assert outcome.done.stdout == "right\n"
    assert len(trace.of("fopen", file="file")) == 20
    assert counts(trace, "write", "allocations") >= 1


OTHER = """
// Another library of the same kind.
ssize_t write(int fd, const void* from, size_t n) {
  static ssize_t (*real)(int, const void*, size_t);
  if (!real) real = dlsym(RTLD_NEXT, "write");
  return real(fd, from, n);
}
int open(const char* path, int flags, ...) {
  static int (*real)(const char*, int, int);
  if (!real) real = dlsym(RTLD_NEXT, "open");
  va_list rest;
  va_start(rest, flags);
  int mode = va_arg(rest, int);
  va_end(rest);
  return real(path, flags, mode);
}
"""


@pytest.mark.parametrize("first", ["weir", "other"])
def test_another_library_that_stands_in_front_of_calls(guest, traced, preload, first):
    other = guest("#include <stdarg.h>\n" + OTHER, "-shared", "-fPIC", name="libother.so")
    order = [preload, other] if first == "weir" else [other, preload]
    source = 'int main(void) {\n int fd = open_new("file");\n return write(fd, "x", 1) != 1;\n}\n'
    trace = traced([guest(source)], LD_PRELOAD=":".join(map(str, order))).ok().trace
    assert len(trace.of("write", file="file")) == 1


def test_a_static_program_is_not_recorded(guest, traced):
    source = 'int main(void) {\n int fd = open_new("file");\n return write(fd, "x", 1) != 1;\n}\n'
    outcome = traced([guest(source, "-static")]).ok()
    assert list(outcome.directory.iterdir()) == []


def test_a_program_without_an_environment_is_not_recorded(guest, traced):
    source = 'int main(void) {\n int fd = open_new("file");\n return write(fd, "x", 1) != 1;\n}\n'
    outcome = traced(["env", "-i", guest(source)]).ok()
    assert outcome.trace.of("write", file="file") == []


BIG_TLS = """
static __thread char mine[200000];
static void* work(void* unused) {
  memset(mine, 1, sizeof mine);
  int fd = open_new("file");
  for (int i = 0; i < 100; ++i) MUST(write(fd, mine + i, 1) == 1);
  for (size_t i = 0; i < sizeof mine; ++i) MUST(mine[i] == 1);
  return unused;
}
int main(void) {
  for (int i = 0; i < 10; ++i) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
  }
  work(NULL);
  void* library = dlopen(LIBRARY, RTLD_NOW);  // whose static storage must find room, too
  MUST(library != NULL && dlsym(library, "kept") != NULL);
  return 0;
}
"""


def test_a_program_with_much_thread_local_storage(guest, traced):
    small = guest("__thread char kept[400] __attribute__((tls_model(\"initial-exec\")));\n",
        "-shared", "-fPIC", name="libtls.so")
    trace = traced([guest(BIG_TLS, f'-DLIBRARY="{small}"')]).ok().trace
    assert len(trace.of("write", file="file")) == 1100


COROUTINES = """
static ucontext_t back, one[50];
static int fd;
static void work(int me) {
  for (int i = 0; i < 20; ++i) {
    MUST(pwrite(fd, "x", 1, me) == 1);
    char name[16];
    snprintf(name, sizeof name, "c%d", me);
    int mine = open(name, O_WRONLY | O_CREAT | O_APPEND, 0644);
    MUST(mine >= 0 && write(mine, "y", 1) == 1 && close(mine) == 0);
    swapcontext(&one[me], &back);
  }
}
int main(void) {
  fd = open_new("file");
  for (int i = 0; i < 50; ++i) {
    getcontext(&one[i]);
    one[i].uc_stack.ss_sp = malloc(16384);
    one[i].uc_stack.ss_size = 16384;
    one[i].uc_link = &back;
    makecontext(&one[i], (void (*)(void))work, 1, i);
  }
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 50; ++i) swapcontext(&back, &one[i]);
  }
  return 0;
}
"""


def test_coroutines_on_small_stacks(guest, traced):
    trace = traced([guest(COROUTINES)]).ok().trace
    assert len(trace.of("pwrite", file="file")) == 1000
    assert all(len(trace.of("write", file=f"c{i}")) == 20 for i in range(50))


ORDINARY = """
int main(void) {
  char* p = malloc(100);
  FILE* f = fopen("file", "w");
  for (int i = 0; i < 100; ++i) fprintf(f, "%d\\n", i);
  fclose(f);
  int fd = open("file", O_RDWR);
  MUST(read(fd, p, 100) == 100 && p[0] == '0' && close(fd) == 0);
  MUST(stat("file", &(struct stat){0}) == 0 && access("file", R_OK) == 0);
  free(p);
  pid_t child = fork();
  if (child == 0) _exit(open_new("child") < 0);
  wait(NULL);
  puts("right");
  return 0;
}
"""


def test_a_program_built_with_the_address_sanitizer(guest, traced, preload, execute):
    """The sanitizer wants to be first; with its library named before weir's, it is."""
    program = guest(ORDINARY, "-fsanitize=address")
    runtime = execute(["gcc", "-print-file-name=libasan.so"]).ok().stdout.strip()
    if not os.path.isabs(runtime):
        pytest.skip("no library of the address sanitizer")
    outcome = traced([program], LD_PRELOAD=f"{os.path.realpath(runtime)}:{preload}")
    outcome.done.ok()
    assert outcome.done.stdout == "right\n"
    assert len(outcome.trace.of("read", file="file", layer="posix")) == 1
    alone = traced([program], step="alone")
    assert "ASan runtime does not come first" in alone.done.stderr


@pytest.mark.parametrize("sanitizer", ["thread", "undefined", "leak"])
def test_a_program_built_with_another_sanitizer(guest, traced, execute, tmp_path, sanitizer):
    """The thread sanitizer calls dlsym before its own functions work."""
    try:
        program = guest(ORDINARY, f"-fsanitize={sanitizer}")
    except AssertionError:
        pytest.skip(f"no -fsanitize={sanitizer} for this compiler")
    plain = execute([program], cwd=tmp_path)
    if plain.returncode != 0:
        pytest.skip(f"the program does not run without weir: {plain.stderr}")
    outcome = traced([program])
    assert (outcome.done.returncode, outcome.done.stdout) == (0, "right\n"), outcome.done.stderr
    assert len(outcome.trace.of("read", file="file", layer="posix")) == 1
    assert len(outcome.trace.of("fprintf", file="file")) == 100


NOT_READY = """
// As a sanitizer does: its functions fail until it has looked up the functions behind them.
static void* (*real[9])(void);
static int ready;
#define STANDS_BEFORE(i, R, name, parameters, arguments) \\
  R name parameters { if (!ready) abort(); return ((R (*) parameters)real[i]) arguments; }
STANDS_BEFORE(0, int, dl_iterate_phdr, (int (*see)(struct dl_phdr_info*, size_t, void*), void* with), (see, with))
STANDS_BEFORE(1, int, strcmp, (const char* a, const char* b), (a, b))
STANDS_BEFORE(2, int, strncmp, (const char* a, const char* b, size_t n), (a, b, n))
STANDS_BEFORE(3, size_t, strlen, (const char* a), (a))
STANDS_BEFORE(4, void*, memset, (void* p, int c, size_t n), (p, c, n))
STANDS_BEFORE(5, void*, memcpy, (void* p, const void* q, size_t n), (p, q, n))
STANDS_BEFORE(6, char*, strrchr, (const char* a, int c), (a, c))
STANDS_BEFORE(7, int, dladdr, (const void* a, Dl_info* to), (a, to))
STANDS_BEFORE(8, ssize_t, read, (int fd, void* to, size_t n), (fd, to, n))
__attribute__((constructor)) static void look_up(void) {
  const char* names[] = {"dl_iterate_phdr", "strcmp", "strncmp", "strlen", "memset", "memcpy", "strrchr", "dladdr", "read"};
  for (int i = 0; i < 9; ++i) real[i] = (void* (*)(void))dlsym(RTLD_NEXT, names[i]);
  ready = 1;
}
"""


def test_a_library_whose_functions_do_not_work_before_dlsym(guest, traced, preload):
    header = "#include <link.h>\n"
    other = guest(header + NOT_READY, "-shared", "-fPIC", "-fno-builtin", name="libnotready.so")
    outcome = traced([guest(ORDINARY)], LD_PRELOAD=f"{preload}:{other}")
    assert (outcome.done.returncode, outcome.done.stdout) == (0, "right\n"), outcome.done.stderr
    assert len(outcome.trace.of("read", file="file", layer="posix")) == 1


OTHER_CLOCK = """
int clock_gettime(clockid_t id, struct timespec* to) {
  long result = syscall(SYS_clock_gettime, id, to);
  to->tv_sec = to->tv_sec * 1000 - 820000000;
  return (int)result;
}
"""


def test_another_library_that_changes_the_clock(guest, traced, preload, weir, tmp_path):
    """weir measures by the kernel's clock."""
    other = guest("#include <time.h>\n" + OTHER_CLOCK, "-shared", "-fPIC", name="libclock.so")
    traced([guest(ORDINARY)], LD_PRELOAD=f"{preload}:{other}").done.ok()
    said = weir("report", tmp_path / "run").ok().stdout
    assert "calibration" not in said and "INCOMPLETE" not in said


def test_valgrind_finds_nothing_of_weirs(guest, traced, tmp_path):
    if shutil.which("valgrind") is None:
        pytest.skip("no valgrind")
    log = tmp_path / "valgrind.log"
    command = ["valgrind", "-q", "--error-exitcode=9", "--child-silent-after-fork=yes",
        f"--log-file={log}", guest(ORDINARY)]
    outcome = traced(command, timeout=120)
    assert (outcome.done.returncode, outcome.done.stdout) == (0,
        "right\n"), outcome.done.stderr + log.read_text()
    assert log.read_text() == ""
    assert len(outcome.trace.of("fprintf", file="file")) == 100


# Pages begin below the stack pointer and behind the end of a block of malloc, where memcheck allows
# no access. At the end of each process valgrind reads what is mapped, of the memory of a layer,
# too.
UNDER_VALGRIND = """
int main(void) {
  char data[50000] = {1}, few[100] = {2};
  int fd = open_new("a.dat");
  for (int i = 0; i < 4; ++i) MUST(write(fd, data, sizeof data) == sizeof data);
  for (int i = 0; i < 100; ++i) MUST(write(fd, few, sizeof few) == sizeof few);
  char* back = malloc(5000);
  MUST(lseek(fd, 200000, SEEK_SET) == 200000);
  for (int i = 0; i < 50; ++i) MUST(read(fd, few, sizeof few) == sizeof few && few[0] == 2);
  MUST(read(fd, back, 5000) == 5000 && back[0] == 2);
  free(back);
  char* large = calloc(200000, 1);  // checked in another way from 32 pages on
  for (int i = 0; i < 2; ++i) MUST(pread(fd, large, 200000, 0) == 200000 && large[50000] == 1);
  for (int i = 0; i < 2; ++i) MUST(pwrite(fd, large, 200000, 0) == 200000);
  free(large);
  char line[1000];
  FILE* maps = fopen("/proc/self/maps", "r");
  while (fgets(line, sizeof line, maps) != NULL) {
    unsigned long begin, end;
    if (strstr(line, "/arena.") == NULL) continue;
    MUST(sscanf(line, "%lx-%lx", &begin, &end) == 2 && end - begin < 64 << 20);
  }
  MUST(fclose(maps) == 0 && close(fd) == 0);
  puts("right");
  return 0;
}
"""


@pytest.mark.parametrize("stack", ["bufa:4096:4:always=1", "global:4096:4:always=1",
    "gather:65536:4:always=1", "forward:65536:8:always=1", "keep:always=1|cos"])
def test_valgrind_finds_nothing_of_the_layers(guest, execute, preload, tmp_path, stack):
    if shutil.which("valgrind") is None:
        pytest.skip("no valgrind")
    job = f"pytest-{uuid.uuid4().hex[:12]}"
    env = {"LD_PRELOAD": str(preload), "WEIR_JOB": job}
    env["WEIR_RULES"] = f"weir-rules 1\nrule source=test:1 name=*.dat stack={stack}|system\n"
    program = guest(UNDER_VALGRIND)
    log = tmp_path / "valgrind.log"
    command = ["valgrind", "-q", "--error-exitcode=9", "--child-silent-after-fork=yes",
        f"--log-file={log}", program]
    try:
        done = execute(command, env=env, cwd=tmp_path, timeout=60)
        assert log.read_text() == ""
        assert (done.returncode, done.stdout) == (0, "right\n"), done.stderr
    finally:
        subprocess.run(["rm", "-rf", f"/dev/shm/weir.{os.geteuid()}.{job}"], check=True)

