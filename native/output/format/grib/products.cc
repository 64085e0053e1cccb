// SPDX-License-Identifier: Apache-2.0
#include "output/format/grib/products.h"

#include <map>
#include <mutex>

#include "output/format/grib/library.h"

namespace weir::output::grib {
namespace {

ProductPlaces ask(int64_t number) {
  ProductPlaces places;
  Result<Handle> handle = Handle::from_sample("GRIB2");
  if (!handle.ok() || !handle->set("productDefinitionTemplateNumber", number).ok()) return places;
  const Result<int64_t> begin = handle->whole("offsetSection4");
  if (!begin.ok()) return places;
  const auto place = [&](const char* key) {
    const int64_t offset = handle->offset(key);
    return offset < *begin ? -1 : offset - *begin;
  };
  places.generating = place("typeOfGeneratingProcess");
  places.unit = place("indicatorOfUnitOfTimeRange");
  places.step = place("forecastTime");
  places.first_surface = place("typeOfFirstFixedSurface");
  places.second_surface = place("typeOfSecondFixedSurface");
  places.member = place("perturbationNumber");
  places.interval = place("yearOfEndOfOverallTimeInterval");
  places.process = place("typeOfStatisticalProcessing");
  return places;
}

}  // namespace

const ProductPlaces& places_of_product(int64_t number) {
  static std::mutex mutex;
  static std::map<int64_t, ProductPlaces> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(number);
  return found != known.end() ? found->second : known.emplace(number, ask(number)).first->second;
}

}  // namespace weir::output::grib
