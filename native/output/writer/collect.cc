// SPDX-License-Identifier: Apache-2.0
#include "output/writer/collect.h"

namespace weir::output::writer {
namespace {

Status collect_variable(Writer& writer, const Variable& variable, const Callbacks& model) {
  const auto values = model.gather(variable);
  if (!values.ok()) return values.status();
  const size_t points = (*values).size() / static_cast<size_t>(variable.records);
  for (int record = 0; record < variable.records; ++record) {
    const auto bytes = model.encode(
        variable, record, (*values).subspan(static_cast<size_t>(record) * points, points));
    if (!bytes.ok()) return bytes.status();
    WEIR_TRY(writer.append(variable.file, *bytes, model.lifetime));
  }
  return {};
}

}  // namespace

Status collect(Writer& writer, const std::vector<Variable>& variables, const Callbacks& model) {
  Status first;
  for (size_t i = 0; first.ok() && i < variables.size(); ++i)
    first = collect_variable(writer, variables[i], model);
  const Status ended = writer.end_step();
  return first.ok() ? ended : first;
}

}  // namespace weir::output::writer
