// SPDX-License-Identifier: Apache-2.0
// A file's stack from the rule that matched: which kinds there are, and memory for files. Memory
// comes from the kernel in pages, is used again and never given back, so that a late look at a
// closed file reads a File.
#pragma once

#include "base/text.h"
#include "layers/machinery/rules/rules.h"
#include "layers/machinery/stack/file.h"

namespace weir::stack {

// All kinds that exist; the array and what it points to stay.
void set_kinds(const Kind* const* kinds, int count);
const Kind* find_kind(base::Text name);
// Its number in the trace (layer.toml), 0: unknown.
uint8_t number_of(const Kind& kind);

// A file with its layers created, not opened; null: no memory, or a layer refused. Without a trace
// the event layers are left out; a stack that comes down to the system alone has no File either
// (*alone). The file is the caller's until it is entered in the table; who does not enter it calls
// close_layers() and give_back(). Cost: create() of each layer; memory of a file given back, else
// a mapping.
File* build(const rules::Rule& rule, base::Text path, bool* alone);
// One without layers: known for the node's registry.
File* build_plain(base::Text path);
// Calls ready of each layer, from the bottom up. False: one refused.
bool make_ready(File* f);
// Calls close of each layer, top down. The memory stays the file's.
void close_layers(File* f);
void give_back(File* f);

}  // namespace weir::stack
