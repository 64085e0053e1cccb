// SPDX-License-Identifier: Apache-2.0
// The tiers of the rules in force. One that is not there is made by the process that first has a
// file for it: others, perhaps of another user, have the rules and no such file.
#include <errno.h>
#include <string.h>

#include "base/atomic.h"
#include "layers/machinery/node/place.h"
#include "layers/stage/names.h"
#include "layers/writeback/client.h"

namespace weir::layers::stage {

using namespace weir::stage;

namespace {

struct Place {
  Tier tier;    // its path is there before it is attached
  size_t named;  // length of the path in the rule
  const rules::LayerSpec* layer;
};
constexpr uint32_t kTiers = 8;
constinit Place places[kTiers] = {};
constinit uint32_t tier_count = 0;
constinit char mistake[kTierBytes + 128] = {};

base::Text path_of(const rules::LayerSpec& layer) {
  base::Text path;
  rules::option_text(layer, "tier", &path);
  return path;
}

Place* place_of(const rules::LayerSpec& layer) {
  const base::Text path = path_of(layer);
  for (uint32_t i = 0; i < tier_count; ++i) {
    if (places[i].named == path.size && memcmp(places[i].tier.path, path.data, path.size) == 0)
      return &places[i];
  }
  return nullptr;
}

const char* say(base::Text path, const char* why) {
  base::Writer(mistake, sizeof mistake).add(path).add(": ").add(why);
  return mistake;
}

// Whoever comes last has its job there; programs of one job write the same.
void set_job(Control& control) {
  char job[sizeof control.job] = {};
  base::Writer(job, sizeof job).add(node::job_name());
  if (memcmp(job, control.job, sizeof job) != 0) memcpy(control.job, job, sizeof job);
}

void set_options(const Tier& tier, const rules::LayerSpec& layer) {
  set_job(*tier.control);
  if (const uint64_t bytes = rules::option_number(layer, "capacity", 0); bytes != 0)
    base::store(&tier.control->capacity_bytes, bytes);
  if (const uint64_t rate = rules::option_number(layer, "bandwidth", 0); rate != 0)
    base::store(&tier.control->bytes_per_s, rate);
  base::Text verify;
  if (rules::option_text(layer, "verify", &verify) && rules::is(verify, "bytes"))
    base::store(&tier.control->compares, uint64_t{1});
}

// Threads may do it at once: one mapping stays.
const char* attach_place(Place& place) {
  Tier made{};
  if (const char* const why = attach(made, base::text(place.tier.path), true)) return why;
  set_options(made, *place.layer);
  Control* none = nullptr;
  if (!base::compare_exchange(&place.tier.control, &none, made.control))
    base::unmap(made.control, sizeof(Control));
  return nullptr;
}

bool is_there(const char* path) {
  struct stat about;
  return stat_path(path, &about, 0) != -ENOENT;
}

}  // namespace

// The run's number is read while the environment is the one that the process was given.
// An emulated node (WEIR_NODE_RANKS) has a tier of its own, as a real one has.
const char* begin_tier(const rules::LayerSpec& layer) {
  if (place_of(layer) != nullptr) return nullptr;
  node::run_number();
  const base::Text path = path_of(layer);
  if (tier_count == kTiers) return say(path, "rules have more than 8 tiers");
  Place& place = places[tier_count];
  place.tier.control = nullptr;
  base::Writer writer(place.tier.path, sizeof place.tier.path);
  writer.add(path);
  if (node::number() != 0) writer.add(".node").add_number(node::number());
  if (writer.cut()) return say({path.data, 64}, "its path is too long");
  place.tier.length = writer.view().size;
  place.named = path.size;
  place.layer = &layer;
  const char* const why =
      is_there(place.tier.path) ? attach_place(place) : why_not_makeable(place.tier.path);
  if (why != nullptr) return say(writer.view(), why);
  ++tier_count;
  return nullptr;
}

const Tier* usable_from(uint32_t& i) {
  for (; i < tier_count; ++i) {
    Place& place = places[i];
    if (base::load(&place.tier.control) != nullptr ||
        (is_there(place.tier.path) && attach_place(place) == nullptr))
      return &place.tier;
  }
  return nullptr;
}

const Tier* tier_of(const rules::LayerSpec& layer, bool make) {
  Place* const place = place_of(layer);
  if (place == nullptr) return nullptr;
  if (base::load(&place->tier.control) == nullptr && (make || is_there(place->tier.path)))
    attach_place(*place);
  return base::load(&place->tier.control) != nullptr ? &place->tier : nullptr;
}

bool may_come(const rules::LayerSpec& layer) { return place_of(layer) != nullptr; }

Mode mode_of(const rules::LayerSpec& layer) {
  base::Text when;
  if (!rules::option_text(layer, "drain", &when)) return Mode::kAsync;
  return static_cast<Mode>(when.data[0]);
}

void start_daemon(const Tier& tier) {
  if (!has_daemon(tier)) writeback::start_program("weir-stage", "--daemon", tier.path);
}

}  // namespace weir::layers::stage
