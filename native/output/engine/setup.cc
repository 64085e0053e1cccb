// SPDX-License-Identifier: Apache-2.0
#include "output/engine/setup.h"

#include <string.h>

#include <algorithm>

#include "output/engine/memory.h"
#include "output/format/format.h"
#include "output/model/codec.h"
#include "output/transport/patience.h"

namespace weir::output {

namespace {

using Bytes = std::vector<char>;

template <typename T>
void append(Bytes* to, const T& value) {
  const char* bytes = reinterpret_cast<const char*>(&value);
  to->insert(to->end(), bytes, bytes + sizeof value);
}

// Takes values off the front; a short message gives zeros and ok() false.
class Taker {
 public:
  explicit Taker(std::span<const char> bytes) : rest_(bytes) {}
  template <typename T>
  T take() {
    T value{};
    if (rest_.size() < sizeof value) {
      ok_ = false;
      return value;
    }
    memcpy(&value, rest_.data(), sizeof value);
    rest_ = rest_.subspan(sizeof value);
    return value;
  }
  std::span<const char> take_bytes(int64_t count) {
    if (count < 0 || static_cast<size_t>(count) > rest_.size()) {
      ok_ = false;
      return {};
    }
    const std::span<const char> part = rest_.first(static_cast<size_t>(count));
    rest_ = rest_.subspan(static_cast<size_t>(count));
    return part;
  }
  bool ok() const { return ok_; }

 private:
  std::span<const char> rest_;
  bool ok_ = true;
};

std::vector<int> owner_ranks(const Topology& t) {
  std::vector<int> ranks;
  for (size_t g = 0; g < t.groups.size(); ++g) {
    ranks.insert(ranks.end(), t.groups[g].begin(), t.groups[g].begin() + t.owners[g]);
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

Status share_catalogue(World& world, Setup* setup) {
  Bytes bytes;
  const int root = setup->topology.clients[0];
  if (world.rank() == root) bytes = encode_catalogue(setup->catalogue);
  WEIR_TRY(world.team().broadcast(bytes, root));
  if (setup->client >= 0) return {};
  Result<Catalogue> decoded = decode_catalogue(bytes);
  if (decoded.ok()) setup->catalogue = std::move(*decoded);
  return decoded.status();
}

Result<std::vector<StreamFile>> describe_streams(const Catalogue& catalogue) {
  std::vector<StreamFile> files;
  for (const Stream& stream : catalogue.streams) {
    Result<StreamFile> file = describe(catalogue, stream);
    if (!file.ok()) return file.status();
    files.push_back(std::move(*file));
  }
  return files;
}

// On an owner: the formats are there and take the streams. The first owner's facts go to all.
Status ask_formats(const std::vector<StreamFile>& files, Setup* setup, Bytes* facts) {
  for (size_t s = 0; s < files.size(); ++s) {
    const Stream& stream = setup->catalogue.streams[s];
    std::string why;
    Format* format = find_format(stream.format, &why);
    if (format == nullptr) return {WEIR_E_FORMAT, "stream '" + stream.name + "': " + why};
    Status fine = format->ready();
    if (fine.ok()) fine = format->check(files[s].file);
    if (fine.ok()) fine = format->prepare(files[s].file);
    if (!fine.ok()) {
      return {fine.code(), "stream '" + stream.name + "': " + fine.message()};
    }
    setup->formats.push_back(format);
    append(facts, format->byte_order());
    append(facts, static_cast<char>(format->row().parallel));
    append(facts, static_cast<char>(format->encodes_in_threads()));
    append(facts, static_cast<int64_t>(files[s].file.variables.size()));
    for (size_t v = 0; v < files[s].file.variables.size(); ++v)
      append(facts, format->granule(files[s].file, static_cast<int>(v)));
  }
  return {};
}

std::vector<FormatFacts> take_facts(const Bytes& bytes, size_t streams) {
  Taker taker(bytes);
  std::vector<FormatFacts> all(streams);
  for (FormatFacts& f : all) {
    f.order = taker.take<ByteOrder>();
    f.parallel = taker.take<char>() != 0;
    f.threads = taker.take<char>() != 0;
    for (int64_t count = taker.take<int64_t>(); count > 0 && taker.ok(); --count)
      f.granules.push_back(taker.take<int64_t>());
  }
  return all;
}

Status lay_out(World& world, Setup* setup) {
  Result<std::vector<StreamFile>> files = describe_streams(setup->catalogue);
  Bytes facts;
  Status mine = files.status();
  if (mine.ok() && setup->owner >= 0) mine = ask_formats(*files, setup, &facts);
  WEIR_TRY(world.team().agree(mine));
  WEIR_TRY(world.team().broadcast(facts, owner_ranks(setup->topology)[0]));
  Result<Layout> layout = make_layout(setup->catalogue, std::move(*files),
                                      take_facts(facts, setup->catalogue.streams.size()),
                                      setup->topology, slab_limits(setup->settings));
  if (layout.ok()) setup->layout = std::move(*layout);
  return world.team().agree(layout.status());
}

// The window of a client: two slots of each stream, or one when there is a limit that two would
// pass.
Status make_window(World& world, Setup* setup) {
  std::vector<int64_t> points;
  for (const Pieces& p : setup->pieces) points.push_back(p.points());
  const int64_t limit = setup->settings.client_memory_bytes;
  int64_t needed = 0;
  if (setup->client >= 0 && limit > 0)
    needed = make_client_layout(setup->layout, points).bytes > limit ? 1 : 0;
  Result<std::pair<int64_t, int>> over = world.team().maximum(needed);
  if (!over.ok()) return over.status();
  if (over->first > 0) setup->layout.slots = 1;
  Status mine;
  if (setup->client >= 0) {
    setup->mine = make_client_layout(setup->layout, points);
    if (limit > 0 && setup->mine.bytes > limit) {
      mine = {WEIR_E_MEMORY, "a rank's output buffers need " + std::to_string(setup->mine.bytes) +
                                 " bytes with one frame of each stream, and " +
                                 "client_memory allows " + std::to_string(limit)};
    } else {
      mine = setup->window.create(setup->mine.bytes);
    }
  }
  return world.team().agree(mine);
}

Bytes introduction(const Setup& setup) {
  Bytes bytes;
  append(&bytes, setup.window.descriptor());
  append(&bytes, setup.window.bytes());
  for (const Pieces& p : setup.pieces) {
    Bytes encoded;
    p.encode(&encoded);
    append(&bytes, static_cast<int64_t>(encoded.size()));
    bytes.insert(bytes.end(), encoded.begin(), encoded.end());
  }
  return bytes;
}

Route route_of(const Settings& settings, bool mapped) {
  if (mapped &&
      (settings.transport == TransportKind::kAuto || settings.transport == TransportKind::kShared))
    return Route::kShared;
  return settings.transport == TransportKind::kTwoSided ? Route::kTwoSided : Route::kRma;
}

Status meet_client(World& world, Setup* setup, int client, const Bytes& bytes) {
  Taker taker(bytes);
  ClientView view;
  view.rank = setup->topology.clients[static_cast<size_t>(client)];
  const int descriptor = taker.take<int>();
  const int64_t window_bytes = taker.take<int64_t>();
  std::vector<int64_t> points;
  for (size_t d = 0; d < setup->catalogue.decompositions.size(); ++d) {
    Result<Pieces> pieces = Pieces::decode(taker.take_bytes(taker.take<int64_t>()));
    if (!pieces.ok()) return pieces.status();
    points.push_back(pieces->points());
    setup->memory_bytes += pieces->memory_bytes();
    view.pieces.push_back(std::move(*pieces));
  }
  if (!taker.ok()) return {WEIR_E_INTERNAL, "a rank's introduction came damaged"};
  view.layout = make_client_layout(setup->layout, points);
  const TransportKind wanted = setup->settings.transport;
  const bool same_node = setup->topology.node_of[static_cast<size_t>(view.rank)] ==
                         setup->topology.node_of[static_cast<size_t>(world.rank())];
  Status mapped{WEIR_E_MEMORY, "the ranks are on two nodes"};
  if (same_node && (wanted == TransportKind::kAuto || wanted == TransportKind::kShared)) {
    view.memory = std::make_unique<Segment>();
    mapped = window_bytes == 0
                 ? Status{}
                 : view.memory->map(world.sites()[static_cast<size_t>(view.rank)].process.pid,
                                    descriptor, window_bytes);
  }
  if (!mapped.ok() && wanted == TransportKind::kShared) {
    return {WEIR_E_CONFIG, "transport = \"shared\": rank " + std::to_string(world.rank()) +
                               " cannot map the memory of rank " + std::to_string(view.rank) +
                               " (" + mapped.message() + "); set transport to auto"};
  }
  view.route = route_of(setup->settings, mapped.ok());
  setup->clients.push_back(std::move(view));
  return {};
}

// Owners get what they must know of clients, and clients hear how their data will go.
Status introduce(World& world, Setup* setup) {
  const std::vector<int> owners = owner_ranks(setup->topology);
  std::vector<Bytes> to(static_cast<size_t>(world.size()));
  if (setup->client >= 0) {
    const Bytes mine = introduction(*setup);
    for (int owner : owners) to[static_cast<size_t>(owner)] = mine;
  }
  Result<std::vector<Bytes>> from = world.team().exchange(std::move(to));
  if (!from.ok()) return from.status();
  Status met;
  for (size_t c = 0; c < setup->topology.clients.size() && met.ok() && setup->owner >= 0; ++c) {
    // Taken and let go one by one: lists of indices may be most of what an owner's memory has room
    // for.
    const Bytes theirs = std::move((*from)[static_cast<size_t>(setup->topology.clients[c])]);
    met = meet_client(world, setup, static_cast<int>(c), theirs);
  }
  return world.team().agree(met);
}

Status tell_routes(World& world, Setup* setup) {
  std::vector<Bytes> to(static_cast<size_t>(world.size()));
  for (const ClientView& view : setup->clients)
    to[static_cast<size_t>(view.rank)] = {static_cast<char>(view.route)};
  Result<std::vector<Bytes>> from = world.team().exchange(std::move(to));
  if (!from.ok()) return from.status();
  if (setup->client < 0) return {};
  for (int owner : owner_ranks(setup->topology)) {
    const Bytes& answer = (*from)[static_cast<size_t>(owner)];
    if (answer.size() != 1) return {WEIR_E_INTERNAL, "an owner did not answer"};
    setup->owner_routes.emplace_back(owner, static_cast<Route>(answer[0]));
  }
  return {};
}

// One-sided where a probe says that it works without the other's help (transport "rma": without
// asking), else two-sided.
Status choose_remote_route(World& world, Setup* setup) {
  bool remote = false;
  for (const ClientView& view : setup->clients) remote |= view.route == Route::kRma;
  Result<std::pair<int64_t, int>> any = world.team().maximum(remote ? 1 : 0);
  if (!any.ok()) return any.status();
  if (any->first == 0) return tell_routes(world, setup);
  bool use = true;
  if (setup->settings.transport == TransportKind::kAuto) {
    Result<bool> progress = world.fetches_progress();
    WEIR_TRY(world.team().agree(progress.status()));  // making a window has no time limit
    use = *progress;
  }
  if (use) {
    Result<std::unique_ptr<Window>> window =
        world.window(setup->window.data(), setup->window.bytes());
    WEIR_TRY(world.team().agree(window.status()));
    setup->rma = std::move(*window);
  } else {
    for (ClientView& view : setup->clients) {
      if (view.route == Route::kRma) view.route = Route::kTwoSided;
    }
  }
  return tell_routes(world, setup);
}

}  // namespace

const char* name_of(Route route) {
  switch (route) {
    case Route::kShared: return "shared";
    case Route::kRma: return "rma";
    case Route::kTwoSided: return "two-sided";
  }
  return "";
}

Route Setup::route_to(int owner_rank) const {
  const auto at = std::lower_bound(owner_routes.begin(), owner_routes.end(),
                                   std::pair<int, Route>{owner_rank, Route::kShared});
  return at->second;
}

unsigned Setup::longest_pause_us() const {
  const bool sends = std::any_of(owner_routes.begin(), owner_routes.end(),
                                 [](const auto& r) { return r.second != Route::kShared; });
  return sends ? Patience::kUsual : Patience::kLong;
}

Status agree_setup(World& world, Setup* setup) {
  setup->client = setup->topology.client_of(world.rank());
  for (size_t g = 0; g < setup->topology.groups.size(); ++g) {
    const std::vector<int>& members = setup->topology.groups[g];
    const auto at = std::find(members.begin(), members.end(), world.rank());
    if (at == members.end()) continue;
    setup->group = static_cast<int>(g);
    if (at - members.begin() < setup->topology.owners[g])
      setup->owner = static_cast<int>(at - members.begin());
  }
  WEIR_TRY(world.team().agree(share_catalogue(world, setup)));
  WEIR_TRY(lay_out(world, setup));
  WEIR_TRY(make_window(world, setup));
  WEIR_TRY(introduce(world, setup));
  WEIR_TRY(world.team().agree(choose_remote_route(world, setup)));  // a split has no time limit
  Result<std::unique_ptr<Team>> owners =
      world.team().split(setup->owner >= 0 ? setup->group : -1, setup->owner);
  if (owners.ok()) setup->owners = std::move(*owners);
  WEIR_TRY(world.team().agree(owners.status()));
  return world.team().agree(setup->owner >= 0 ? check_memory(setup) : Status());
}

// Freeing a window waits for all ranks without end; so all must first show, within the time limit,
// that they are there.
void end_world(World& world, std::unique_ptr<Window>& window) {
  if (window != nullptr) {
    if (!world.team().assemble().ok()) return;
    window->release();
    window.reset();
  }
  world.close();
}

}  // namespace weir::output
