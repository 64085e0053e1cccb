// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/stack/elsewhere.h"

#include "layers/machinery/stack/build.h"
#include "layers/machinery/stack/inside.h"

namespace weir::stack {

constinit const NamesElsewhere* names_elsewhere = nullptr;
constinit const char* elsewhere_mistake = nullptr;

const char* begin_elsewhere(const rules::Stack& stack) {
  const char* mistake = nullptr;
  for (uint32_t i = 0; i < stack.count; ++i) {
    const Kind* const kind = find_kind(stack.layers[i].name);
    if (kind == nullptr || kind->names == nullptr) continue;
    const char* const why = kind->names->begin(stack.layers[i]);
    if (why == nullptr) base::store(&names_elsewhere, kind->names);
    else mistake = why;
  }
  return mistake;
}

void leave_elsewhere() {
  if (WEIR_LIKELY(!any_elsewhere())) return;
  const int before = errno;
  for (int fd = 0; fd <= highest_known(); ++fd) {
    const File* const f = known_at(fd);
    if (f == nullptr || f->descriptor != fd || f->left) continue;
    for (int i = 0; i < f->layer_count; ++i) {
      if (f->top[i].kind->names != nullptr) f->top[i].kind->names->leaves(f->top[i]);
    }
  }
  errno = before;
}

const rules::LayerSpec* layer_for(const char* absolute_path, const char* name) {
  const rules::Rule* const rule = rule_for(absolute_path);
  for (uint32_t i = 0; rule != nullptr && i < rule->stack.count; ++i) {
    if (rules::is(rule->stack.layers[i].name, name)) return &rule->stack.layers[i];
  }
  return nullptr;
}

}  // namespace weir::stack
