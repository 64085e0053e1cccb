// SPDX-License-Identifier: Apache-2.0
// What is notified of a file when it is opened through MPI-IO: how many ranks open it, the hints
// that were given and those in force, and what the file system says of its layout. Names without
// records, reported by the communicator's first rank (docs/formats/trace.md, 3.8).
#include <string.h>
#include <strings.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "hook/mpi/io.h"
#include "base/scratch.h"
#include "base/syscall.h"

namespace weir::hook {
namespace {

constexpr size_t kKeyBytes = 256,
                 kValueBytes = 1025;  // the longest MPI_MAX_INFO_KEY and _VAL known are MPICH's
constexpr int kSequential = 256;  // MPI_MODE_SEQUENTIAL, of every implementation since ROMIO
constexpr int kHints = 256;  // an implementation has some thirty
constexpr uint32_t kLustre = 0x0bd00bd0;  // f_type of statfs
constexpr uint32_t kLayoutV1 = 0x0bd10bd0, kLayoutV3 = 0x0bd30bd0;

// The kind, the absolute path, a key and its value, a line each. What does not fit is not recorded.
void note(const char* kind, const char* path, const char* key, const char* value) {
  const base::Scratch room;
  char* const text = room.data();
  if (text == nullptr) return;
  constexpr size_t kHalf = base::Scratch::kBytes / 2;
  char* const directory = text + kHalf;
  base::Writer name(text, kHalf);
  name.add(kind).add("\n");
  if (path[0] != '/' && !base::failed(base::working_directory(directory, kHalf)))
    name.add(directory).add("/");
  name.add(path).add("\n").add(key).add("\n").add(value);
  if (!name.cut()) trace::process().names().id(name.view(), wire::NameSource::kGiven);
}

void note_number(const char* kind, const char* path, const char* key, uint64_t value) {
  char digits[24];
  base::Writer text(digits, sizeof digits);
  text.add_number(value);
  note(kind, path, key, digits);
}

// What lies in the attribute lustre.lov (lustre_user.h): magic, pattern, identity of 16 bytes, then
// these. Layouts of several components have another magic: what holds for a part of the file alone
// is not recorded.
struct LustreLayout {
  uint32_t magic, pattern;
  uint64_t identity[2];
  uint32_t stripe_bytes;
  uint16_t stripes, first;
};

void note_layout(const char* path) {
  struct statfs about;
  if (base::failed(base::system_call(SYS_statfs, reinterpret_cast<long>(path),
                                     reinterpret_cast<long>(&about))))
    return;
  note_number("layout", path, "file_system", static_cast<uint32_t>(about.f_type));
  note_number("layout", path, "block_bytes", static_cast<uint64_t>(about.f_bsize));
  if (static_cast<uint32_t>(about.f_type) != kLustre) return;
  LustreLayout layout{};
  {
    const base::Scratch room;
    if (room.data() == nullptr) return;
    const long size = base::system_call(
        SYS_getxattr, reinterpret_cast<long>(path), reinterpret_cast<long>("lustre.lov"),
        reinterpret_cast<long>(room.data()), static_cast<long>(base::Scratch::kBytes));
    if (size >= static_cast<long>(sizeof layout)) memcpy(&layout, room.data(), sizeof layout);
  }
  if (layout.magic != kLayoutV1 && layout.magic != kLayoutV3) return;
  note_number("layout", path, "stripe_bytes", layout.stripe_bytes);
  note_number("layout", path, "stripes", layout.stripes);
}

void note_hints(const char* kind, const char* path, Handle info) {
  const auto count = profiled<int (*)(Handle, int*)>("PMPI_Info_get_nkeys");
  const auto nth = profiled<int (*)(Handle, int, char*)>("PMPI_Info_get_nthkey");
  const auto get = profiled<int (*)(Handle, const char*, int, char*, int*)>("PMPI_Info_get");
  int keys = 0;
  if (count == nullptr || nth == nullptr || get == nullptr || count(info, &keys) != 0) return;
  for (int i = 0; i < keys && i < kHints; ++i) {
    char key[kKeyBytes] = {}, value[kValueBytes] = {};
    int found = 0;
    if (nth(info, i, key) != 0 || get(info, key, kValueBytes - 1, value, &found) != 0 || found == 0)
      continue;
    note(kind, path, key, value);
  }
}

void note_hints_in_force(const char* path, Handle file) {
  const auto get = profiled<int (*)(Handle, Handle*)>("PMPI_File_get_info");
  const auto free = profiled<int (*)(Handle*)>("PMPI_Info_free");
  Handle info = 0;
  if (get == nullptr || free == nullptr || get(file, &info) != 0 || is_no_info(info)) return;
  note_hints("hint", path, info);
  free(&info);
}

int asked(const char* function, Handle communicator) {
  const auto ask = profiled<int (*)(Handle, int*)>(function);
  int answer = 0;
  return ask != nullptr && ask(communicator, &answer) == 0 ? answer : -1;
}

}  // namespace

// Only the low half of an int's register is meant.
bool is_no_info(Handle info) {
  const Handle open_mpi_none = open_mpi_object("ompi_mpi_info_null");
  return open_mpi_none != 0 ? info == open_mpi_none : static_cast<uint32_t>(info) == kMpichNoInfo;
}

// "lustre:/scratch/x". Other names have colons of their own (wrfout_d01_2026-01-01_00:00:00), and
// OMPIO knows no prefixes: there "ufs:x" is the file of that name.
const char* without_file_system(const char* name) {
  constexpr const char* kPrefixes[] = {
      "ufs:",    "nfs:",     "xfs:",     "lustre:", "gpfs:",  "panfs:", "pvfs2:",      "pvfs:",
      "testfs:", "daos:",    "ime:",     "pfs:",    "piofs:", "sfs:",   "bglockless:", "zoidfs:",
      "bg:",     "gridftp:", "quobyte:", "ntfs:",   "hfs:"};  // of all versions of ROMIO
  for (const char* prefix : kPrefixes) {
    const size_t length = strlen(prefix);
    if (strncasecmp(name, prefix, length) != 0) continue;
    const bool exists =
        !base::failed(base::system_call(SYS_access, reinterpret_cast<long>(name), F_OK));
    return exists ? name : name + length;
  }
  return name;
}

const char* text_of_fortran(const char* name, size_t length, char* room, size_t size) {
  while (length > 0 && name[length - 1] == ' ') --length;
  if (length >= size) return nullptr;
  memcpy(room, name, length);
  room[length] = 0;
  return room;
}

void record_opened(const OpenedMpiFile& what, int error, Span span) {
  const int before = errno;
  const char* const path = without_file_system(what.path);
  const uint32_t name = trace::process().names().path_id(path);
  int ranks = 0;
  if (error == 0) {
    MpiFile* const file = remember_mpi_file(what.file, name);
    // To ask a sequential file for a position is an error, and the program's error handler would
    // hear of it.
    if (file != nullptr && (what.mode & kSequential) != 0) file->view_bytes = 0;
    ranks = asked("PMPI_Comm_size", what.communicator);
    if (trace::process().level() != wire::Level::kSummary &&
        asked("PMPI_Comm_rank", what.communicator) == 0) {
      if (!is_no_info(what.info)) note_hints("hint given", path, what.info);
      note_hints_in_force(path, what.file);
      note_layout(path);
    }
  }
  keep_file_call(Op::kMpiFileOpen, name, error, span, static_cast<uint64_t>(what.mode),
                 ranks > 0 ? static_cast<uint64_t>(ranks) : 0);
  errno = before;
}

}  // namespace weir::hook
