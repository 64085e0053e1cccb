// SPDX-License-Identifier: Apache-2.0
#include "output/format/grib/members.h"

#include <set>

#include "output/format/grib/bytes.h"

namespace weir::output::grib {
namespace {

constexpr int64_t kIndicator1 = 8, kOwnOctets = 40;
constexpr const char* kNumber = "perturbationNumber";

}  // namespace

Result<Members1::Place> Members1::ask(const PosixFile& file, const Message& message,
                                      std::span<const char> head) {
  Result<std::vector<char>> bytes = read_without_data(file, message);
  if (!bytes.ok()) return bytes.status();
  Result<Handle> handle = Handle::from_bytes(*bytes);
  if (!handle.ok()) return Place();  // then it is of no member
  Place place;
  const Result<int64_t> number = handle->whole(kNumber);
  const int64_t offset = handle->offset(kNumber);
  if (!number.ok() || offset < kIndicator1 + kOwnOctets || offset + 1 >= std::ssize(head))
    return place;
  const auto one = static_cast<int64_t>(take_number(head.data() + offset, 1)),
             two = static_cast<int64_t>(take_number(head.data() + offset, 2));
  if (*number != one && *number != two) return place;
  place.number = *number;
  place.bytes = *number == two && (*number != one || *number == 0) ? 2 : 1;
  place.at = offset - kIndicator1 - kOwnOctets;
  for (const char* key : {"numberOfForecastsInEnsemble", "totalNumber"}) {
    const Result<int64_t> ensemble = handle->whole(key);
    if (ensemble.ok() && place.ensemble == 0) place.ensemble = *ensemble;
  }
  return place;
}

Status Members1::find(const PosixFile& file, const Message& message, std::span<const char> head,
                      Identity* id) {
  if (id->edition != 1) return {};
  if (static_cast<int64_t>(take_number(head.data() + kIndicator1, 3)) <= kOwnOctets) return {};
  std::vector<char> key = id->product;
  key.push_back(static_cast<char>(id->centre));
  auto found = known_.find(key);
  if (found == known_.end()) {
    Result<Place> place = ask(file, message, head);
    if (!place.ok()) return place.status();
    found = known_.emplace(std::move(key), *place).first;
  }
  const Place& place = found->second;
  id->member = place.number > 0 || (place.number == 0 && place.ensemble > 0) ? place.number : -1;
  id->is_numbered = place.number >= 0;
  for (int64_t i = 0; i < place.bytes; i++)
    id->product[static_cast<size_t>(place.at + i)] = 0;
  return {};
}

void Members1::number_zeros(std::vector<Identity>* identities) {
  std::set<std::pair<std::vector<int64_t>, std::vector<char>>> of_ensembles;
  for (const Identity& id : *identities) {
    if (id.is_numbered && id.member > 0) of_ensembles.emplace(id.parameter, id.product);
  }
  for (Identity& id : *identities) {
    if (id.is_numbered && id.member < 0 && of_ensembles.contains({id.parameter, id.product}))
      id.member = 0;
  }
}

}  // namespace weir::output::grib
