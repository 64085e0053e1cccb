// SPDX-License-Identifier: Apache-2.0
#include "hook/foreign.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/syscall.h"

namespace weir::hook {
namespace {

constexpr int kDeepestScript = 4;  // as the kernel's
constexpr size_t kHeadBytes = 1024, kPathBytes = 1024;
constexpr char kPreload[] = "LD_PRELOAD=", kLibrary[] = "libweir-preload";
constexpr size_t kPreloadBytes = sizeof kPreload - 1;

bool is_preload(const char* entry) { return strncmp(entry, kPreload, kPreloadBytes) == 0; }

// The first bytes of a regular file that may be executed; 0: it is none, or cannot be read.
size_t read_head(int directory, const char* path, char* head, int* fd) {
  *fd = -1;
  if (base::system_call(SYS_faccessat, directory, reinterpret_cast<long>(path), 1 /* X_OK */) != 0)
    return 0;
  const long opened = base::open_at(directory, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (base::failed(opened)) return 0;
  *fd = static_cast<int>(opened);
  struct stat about;
  const bool is_file =
      base::system_call(SYS_fstat, opened, reinterpret_cast<long>(&about)) == 0 &&
      S_ISREG(about.st_mode);
  const long got = is_file ? base::system_call(SYS_pread64, opened, reinterpret_cast<long>(head),
                                               kHeadBytes, 0)
                           : 0;
  return got > 0 ? static_cast<size_t>(got) : 0;
}

bool is_foreign(const char* loader) {
  const char* const slash = strrchr(loader, '/');
  const char* const name = slash != nullptr ? slash + 1 : loader;
  return strstr(name, "musl") != nullptr || strstr(name, "uClibc") != nullptr ||
         strncmp(name, "linker", 6) == 0;  // Bionic's
}

base::Text loader_of_elf(int fd, const char* head, size_t bytes, char* room, size_t size) {
  if (bytes < sizeof(Elf64_Ehdr)) return {};
  Elf64_Ehdr header;
  memcpy(&header, head, sizeof header);
  const bool is_small = header.e_ident[EI_CLASS] == ELFCLASS32;
  if (is_small) return base::Writer(room, size).add("32-bit").view();
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr)) return {};
  for (size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr part;
    const size_t at = header.e_phoff + i * sizeof part;
    if (at + sizeof part > bytes) break;
    memcpy(&part, head + at, sizeof part);
    if (part.p_type != PT_INTERP) continue;
    const size_t most = part.p_filesz < size - 1 ? part.p_filesz : size - 1;
    const long got = base::system_call(SYS_pread64, fd, reinterpret_cast<long>(room), most,
                                       static_cast<long>(part.p_offset));
    if (got <= 0) return {};
    room[got] = 0;
    return is_foreign(room) ? base::text(room) : base::Text{};
  }
  return {};
}

// "#! /bin/sh -e": the path alone, into `to`. False: it is no script.
bool interpreter_of_script(const char* head, size_t bytes, char* to, size_t size) {
  if (bytes < 3 || head[0] != '#' || head[1] != '!') return false;
  size_t begin = 2, end;
  while (begin < bytes && (head[begin] == ' ' || head[begin] == '\t')) ++begin;
  for (end = begin; end < bytes && strchr(" \t\n", head[end]) == nullptr; ++end) {
  }
  if (end == begin || end == bytes) return false;
  return !base::Writer(to, size).add({head + begin, end - begin}).cut();
}

base::Text loader_of(int directory, const char* path, char* room, size_t size) {
  char head[kHeadBytes], script[kPathBytes];
  for (int depth = 0; depth <= kDeepestScript; ++depth) {
    int fd;
    const size_t bytes = read_head(directory, path, head, &fd);
    const bool is_elf = bytes > EI_NIDENT && memcmp(head, ELFMAG, SELFMAG) == 0;
    const base::Text loader = is_elf ? loader_of_elf(fd, head, bytes, room, size) : base::Text{};
    if (fd >= 0) base::close_fd(fd);
    if (is_elf || !interpreter_of_script(head, bytes, script, sizeof script)) return loader;
    directory = AT_FDCWD;
    path = script;
  }
  return {};
}

// The first file in PATH that may be executed, as execvp looks for it. False: there is none.
bool find_in_path(const char* name, char* to, size_t size) {
  const char* list = getenv("PATH");
  if (list == nullptr) list = "/bin:/usr/bin";
  for (;;) {
    const char* const end = strchrnul(list, ':');
    base::Writer path(to, size);
    path.add({list, static_cast<size_t>(end - list)}).add(end == list ? "" : "/").add(name);
    if (!path.cut() && base::system_call(SYS_faccessat, AT_FDCWD, reinterpret_cast<long>(to),
                                         1 /* X_OK */) == 0)
      return true;
    if (*end == 0) return false;
    list = end + 1;
  }
}

}  // namespace

bool preloads_library(char* const* environment) {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    if (is_preload(*environment)) return strstr(*environment, kLibrary) != nullptr;
  }
  return false;
}

base::Text foreign_loader(const ToExecute& program, char* room, size_t size) {
  if (program.path == nullptr || *program.path == 0) return {};
  const bool searches = program.searches && strchr(program.path, '/') == nullptr;
  char found[kPathBytes];
  const base::HoldsDescriptor held;
  if (searches && !find_in_path(program.path, found, sizeof found)) return {};
  return searches ? loader_of(AT_FDCWD, found, room, size)
                  : loader_of(program.directory, program.path, room, size);
}

EnvironmentSize size_of(char* const* environment) {
  EnvironmentSize size;
  for (; environment[size.entries] != nullptr; ++size.entries) {
    const char* const entry = environment[size.entries];
    if (is_preload(entry)) size.preload_bytes += strlen(entry) + 1;
  }
  return size;
}

char* const* without_library(char* const* environment, char** to, char* text) {
  char** next = to;
  for (; *environment != nullptr; ++environment) {
    if (!is_preload(*environment)) {
      *next++ = *environment;
      continue;
    }
    base::Writer left(text, strlen(*environment) + 1);
    left.add(kPreload);
    const char* at = *environment + kPreloadBytes;
    while (*at != 0) {  // entries are separated by colons or blanks
      const size_t bytes = strcspn(at, ": ");
      const base::Text entry{at, bytes};
      const bool is_own = memmem(entry.data, entry.size, kLibrary, sizeof kLibrary - 1) != nullptr;
      if (bytes != 0 && !is_own)
        left.add(left.view().size > kPreloadBytes ? ":" : "").add(entry);
      at += bytes + (at[bytes] != 0 ? 1 : 0);
    }
    if (left.view().size > kPreloadBytes) *next++ = text;
    text += left.view().size + 1;
  }
  *next = nullptr;
  return to;
}

}  // namespace weir::hook
