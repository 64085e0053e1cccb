// SPDX-License-Identifier: Apache-2.0
#include "layers/machinery/rules/rules.h"

#include "reader/weir_rules.h"

using namespace weir;

namespace {

// An open that carries its answer.
struct Known : rules::Open {
  const char* file_system;
};

}  // namespace

#define WEIR_READER_API extern "C" __attribute__((visibility("default")))

WEIR_READER_API int64_t weir_rules_misfits(const char* compiled, const weir_rules_open* open) {
  rules::Rules known;
  const char* mistake = nullptr;
  if (!rules::parse(base::text(compiled), &known, &mistake)) return -1;
  Known what{{open->path}, open->file_system};
  what.flags = open->flags;
  what.rank = open->rank;
  what.fortran = open->fortran != 0;
  what.unit = open->unit;
  what.access = static_cast<rules::Access>(open->access);
  what.form = static_cast<rules::Form>(open->form);
  what.size = open->size_bytes;
  what.ask_file_system = [](const rules::Open& one) {
    return base::text(static_cast<const Known&>(one).file_system);
  };
  int64_t found = -1;
  if (known.rule_count != 0) found = rules::misfits(known.rules[0].when, what);
  else if (known.hint_count != 0) found = rules::misfits(known.hints[0].when, what);
  rules::forget(&known);
  return found;
}

WEIR_READER_API int32_t weir_rules_fits(const char* pattern, const char* text) {
  return rules::prepare(base::text(pattern)).matches(base::text(text)) ? 1 : 0;
}

WEIR_READER_API void weir_rules_file_system(const char* path, char* to, uint64_t size) {
  const base::Text kind = rules::file_system_of(rules::Open{path});
  const size_t n = kind.size < size ? kind.size : 0;
  memcpy(to, kind.data, n);
  to[n] = 0;
}
