// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/stack/build.h"

#include <string.h>

#include "base/round.h"
#include "trace/process.h"
#include "layers/machinery/stack/busy.h"
#include "wire/format.h"

namespace weir::stack {
namespace {

constexpr uint64_t kPage = 4096;
// Files of 1 to 16 pages are used again among their like; larger ones by the first fit.
constexpr int kSizes = 17;
// So many lie unused before the oldest is used again: who still looks at it sees it closed.
constexpr int kRest = 8;

constinit const Kind* const* kinds = nullptr;
constinit int kind_count = 0;
constinit uint8_t name_bytes[64] = {};  // of their names: each open looks for some

// Files given back, oldest first. Linked by next_alike; guarded by busy.
struct Shelf {
  File* oldest;
  File* youngest;
  int count;
};
constinit Shelf shelves[kSizes] = {};
WEIR_BUSY(busy);

using Busy = BusyWith<&busy>;

using base::round_up;

File* take(uint64_t bytes) {
  const uint64_t pages = round_up(bytes, kPage) / kPage;
  if (pages < kSizes) {
    const Busy hold;
    Shelf& shelf = shelves[pages];
    if (shelf.count > kRest) {
      File* f = shelf.oldest;
      shelf.oldest = f->next_alike;
      --shelf.count;
      memset(static_cast<void*>(f), 0, bytes);
      f->pages = static_cast<uint32_t>(pages);
      return f;
    }
  }
  const long memory = base::map(pages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
  if (base::failed(memory)) return nullptr;
  auto* f = reinterpret_cast<File*>(memory);
  f->pages = static_cast<uint32_t>(pages);
  return f;
}

void begin_file(File* f, base::Text path) {
  f->descriptor = -1;
  f->unit = -1;
  memcpy(f->path, path.data, path.size);
  f->path[path.size] = 0;
}

#define WEIR_WAY(operation) \
  dispatch.operation = kind.operation != nullptr ? &layer : dispatch.operation
void add_to_dispatch(Dispatch& dispatch, Layer& layer) {
  const Kind& kind = *layer.kind;
  WEIR_WAY(open);
  if (!layer.passes_reads) WEIR_WAY(read);
  if (!layer.passes_writes) WEIR_WAY(write);
  WEIR_WAY(size);
  WEIR_WAY(truncate);
  WEIR_WAY(flush);
  WEIR_WAY(sync);
  WEIR_WAY(invalidate);
}
#undef WEIR_WAY

// From the bottom up.
void find_ways(File* f, Layer* layers) {
  Dispatch dispatch{};
  for (int i = f->layer_count - 1; i >= 0; --i) {
    layers[i].next = dispatch;
    add_to_dispatch(dispatch, layers[i]);
  }
  f->enter = dispatch;
}

struct Chosen {
  const Kind* kind;
  const rules::LayerSpec* spec;
  uint8_t position;
};

// The layers that take part; 0 when one of them is unknown.
int choose(const rules::Stack& stack, Chosen* to) {
  int count = 0;
  for (uint32_t i = 0; i < stack.count; ++i) {
    const Kind* kind = find_kind(stack.layers[i].name);
    if (kind == nullptr) return 0;
    if (strcmp(kind->name, "event") == 0 && !trace::recording()) continue;
    to[count++] = {kind, &stack.layers[i], static_cast<uint8_t>(i)};
  }
  return count;
}

uint64_t state_bytes(const Kind& kind) {
  return round_up(kind.state_bytes, 64) +
         round_up(static_cast<uint64_t>(kind.statistics_count) * 8, 64);
}

// Layers behind the file, each one's state behind them; then the dispatch, once more when they are
// known to pass something.
bool initialize(File* f, const Chosen* chosen, int count, char* layers_at, char* states_at) {
  auto* layers = reinterpret_cast<Layer*>(layers_at);
  f->top = layers;
  f->bottom = layers + count - 1;
  f->layer_count = static_cast<uint16_t>(count);
  bool begins_empty = true;
  for (int i = 0; i < count; ++i) {
    const Kind& kind = *chosen[i].kind;
    layers[i] = {&kind,
                 i + 1 < count ? layers + i + 1 : nullptr,
                 f,
                 chosen[i].spec,
                 reinterpret_cast<uint64_t*>(states_at),
                 chosen[i].position,
                 states_at + round_up(static_cast<uint64_t>(kind.statistics_count) * 8, 64),
                 {}};
    states_at += state_bytes(kind);
    const bool holds = (kind.flags & (kHolds | kTransforms)) != 0;
    f->holds |= holds;
    begins_empty &= !holds || (kind.flags & kBeginsEmpty) != 0;
    f->transforms |= (kind.flags & kTransforms) != 0;
    f->shares |= (kind.flags & kSharesNode) != 0;
  }
  f->empty = f->holds && begins_empty;
  find_ways(f, layers);
  for (int i = count - 1; i >= 0; --i) {
    if (layers[i].kind->create != nullptr && layers[i].kind->create(layers[i]) < 0) {
      for (++i; i < count; ++i) {
        if (layers[i].kind->close != nullptr) layers[i].kind->close(layers[i]);
      }
      return false;
    }
  }
  find_ways(f, layers);
  return true;
}

}  // namespace

void set_kinds(const Kind* const* all, int count) {
  kinds = all;
  kind_count = count < static_cast<int>(sizeof name_bytes) ? count : sizeof name_bytes;
  for (int i = 0; i < kind_count; ++i) name_bytes[i] = static_cast<uint8_t>(strlen(kinds[i]->name));
}

const Kind* find_kind(base::Text name) {
  for (int i = 0; i < kind_count; ++i) {
    if (name.size == name_bytes[i] && memcmp(name.data, kinds[i]->name, name.size) == 0)
      return kinds[i];
  }
  return nullptr;
}

uint8_t number_of(const Kind& kind) {
#define WEIR_LAYER(value, text) \
  if (strcmp(kind.name, text) == 0) return value;
#define WEIR_STATISTIC(layer, index, text, unit)
#include "wire/layers.def"
#undef WEIR_LAYER
#undef WEIR_STATISTIC
  return 0;
}

File* build(const rules::Rule& rule, base::Text path, bool* alone) {
  Chosen chosen[rules::kLayers];
  const int count = choose(rule.stack, chosen);
  *alone = count == 1;
  if (count <= 1) return nullptr;
  const uint64_t layers_at = round_up(sizeof(File) + path.size + 1, 64);
  const uint64_t states_at = round_up(layers_at + static_cast<uint64_t>(count) * sizeof(Layer), 64);
  uint64_t bytes = states_at;
  for (int i = 0; i < count; ++i) bytes += state_bytes(*chosen[i].kind);
  File* f = take(bytes);
  if (f == nullptr) return nullptr;
  begin_file(f, path);
  f->rule = static_cast<uint16_t>(rule.index);
  auto* base = reinterpret_cast<char*>(f);
  if (initialize(f, chosen, count, base + layers_at, base + states_at)) return f;
  give_back(f);
  return nullptr;
}

File* build_plain(base::Text path) {
  File* f = take(sizeof(File) + path.size + 1);
  if (f == nullptr) return nullptr;
  begin_file(f, path);
  f->left = true;
  return f;
}

namespace {

bool any_holds_above(const File* f, int layer) {
  while (--layer >= 0) {
    if ((f->top[layer].kind->flags & kHolds) != 0) return true;
  }
  return false;
}

}  // namespace

bool make_ready(File* f) {
  for (int i = f->layer_count - 1; i >= 0; --i) {
    Layer& layer = f->top[i];
    if (layer.kind->ready != nullptr && layer.kind->ready(layer) < 0) return false;
    if ((layer.kind->flags & kTransforms) == 0 || !any_holds_above(f, i)) continue;
    const Result size = layer.kind->size(layer);  // those above know the program's bytes alone
    if (size < 0) return false;
    f->size_at_open = static_cast<uint64_t>(size);
  }
  return true;
}

void close_layers(File* f) {
  for (int i = 0; i < f->layer_count; ++i) {
    if (f->top[i].kind->close != nullptr) f->top[i].kind->close(f->top[i]);
  }
}

void give_back(File* f) {
  f->left = true;
  if (f->pages >= kSizes) return;  // address space with a page or two touched
  const Busy hold;
  f->next_alike = nullptr;
  Shelf& shelf = shelves[f->pages];
  if (shelf.count++ == 0) {
    shelf.oldest = f;
  } else {
    shelf.youngest->next_alike = f;
  }
  shelf.youngest = f;
}

}  // namespace weir::stack
