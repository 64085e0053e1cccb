// SPDX-License-Identifier: Apache-2.0
// Values that their type in files cannot hold: counted by the owners, reported by the first of
// them.
#include <cstring>

#include "output/engine/writer.h"
#include "output/model/text.h"

namespace weir::output {

namespace {

bool any_may_lose(const Section& fields) {
  for (const Column& c : fields.columns) {
    const Type type =
        c.operation == WEIR_INSTANT ? c.type : Accumulator::result_type(c.operation, c.type);
    if (c.packing || may_lose(type, c.file_type)) return true;
  }
  return false;
}

// "level 1, row 3, column 5": all from 0.
std::string place_in_words(const Grid& grid, const Column& column, int64_t element) {
  const int64_t point = element % column.shape.points;
  std::string text = column.shape.levels > 1
                         ? "level " + std::to_string(element / column.shape.points) + ", "
                         : "";
  if (grid.one_dimensional()) return text + "cell " + std::to_string(point);
  return text + "row " + std::to_string(point / grid.nx) + ", column " +
         std::to_string(point % grid.nx);
}

std::string in_words(const Packing& packing) {
  return " packed with scale_factor " + number_text(packing.scale) + " and add_offset " +
         number_text(packing.offset);
}

std::string in_words(const Catalogue& catalogue, const Column& column, const Faults& lost) {
  const Field& field = catalogue.fields[static_cast<size_t>(column.field)];
  const Filling filling = column.filling();
  const bool real = column.file_type == WEIR_FLOAT32 || column.file_type == WEIR_FLOAT64;
  return "field " + quoted(field.name) + ": " + std::to_string(lost.count) +
         (lost.count == 1 ? " value is" : " values are") + " outside of what " +
         name_of(column.file_type) + (column.packing ? in_words(*column.packing) : "") +
         " holds (the first: " + place_in_words(catalogue.grid_of(field), column, lost.first) +
         ", counted from 0, is " + number_text(lost.value) + "), written as " +
         (filling.missing ? "the missing value " : "the fill value ") +
         (real ? number_text(filling.value.real) : std::to_string(filling.value.whole));
}

}  // namespace

void Writer::remark(const Status& more) {
  remark_ = remark_.ok() ? more : Status(remark_.code(), remark_.message() + "; " + more.message());
}

Status Writer::tell_faults(const Frame& frame, Open& open) {
  const Section& fields = setup_.layout.streams[static_cast<size_t>(frame.stream)].fields;
  if (!any_may_lose(fields)) return {};
  Team& owners = team(frame.stream);
  const size_t bytes = lost_.size() * sizeof(Faults);
  Result<std::vector<std::vector<char>>> all =
      owners.gather({reinterpret_cast<const char*>(lost_.data()), bytes}, 0);
  if (!all.ok()) return all.status();
  if (owners.rank() != 0) return {};
  std::string text;
  for (size_t c = 0; c < lost_.size(); ++c) {
    Faults sum;
    for (const std::vector<char>& of_owner : *all) {
      Faults part;
      if (of_owner.size() != bytes)
        return {WEIR_E_INTERNAL, "an owner's count of lost values came damaged"};
      memcpy(&part, of_owner.data() + c * sizeof part, sizeof part);
      sum.add(part.count, part.first, part.value);
    }
    if (sum.count == 0 || !open.reported.insert(c).second) continue;
    text += (text.empty() ? "" : "; ") + in_words(setup_.catalogue, fields.columns[c], sum);
  }
  if (text.empty()) return {};
  remark({WEIR_E_VALUE,
          "stream " + quoted(setup_.catalogue.streams[static_cast<size_t>(frame.stream)].name) +
              ", step " + std::to_string(frame.step) + ", file " + open.path + ": " + text +
              "; of later ones in this file nothing is said"});
  return {};
}

}  // namespace weir::output
