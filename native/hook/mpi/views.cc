// SPDX-License-Identifier: Apache-2.0
// Takes the file type of a view apart by MPI_Type_get_contents, down to its contiguous blocks, and
// notes the first of them. MPI hands out references to the parts of a type: those to derived types
// are freed, so that the program's own MPI_Type_free frees them.
#include "hook/mpi/views.h"

#include <sys/mman.h>

#include <initializer_list>

#include "base/scratch.h"
#include "base/syscall.h"
#include "base/text.h"
#include "hook/observe.h"

namespace weir::hook {
namespace {

constexpr uint32_t kViews = 8;  // PnetCDF sets two for a collective access, HDF5 too
constexpr size_t kFiles = 1024;
constexpr size_t kRuns = 64;
constexpr size_t kBlocks = 1 << 16, kSteps = 1 << 18;
constexpr int kDepth = 16, kTypes = 1024, kDimensions = 16;
constexpr int64_t kContentsBytes = 16 << 20;

// As Open MPI numbers them; MPICH and its descendants begin at 1.
enum class Combiner : int {
  kNamed, kDup, kContiguous, kVector, kHvectorInteger, kHvector, kIndexed, kHindexedInteger,
  kHindexed, kIndexedBlock, kStructInteger, kStruct, kSubarray, kDarray, kF90Real, kF90Complex,
  kF90Integer, kResized, kHindexedBlock,
};

// MPI_ORDER_FORTRAN, MPI_DISTRIBUTE_BLOCK, _CYCLIC and _DFLT_DARG of an implementation.
struct Constants {
  int order_fortran, block, cyclic, default_argument;
};
constexpr Constants kOpenMpi{1, 0, 1, -1}, kMpich{57, 121, 122, -49767};

bool is_mpich() { return mpi_kind() == wire::MpiKind::kMpich; }
const Constants& constants() { return is_mpich() ? kMpich : kOpenMpi; }

constinit Profiled<int(Handle, int*, int*, int*, int*)> envelope{"PMPI_Type_get_envelope"};
constinit Profiled<int(Handle, int64_t*, int64_t*, int64_t*, int64_t*, int*)> envelope_c{
    "PMPI_Type_get_envelope_c"};
constinit Profiled<int(Handle, int, int, int, int*, int64_t*, void*)> contents{
    "PMPI_Type_get_contents"};
constinit Profiled<int(Handle, int64_t, int64_t, int64_t, int64_t, int*, int64_t*, int64_t*,
                       void*)>
    contents_c{"PMPI_Type_get_contents_c"};
constinit Profiled<int(Handle, int64_t*, int64_t*)> extent_of{"PMPI_Type_get_extent"};
constinit Profiled<int(Handle, int64_t*, int64_t*)> true_extent_of{"PMPI_Type_get_true_extent"};
constinit Profiled<int(void*)> free_type{"PMPI_Type_free"};

struct Envelope {
  int64_t ints = 0, addresses = 0, counts = 0, types = 0;
  Combiner combiner = Combiner::kNamed;

  bool is_named() const {
    return combiner == Combiner::kNamed ||
           (combiner >= Combiner::kF90Real && combiner <= Combiner::kF90Integer);
  }
};

// A type with counts of 64 bits is an error to the function of MPI-3, and MPI would end the
// program: MPI-4's is preferred.
bool read_envelope(Handle type, Envelope* out) {
  int ints = 0, addresses = 0, types = 0, combiner = 0;
  if (const auto get = envelope_c.get(); get != nullptr) {
    if (get(type, &out->ints, &out->addresses, &out->counts, &out->types, &combiner) != 0)
      return false;
  } else {
    const auto older = envelope.get();
    if (older == nullptr || older(type, &ints, &addresses, &types, &combiner) != 0) return false;
    out->ints = ints, out->addresses = addresses, out->types = types;
  }
  out->combiner = static_cast<Combiner>(combiner - (is_mpich() ? 1 : 0));
  return true;
}

// The arguments that a derived type was made with. In a type with counts of 64 bits these are a
// list of their own, sizes of arrays and addresses among them.
class Contents {
 public:
  explicit Contents(Handle type) {
    if (!read_envelope(type, &is_) || is_.is_named()) return;
    const int64_t words = is_.addresses + is_.counts + is_.types + (is_.ints + 1) / 2;
    bytes_ = static_cast<size_t>(words) * 8;
    if (words > kContentsBytes / 8 || words == 0) return;
    const long room = base::map(bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    if (base::failed(room)) return;
    addresses_ = reinterpret_cast<int64_t*>(room);
    counts_ = addresses_ + is_.addresses;
    types_ = counts_ + is_.counts;
    ints_ = reinterpret_cast<int*>(types_ + is_.types);
    is_read_ = free_type.get() != nullptr && read(type);
  }
  ~Contents() {
    if (addresses_ == nullptr) return;
    for (int64_t i = 0; is_read_ && i < is_.types; ++i) {
      Envelope part;
      if (read_envelope(this->type(i), &part) && !part.is_named()) free_type.get()(place(i));
    }
    base::unmap(addresses_, bytes_);
  }
  Contents(const Contents&) = delete;
  Contents& operator=(const Contents&) = delete;

  bool is_read() const { return is_read_; }
  Combiner combiner() const { return is_.combiner; }
  int64_t types() const { return is_.types; }
  Handle type(int64_t i) const {
    return is_mpich() ? reinterpret_cast<const uint32_t*>(types_)[i]
                      : static_cast<Handle>(types_[i]);
  }
  bool is_large() const { return is_.counts != 0; }
  int64_t integer(int64_t i) const { return ints_[i]; }
  int64_t number(int64_t i) const { return is_large() ? counts_[i] : ints_[i]; }
  // Addresses come behind all other counts.
  int64_t address(int64_t i, int64_t numbers) const {
    return is_large() ? counts_[numbers + i] : addresses_[i];
  }

 private:
  bool read(Handle type) {
    if (is_large()) {
      const auto get = contents_c.get();
      return get != nullptr && get(type, is_.ints, is_.addresses, is_.counts, is_.types, ints_,
                                   addresses_, counts_, types_) == 0;
    }
    const auto get = contents.get();
    return get != nullptr && get(type, static_cast<int>(is_.ints), static_cast<int>(is_.addresses),
                                 static_cast<int>(is_.types), ints_, addresses_, types_) == 0;
  }
  void* place(int64_t i) {
    return is_mpich() ? static_cast<void*>(reinterpret_cast<uint32_t*>(types_) + i) : types_ + i;
  }

  Envelope is_;
  size_t bytes_ = 0;
  int64_t *addresses_ = nullptr, *counts_ = nullptr, *types_ = nullptr;
  int* ints_ = nullptr;
  bool is_read_ = false;
};

struct Block {
  int64_t offset, length;
};

// The first blocks of a type in the order of its data; neighbours are one. is_cut: it has more.
struct Blocks {
  Block* at = nullptr;
  size_t count = 0, steps = 0;
  bool is_cut = false;

  void add(int64_t offset, int64_t length) {
    if (is_cut || length <= 0) return;
    if (++steps > kSteps) {
      is_cut = true;
    } else if (count > 0 && at[count - 1].offset + at[count - 1].length == offset) {
      at[count - 1].length += length;
    } else if (count == kBlocks) {
      is_cut = true;
    } else {
      at[count++] = {offset, length};
    }
  }
};

// Indices of one dimension of an array, those of this rank: pieces of `block` from `first` on, each
// `step` behind the one before it.
struct Dimension {
  int64_t size, first, block, step;
};

class Decoder {
 public:
  Decoder() {
    const long room = base::map(kDepth * kBlocks * sizeof(Block), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
    if (!base::failed(room)) room_ = reinterpret_cast<Block*>(room);
  }
  ~Decoder() {
    if (room_ != nullptr) base::unmap(room_, kDepth * kBlocks * sizeof(Block));
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Null: not decoded.
  const Blocks* decode(Handle type) {
    return room_ != nullptr && decode(type, 0) ? &levels_[0] : nullptr;
  }

 private:
  bool decode(Handle type, int depth) {
    Blocks& out = levels_[depth];
    out = {room_ + static_cast<size_t>(depth) * kBlocks};
    const auto bounds = true_extent_of.get();
    const int64_t bytes = bytes_of_type(type);
    int64_t lower = 0, extent = 0;
    if (bytes < 0 || bounds == nullptr || bounds(type, &lower, &extent) != 0) return false;
    if (bytes == 0 || bytes == extent) return out.add(lower, bytes), true;
    if (depth + 1 == kDepth) return false;
    if (++types_ > kTypes) return out.is_cut = true;
    const Contents made(type);
    return made.is_read() && unite(made, depth);
  }

  // The part that the next calls of put() place.
  bool take(Handle part, int depth) {
    int64_t lower = 0;
    return decode(part, depth + 1) && extent_of.get()(part, &lower, &extent_) == 0;
  }

  // The part, so often, from a byte on.
  void put(int depth, int64_t at, int64_t times) {
    Blocks& out = levels_[depth];
    const Blocks& part = levels_[depth + 1];
    if (part.count == 1 && !part.is_cut && part.at[0].length == extent_)
      return out.add(at + part.at[0].offset, times * extent_);
    for (int64_t i = 0; i < times && !out.is_cut && (part.count > 0 || part.is_cut); ++i) {
      for (size_t k = 0; k < part.count && !out.is_cut; ++k)
        out.add(at + i * extent_ + part.at[k].offset, part.at[k].length);
      out.is_cut |= part.is_cut;
    }
  }

  bool unite(const Contents& made, int depth) {
    if (made.combiner() == Combiner::kStruct) return unite_struct(made, depth);
    if (made.types() != 1 || !take(made.type(0), depth)) return false;
    const auto number = [&](int64_t i) { return made.number(i); };
    switch (made.combiner()) {
      case Combiner::kDup:
      case Combiner::kResized: return put(depth, 0, 1), true;
      case Combiner::kContiguous: return put(depth, 0, number(0)), true;
      case Combiner::kSubarray: return unite_subarray(made, depth);
      case Combiner::kDarray: return unite_darray(made, depth);
      default: break;
    }
    const int64_t count = number(0);
    const auto each = [&](auto times, auto at) {
      for (int64_t i = 0; i < count && !levels_[depth].is_cut; ++i) put(depth, at(i), times(i));
      return true;
    };
    const auto same = [&](int64_t) { return number(1); };
    const auto own = [&](int64_t i) { return number(1 + i); };
    const auto in_extents = [&](int64_t i) { return i * extent_; };
    switch (made.combiner()) {
      case Combiner::kVector:
        return each(same, [&](int64_t i) { return in_extents(i * number(2)); });
      case Combiner::kHvector: return each(same, [&](int64_t i) { return i * made.address(0, 2); });
      case Combiner::kIndexed:
        return each(own, [&](int64_t i) { return in_extents(number(1 + count + i)); });
      case Combiner::kHindexed:
        return each(own, [&](int64_t i) { return made.address(i, 1 + count); });
      case Combiner::kIndexedBlock:
        return each(same, [&](int64_t i) { return in_extents(number(2 + i)); });
      case Combiner::kHindexedBlock:
        return each(same, [&](int64_t i) { return made.address(i, 2); });
      default: return false;
    }
  }

  bool unite_struct(const Contents& made, int depth) {
    for (int64_t i = 0; i < made.types() && !levels_[depth].is_cut; ++i) {
      if (made.number(1 + i) == 0) continue;
      if (!take(made.type(i), depth)) return false;
      put(depth, made.address(i, 1 + made.types()), made.number(1 + i));
    }
    return true;
  }

  bool unite_subarray(const Contents& made, int depth) {
    const int64_t dimensions = made.integer(0), sizes = made.is_large() ? 0 : 1;
    const int64_t order = made.integer(made.is_large() ? 1 : 3 * dimensions + 1);
    return unite_array(depth, dimensions, order, [&](int64_t i) {
      const auto of = [&](int64_t column) { return made.number(sizes + column * dimensions + i); };
      return Dimension{of(0), of(2), of(1), of(0)};
    });
  }

  // Arguments: ranks, this one, dimensions, of each its size, distribution, argument and ranks, the
  // order. Ranks are numbered as in C in both orders.
  bool unite_darray(const Contents& made, int depth) {
    const Constants& is = constants();
    const int64_t dimensions = made.integer(2);
    const int64_t behind = made.is_large() ? 3 : 3 + dimensions;  // the sizes
    const auto of = [&](int64_t column, int64_t i) {
      return made.integer(behind + column * dimensions + i);
    };
    return unite_array(depth, dimensions, of(3, 0), [&](int64_t i) {
      int64_t rank = made.integer(1);
      for (int64_t k = dimensions - 1; k > i; --k) rank /= of(2, k);
      const int64_t size = made.number(made.is_large() ? i : 3 + i);
      const int64_t kind = of(0, i), ranks = of(2, i);
      int64_t block = of(1, i);
      if (kind != is.block && kind != is.cyclic) return Dimension{size, 0, size, size};
      if (block == is.default_argument) block = kind == is.block ? (size + ranks - 1) / ranks : 1;
      return Dimension{size, rank % ranks * block, block, ranks * block};
    });
  }

  template <typename Of>
  bool unite_array(int depth, int64_t dimensions, int64_t order, Of dimension) {
    Dimension every[kDimensions];
    if (dimensions < 1 || dimensions > kDimensions) return false;
    const bool is_fortran = order == constants().order_fortran;
    for (int64_t i = 0; i < dimensions; ++i) {
      every[i] = dimension(is_fortran ? dimensions - 1 - i : i);
      if (every[i].step <= 0) return false;
    }
    spread(depth, every, dimensions, 0);
    return true;
  }

  // The slowest dimension comes first; at: index over those before it.
  void spread(int depth, const Dimension* one, int64_t left, int64_t at) {
    const Blocks& out = levels_[depth];
    for (int64_t first = one->first; first < one->size && !out.is_cut; first += one->step) {
      const int64_t rest = one->size - first, length = one->block < rest ? one->block : rest;
      if (left == 1) put(depth, (at * one->size + first) * extent_, length);
      for (int64_t i = 0; left > 1 && i < length && !out.is_cut; ++i)
        spread(depth, one + 1, left - 1, at * one->size + first + i);
    }
  }

  Block* room_ = nullptr;
  Blocks levels_[kDepth] = {};
  int64_t extent_ = 0;
  int types_ = 0;
};

// Blocks of one length at one distance, the rows of a level; and so often again, the levels of a
// variable.
struct Run {
  int64_t offset, length, count, stride, times, distance;

  bool takes(const Block& one) {
    if (times > 1 || one.length != length || one.offset <= offset) return false;
    if (count > 1 && one.offset != offset + count * stride) return false;
    stride = count > 1 ? stride : one.offset - offset;
    return ++count, true;
  }
  bool takes(const Run& next) {
    if (next.length != length || next.count != count || next.stride != stride || count == 1)
      return false;
    if (times > 1 && next.offset != offset + times * distance) return false;
    distance = times > 1 ? distance : next.offset - offset;
    return ++times, true;
  }
  void add_to(base::Writer& text) const {
    text.add(" ").add_number(static_cast<uint64_t>(offset)).add("+");
    text.add_number(static_cast<uint64_t>(length));
    for (const auto& [number, each] : {Block{stride, count}, Block{distance, times}}) {
      if (each == 1) return;
      text.add("*").add_number(static_cast<uint64_t>(each)).add("/");
      text.add_number(static_cast<uint64_t>(number));
    }
  }
};

struct Runs {
  Run at[kRuns + 1];
  size_t count = 0;

  void fold() {
    if (count > 1 && at[count - 2].takes(at[count - 1])) --count;
  }
  // False: it is one too many.
  bool add(const Block& one) {
    if (count > 0 && at[count - 1].takes(one)) return true;
    fold();
    at[count++] = {one.offset, one.length, 1, 0, 1, 0};
    return count <= kRuns;
  }
};

// `all`, `first` (there are more), or `unknown`, and the blocks.
void add_blocks(base::Writer& text, const Blocks* found) {
  static_assert(kRuns * 6 * 20 < base::Scratch::kBytes - 256);
  Runs runs;
  bool is_cut = found != nullptr && found->is_cut;
  for (size_t i = 0; found != nullptr && i < found->count; ++i) {
    if (found->at[i].offset < 0) return void(text.add("unknown"));
    if (runs.add(found->at[i])) continue;
    is_cut = true, runs.count = kRuns;
    break;
  }
  runs.fold();
  text.add(found == nullptr ? "unknown" : is_cut ? "first" : "all");
  for (size_t i = 0; i < runs.count; ++i) runs.at[i].add_to(text);
}

// Which call of MPI_File_set_view on the file this is in the process, from 1. Two files that share
// a place begin anew.
uint32_t next_number(uint32_t file) {
  static constinit uint64_t known[kFiles] = {};
  uint64_t* const place = &known[file % kFiles];
  for (;;) {
    uint64_t before = base::load(place);
    const uint64_t number = before >> 32 == file ? (before & UINT32_MAX) + 1 : 1;
    if (number > kViews) return kViews + 1;
    if (base::compare_exchange(place, &before, uint64_t{file} << 32 | number))
      return static_cast<uint32_t>(number);
  }
}

}  // namespace

ViewSizes sizes_of(const View& view) {
  ViewSizes sizes{bytes_of_type(view.etype), bytes_of_type(view.filetype)};
  const auto bounds = extent_of.get();
  if (bounds == nullptr || bounds(view.filetype, &sizes.lower, &sizes.extent) != 0)
    sizes.extent = -1;
  return sizes;
}

void note_view(uint32_t file, const View& view, const ViewSizes& sizes) {
  if (file == 0 || trace::process().level() == wire::Level::kSummary ||
      mpi_kind() == wire::MpiKind::kOther)
    return;
  const uint32_t number = next_number(file);
  if (number > kViews || view.displacement < 0 || sizes.unit < 0 || sizes.bytes < 0 ||
      sizes.extent < 0)
    return;
  Decoder decoder;
  const Blocks* const found = decoder.decode(view.filetype);
  const base::Scratch room;
  if (room.data() == nullptr) return;
  base::Writer text(room.data(), base::Scratch::kBytes);
  text.add("view\n").add_number(file).add("\n").add_number(number).add("\n");
  for (const int64_t figure : {view.displacement, sizes.unit, sizes.bytes, sizes.extent})
    text.add_number(static_cast<uint64_t>(figure)).add(" ");
  add_blocks(text, found);
  if (!text.cut()) trace::process().names().id(text.view(), wire::NameSource::kGiven);
}

}  // namespace weir::hook
