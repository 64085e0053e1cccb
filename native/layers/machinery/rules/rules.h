// SPDX-License-Identifier: Apache-2.0
// The rules of a run: which stack of layers a file gets when it is opened, and which hints
// MPI_File_open gets. Python checks what users write and compiles it to one text, WEIR_RULES (its
// grammar: docs/formats/rules.md); here that text is parsed, once, and asked at each open. What a
// layer's arguments mean is left to the layer.
//
// Memory: one mapping, made by parse(). Every Text that points into it also ends with a zero, so
// .data serves as a C string. Asking allocates nothing, takes no lock, sets no errno, and may be
// done in a signal handler and in a forked child.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "layers/machinery/rules/pattern.h"

namespace weir::rules {

constexpr size_t kLargestTextBytes = 64u << 10;
constexpr uint32_t kLayers = 12;     // of one stack
constexpr uint32_t kArguments = 4;   // positional ones of one layer

struct Option {
  base::Text key, value;
};

// One layer of a stack, `bufa:1048576:2:direct=1`. Sizes are bytes already.
struct LayerSpec {
  base::Text name;
  uint64_t args[kArguments] = {};
  uint32_t arg_count = 0;
  uint32_t option_count = 0;
  const Option* options = nullptr;
};

// From the application down; the last one is always `system`.
struct Stack {
  LayerSpec layers[kLayers];
  uint32_t count = 0;
  // Whether the rule exempts the file: nothing but the system.
  bool plain() const { return count <= 1; }
};

struct Range {
  int64_t first, last;
};

struct List {
  const Range* ranges = nullptr;
  uint32_t count = 0;
};

enum class Access : uint8_t { kUnknown, kSequential, kDirect, kStream };
enum class Form : uint8_t { kUnknown, kFormatted, kUnformatted };
enum Mode : uint8_t {
  kRead = 1,
  kWrite = 2,
  kReadWrite = 4,
  kAppend = 8,
  kCreate = 16,
  kTruncate = 32
};

// What an open has to be for a rule to match; what is not given matches everything.
struct Conditions {
  Pattern name, path;
  base::Text directory;             // without a slash at its end, but for the root
  const base::Text* file_systems = nullptr;
  uint32_t file_system_count = 0;
  List units, ranks;
  Access access = Access::kUnknown;
  Form form = Form::kUnknown;
  uint8_t modes = 0;                // of Mode: any one matches
  uint64_t min_bytes = 0;
  uint64_t max_bytes = UINT64_MAX;
};

struct Rule {
  base::Text source;                // "rules.toml:12:1", for messages and the trace
  uint32_t index = 0;               // among the rules, from 0
  Conditions when;
  Stack stack;
};

struct Hints {
  base::Text source;
  uint32_t index = 0;               // among the hints, from 0
  Conditions when;
  const Option* pairs = nullptr;    // key and value for MPI_Info_set
  uint32_t count = 0;
};

struct Rules {
  const Rule* rules = nullptr;
  uint32_t rule_count = 0;
  const Hints* hints = nullptr;
  uint32_t hint_count = 0;
  void* storage = nullptr;
  size_t storage_bytes = 0;
  uint32_t mistake_line = 0;        // of the text, from 1, when parse() failed
};

constexpr uint64_t kAsk = UINT64_MAX;

// One open, as far as the caller knows it.
struct Open {
  const char* path;                 // absolute and normalised: make_absolute()
  int flags = 0;                    // as of open(2); fopen's "r+" is O_RDWR, and so on
  int fd = -1;                      // the file itself when it is open already
  int rank = -1;  // of the rank; -1: it has none, and rules with ranks do not match
  bool fortran = false;             // within an OPEN statement or an implicit open
  int unit = -1;                    // its unit; -1: not known (newunit=)
  Access access = Access::kUnknown;
  Form form = Form::kUnknown;
  uint64_t size = kAsk;             // bytes of the file, if known
  // Asked at most once for each match(), and only when a rule's answer depends on it.
  uint64_t (*ask_size)(const Open&) = nullptr;           // null: size_of
  base::Text (*ask_file_system)(const Open&) = nullptr;  // null: file_system_of
};

// Parses a compiled text (not kept). False with *mistake, a constant text, when it is not one; *out
// is then empty but for mistake_line. One mapping of memory; forget() gives it back.
bool parse(base::Text text, Rules* out, const char** mistake);
void forget(Rules* rules);

// The rules of this process, from WEIR_RULES. False when it is set and wrong; true with no rules
// when it is not set.
bool parse_environment(Rules* out, const char** mistake);

// The first rule that matches, or null.
const Rule* match(const Rules& rules, const Open& what);
// The first hints that match, or null.
const Hints* match_hints(const Rules& rules, const Open& what);

// A condition of a rule that an open does not meet.
enum Misfit : uint32_t {
  kWrongName = 1, kWrongPath = 2, kWrongDirectory = 4, kWrongMode = 8, kWrongRank = 16,
  kNotFortran = 32,  // the next three are then not looked at
  kWrongUnit = 64, kWrongAccess = 128, kWrongForm = 256, kWrongSize = 512, kWrongFileSystem = 1024,
};
// All that match() finds wrong with the open, as bits; 0: the rule matches.
uint32_t misfits(const Conditions& when, const Open& what);

// The path an open has: `path`, if relative completed by `directory` (absolute), without //, /. and
// /.. (as text: links are not followed). False when it does not fit in size bytes.
bool make_absolute(base::Text directory, base::Text path, char* to, size_t size);
// Whether make_absolute() keeps the file that a path stands for, whatever its components are: no
// `..`, which leads elsewhere behind a symbolic link, and no slash or `.` at its end, which
// only a directory may have.
bool is_exact(base::Text path);

// What the kernel says: bytes of the file (0 when there is none, or the open truncates it), and its
// file system as /proc/mounts names it ("" when not known). A file that does not exist yet has that
// of its directory.
uint64_t size_of(const Open& what);
base::Text file_system_of(const Open& what);

// A layer's arguments. A text that is no number, or missing, gives `otherwise`.
uint64_t argument(const LayerSpec& layer, uint32_t at, uint64_t otherwise);
bool option_text(const LayerSpec& layer, const char* key, base::Text* to);
uint64_t option_number(const LayerSpec& layer, const char* key, uint64_t otherwise);
double option_fraction(const LayerSpec& layer, const char* key, double otherwise);  // "0.01", "1"
// The number of "ENOSPC", or of "28"; 0 for anything else.
int errno_number(base::Text name);

inline bool is(base::Text text, const char* other) {
  return text.size == strlen(other) && memcmp(text.data, other, text.size) == 0;
}
inline bool has_layer(const Stack& stack, const char* name) {
  for (uint32_t i = 0; i < stack.count; ++i) {
    if (is(stack.layers[i].name, name)) return true;
  }
  return false;
}

}  // namespace weir::rules
