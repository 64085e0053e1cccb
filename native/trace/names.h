// SPDX-License-Identifier: Apache-2.0
// File names of the process: text to id, once per text. Lock-free, callable from any thread and
// from signal handlers; a race at worst gives one text two ids, which the reader merges. After fork
// the child goes on with the parent's ids.
#pragma once

#include <stdint.h>

#include "base/text.h"
#include "wire/format.h"

namespace weir::trace {

class Names {
 public:
  // The table's memory; before begin(). False when there is none.
  bool reserve_table();
  // The first chunk, already begun.
  void begin(wire::ChunkHeader* first) { chunk_ = first; }
  // In a forked child: entries so far stay known, new ones go to the child's own chunk.
  void begin_after_fork(wire::ChunkHeader* first);

  // Id of the text (0: it could not be kept), from wire::kOtherNames on if it names no file. Cost
  // of a known name: one hash of the text and one comparison.
  uint32_t id(base::Text name, wire::NameSource source) { return find({}, name, source)->id; }

  // The same for a path as the program gave it: a relative one is completed by the working
  // directory.
  uint32_t path_id(const char* path);
  // For *at calls: relative to a directory whose own name is known.
  uint32_t path_id(base::Text directory, base::Text path);

  void set_working_directory();

  // A text of its own, which no record bears (docs/formats/trace.md, section 3.2). Also in a forked
  // child that has no chunk yet.
  void note(base::Text text);

 private:
  const wire::NameEntry* find(base::Text prefix, base::Text name, wire::NameSource source);
  [[gnu::noinline]] const wire::NameEntry* search(base::Text prefix, base::Text name,
                                                  wire::NameSource source, uint64_t h);
  const wire::NameEntry* add(base::Text prefix, base::Text name, wire::NameSource source);
  void remember(uint64_t* place, uint64_t slot, uint32_t newest);
  wire::NameEntry* reserve(uint64_t bytes);

  uint64_t* slots_ = nullptr;  // 16 bits of the hash, 48 bits of the entry's address
  uint64_t filled_ = 0;
  uint32_t newest_ = 0;  // of the tables
  wire::ChunkHeader* chunk_ = nullptr;
  const wire::NameEntry* directory_ = nullptr;
  uint32_t next_id_ = 1;
  uint32_t next_of_others_ = wire::kOtherNames;
};

}  // namespace weir::trace
