// SPDX-License-Identifier: Apache-2.0
// What the layer's parts share: its lock, and its open files.
#pragma once

#include "layers/machinery/stack/busy.h"
#include "layers/machinery/stack/names_of_layers.h"
#include "layers/pack/container.h"
#include "layers/pack/declared.h"

namespace weir::layers::pack {

using stack::Layer;
using stack::Place;
using stack::Result;

extern WEIR_OWN uint32_t busy;
using Busy = stack::BusyWith<&busy>;

// Memory that an opening has of those that this process keeps (memory.cc).
struct Used {
  uint64_t number;  // of the memory, 0: it is the opening's own
  uint32_t times_lent;
};

// What fstat said of it last.
struct Left {
  uint64_t bytes;
  uint32_t user, group;
  uint16_t mode;
  bool ends_there;  // its position is behind the last byte
};

// Whose files this process makes.
struct Owner {
  uint32_t user, group;
};
Owner own_user();

// Of an append, while other processes make the file shorter.
inline constexpr int kTries = 100;

// What has come to an opening that has its memory alone, as long as nothing but reads and writes
// has (File::unsettled; unsettled.cc).
enum Stage : uint8_t {
  kPlain,  // whatever may have: the memory is as the kernel is to show it
  kFresh,  // nothing: the memory, and its position, are another file's
  kWhole,  // for writing: one write, which all of the file is from
};

// Of one opening.
struct State {
  uint64_t birth;    // the file's
  Name* name;        // of it, and where, as long as nothing was left
  Container* container;
  uint32_t times_left;
  Used used;         // its memory
  Left left;
  Stage stage;
  bool is_own;       // the memory has the file's owner
  bool is_drafted;   // what the one write wrote lies where the record would have it (append.cc)
  uint32_t name_bytes;
  Version contents;  // when it was opened; `bytes` is what the memory is to have of them
  uint64_t position; // of a fresh one for reading
  timespec modified; // by the one write
  uint64_t written;  // since its size was looked at
  uint64_t turned;   // turned_real() when it was last found in memory
  bool late;         // the process is ending: the path alone says which file it is
  char* renamed;     // that path, where it is not the one that was opened; null: it is
  bool owes;         // made or emptied by this open: stored even if nothing differs
};
inline State& state(Layer& l) { return *static_cast<State*>(l.state()); }

// The name of an open file, where it has gone; null: it was removed. Busy is held.
Name* name_of(Layer& l, Container** container);
// The memory of a file that is open somewhere (live.cc): opened again for the program, as one more
// opening; -ENOENT: nobody has it open. From then on nobody uses it again for another file.
long open_live(Container& c, Name* n, int flags);
// The same for weir itself. None of these closes a descriptor of it in a process that has the file
// open: that would end the locks by fcntl which the process has on it. Busy is held.
long stat_live(Container& c, Name* n, struct stat* to);
long change_live(Container& c, Name* n, const stack::Change& change);
class LiveMemory {  // for reading
 public:
  LiveMemory(Container& c, Name* n);
  ~LiveMemory();
  LiveMemory(const LiveMemory&) = delete;
  LiveMemory& operator=(const LiveMemory&) = delete;

  long result() const { return fd_; }  // -errno: nobody has it open
  bool is_there() const { return fd_ >= 0; }
  int fd() const { return static_cast<int>(fd_); }
  uint64_t number() const { return number_; }
  long truncate(uint64_t bytes) const;

 private:
  long fd_;
  uint64_t number_ = 0;
  bool is_own_ = false;
};
// Whether a descriptor is the memory of some file, of whatever process.
bool is_any_memory(int fd);
// New memory, as memfd_create. begin_live: it is this name's, open under a descriptor.
long make_memory(int flags, uint64_t* number);
// Nobody can write into the memory any more: a write fails with EPERM. False: somebody has it
// mapped for writing.
bool seal(int memory);
bool is_sealed(int memory);
// False: another process has opened, stored or changed the file since it was `before`. unsettled:
// as in Name.
bool begin_live(const Segment& s, Name* n, uint64_t number, int fd, const Seen& before,
                uint32_t unsettled);
// The same memory is open under one more descriptor; under one fewer.
void add_live(const Segment& s, Name* n, int fd);
// end_live: true when no other opening has ever had the memory of that number.
bool end_live(const Segment& s, Name* n, int fd, uint64_t number);
// What lies under one name is that of another from now on.
void move_live(Name* from, Name* to);
// memory.cc: memory under the lowest free number, which this process keeps and uses again: to make
// one and to drop it costs more than a small file's bytes. Busy is held.
struct Taken {
  long fd;          // the program's; -errno
  int fill;         // where contents of that size go; they replace what is there
  uint64_t number;
  bool is_kept;
  bool reads;       // fd is for reading alone, as the program asked
  base::Identity file;  // number 0: not asked for
  uint32_t unsettled = 0;  // as in Name
};
// settles_later: the memory, and its position, may be as they were.
Taken take_memory(int flags, uint64_t bytes, const Owner& owner, bool settles_later);
void set_mode(const Taken& t, uint16_t mode);
// is_clean: nobody but the opening that ends could reach it. left: of one that was for writing.
void end_memory(const Used& used, bool is_clean, const Left& left);
// Memory for an opening, with the contents of a version in it: the program's descriptor, or -errno;
// -EAGAIN: the file is another's, or another, since it was `before`.
long open_memory(Container& c, Name* n, const Version& v, const stack::Opening& o,
                 const Owner& owner, Layer& l, const Seen& before);
// In a forked child: those are the parent's.
void forget_memory();
// The contents of one name become those of another (or its own once more), with mode, owner and
// times of `as`. 0 or an errno. Busy is held.
int store_copy(Container& c, const Name* from, const Version& as, Name* to);
// The memory's own descriptor becomes the file: contents, time. 0 or an errno.
int fill_memory(Container& c, const Used& used, const Version& v, uint32_t name_bytes);
// The position behind so many bytes; no call where that is where it was left last.
void move_behind(const Used& used, int fd, uint64_t bytes);

// unsettled.cc: openings that are unsettled, whatever Busy is. settle: that is over, but where the
// contents cannot be had any more.
void settle(Layer& l);
// A read or a write while it is. kPass: it was over by then.
Result read_fresh(Layer& l, const stack::Transfer& t);
Result write_first(Layer& l, const stack::Transfer& t);
// What one write has made is stored without a look at the memory. kPass: that is not known.
Result store_whole(Layer& l);
// Contents cut or made longer, without an opening. 0 or -errno. Busy is held.
Result truncate_name(Container& c, Name* n, uint64_t bytes);
// What stat says of a version.
void fill_stat(const Container& c, const Version& v, struct stat* to);
bool is_allowed(const Version& v, int mode);
Result not_allowed(const Version& v, int flags);  // to open it so: 0 or -EACCES

// A file of the file system has been opened under the name, and perhaps made.
void note_real(const stack::GivenPath& path);
// The kernel has opened the file, perhaps by a link, and perhaps made it beside the packed one.
Result opened(const stack::GivenPath& path, int flags);
// What somebody has open, as it is now, becomes a real file. 0 or -errno. Busy is held.
Result make_live_real(Container& c, Name* n);
// A copy of an open file's contents in a file of the file system; the descriptor or -errno.
Result make_real_file(Layer& l);
// The same, or of the one that another process has made of the same memory. always: also of one
// that is open for reading alone.
Result make_open_real(Layer& l, bool always);
// The file leaves its memory where another process has made a real one of it.
void follow_real(Layer& l);
// Whether so many bytes are more than the rule's limit.
bool is_large(Layer& l, uint64_t bytes);
// Its contents into the container. 0 or -errno.
Result store(Layer& l);

extern const stack::NamesOfLayer kNames;

}  // namespace weir::layers::pack
