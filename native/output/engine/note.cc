// SPDX-License-Identifier: Apache-2.0
#include "output/engine/note.h"

#include <string.h>

namespace weir::output {

namespace {

struct Fixed {
  NoteKind kind;
  int32_t group;
  Frame frame;
  MissingField missing;
  int32_t code, in_file, to_the_end, apart;
};

}  // namespace

std::vector<char> Note::encode() const {
  const Fixed fixed{kind, group, frame, missing, status.code(), in_file, to_the_end, apart};
  std::vector<char> bytes(sizeof fixed + status.message().size());
  memcpy(bytes.data(), &fixed, sizeof fixed);
  memcpy(bytes.data() + sizeof fixed, status.message().data(), status.message().size());
  return bytes;
}

Result<Note> Note::decode(std::span<const char> bytes) {
  Fixed fixed;
  if (bytes.size() < sizeof fixed)
    return Status{WEIR_E_INTERNAL, "a message between ranks came damaged"};
  memcpy(static_cast<void*>(&fixed), bytes.data(), sizeof fixed);
  Note note{fixed.kind,         fixed.group,           fixed.frame,     fixed.missing, {},
            fixed.in_file != 0, fixed.to_the_end != 0, fixed.apart != 0};
  if (fixed.code != WEIR_OK)
    note.status = {static_cast<weir_status>(fixed.code),
                   {bytes.begin() + sizeof fixed, bytes.end()}};
  return note;
}

}  // namespace weir::output
