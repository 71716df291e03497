// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/core/type_layout.h"

#include <vector>

namespace ibcoll::under_mpi {

namespace {

// The contents that a type was made from.
struct Contents {
  int combiner = MPI_COMBINER_NAMED;
  std::vector<int64_t> numbers;     // integers, then addresses; or, for large counts, these
  std::vector<MPI_Datatype> types;  // owned
};

bool is_predefined(int combiner) {
  return combiner == MPI_COMBINER_NAMED || combiner == MPI_COMBINER_F90_REAL || combiner == MPI_COMBINER_F90_COMPLEX ||
         combiner == MPI_COMBINER_F90_INTEGER;
}

#if MPI_VERSION >= 4
using Length = MPI_Count;
#else
using Length = int;
#endif

// How many integers, addresses, large counts and types.
struct Lengths {
  Length integers = 0, addresses = 0, large = 0, types = 0;
};

int combiner_of(MPI_Datatype handle, Lengths* lengths) {
  int combiner = MPI_COMBINER_NAMED;
#if MPI_VERSION >= 4
  PMPI_Type_get_envelope_c(handle, &lengths->integers, &lengths->addresses, &lengths->large, &lengths->types,
                           &combiner);
#else
  PMPI_Type_get_envelope(handle, &lengths->integers, &lengths->addresses, &lengths->types, &combiner);
#endif
  return combiner;
}

Contents contents_of(MPI_Datatype handle) {
  Contents contents;
  Lengths lengths;
  contents.combiner = combiner_of(handle, &lengths);
  if (is_predefined(contents.combiner)) return contents;
  // One more each: an empty array is no address.
  std::vector<int> integers(static_cast<size_t>(lengths.integers) + 1);
  std::vector<MPI_Aint> addresses(static_cast<size_t>(lengths.addresses) + 1);
  std::vector<MPI_Count> large(static_cast<size_t>(lengths.large) + 1);
  contents.types.resize(static_cast<size_t>(lengths.types));
#if MPI_VERSION >= 4
  PMPI_Type_get_contents_c(handle, lengths.integers, lengths.addresses, lengths.large, lengths.types, integers.data(),
                           addresses.data(), large.data(), contents.types.data());
#else
  PMPI_Type_get_contents(handle, lengths.integers, lengths.addresses, lengths.types, integers.data(), addresses.data(),
                         contents.types.data());
#endif
  contents.numbers.assign(integers.begin(), integers.end() - 1);
  contents.numbers.insert(contents.numbers.end(), addresses.begin(), addresses.end() - 1);
  contents.numbers.insert(contents.numbers.end(), large.begin(), large.end() - 1);
  return contents;
}

int64_t extent_of(MPI_Datatype handle) {
  MPI_Count lb = 0, extent = 0;
  PMPI_Type_get_extent_x(handle, &lb, &extent);
  return extent;
}

std::optional<Run> repeated(std::optional<Run> run, int64_t times, int64_t stride) {
  if (!run || times == 0 || run->bytes == 0) return run ? std::optional(Run{}) : std::nullopt;
  if (times == 1) return run;
  if (stride != run->bytes) return std::nullopt;
  return Run{run->start, times * run->bytes};
}

// `all` followed by `next`; false: they are not one run.
bool append(Run& all, const Run& next) {
  if (next.bytes == 0) return true;
  if (all.bytes == 0) {
    all = next;
    return true;
  }
  if (all.start + all.bytes != next.start) return false;
  all.bytes += next.bytes;
  return true;
}

// Blocks of `length(i)` elements at `displacement(i)` bytes, of the inner type i or, where there is only one, of that.
template <typename Length, typename Displacement>
std::optional<Run> blocks(const Contents& contents, int64_t count, Length length, Displacement displacement) {
  Run all;
  std::optional<Run> inner;
  int64_t extent = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (i == 0 || contents.types.size() > 1) {
      const MPI_Datatype type = contents.types[static_cast<size_t>(i)];
      inner = run_of(type);
      extent = extent_of(type);
    }
    const auto block = repeated(inner, length(i), extent);
    if (!block || !append(all, {block->start + displacement(i, extent), block->bytes})) return std::nullopt;
  }
  return all;
}

// numbers[] has the arguments of the constructor in their order (MPI 4.0, section 5.1.13).
std::optional<Run> run_in(const Contents& contents) {
  const auto& n = contents.numbers;
  const MPI_Datatype first = contents.types.empty() ? MPI_DATATYPE_NULL : contents.types[0];
  switch (contents.combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
      return run_of(first);
    case MPI_COMBINER_CONTIGUOUS:
      return repeated(run_of(first), n[0], extent_of(first));
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR: {
      const int64_t extent = extent_of(first);
      const int64_t stride = contents.combiner == MPI_COMBINER_VECTOR ? n[2] * extent : n[2];
      return repeated(repeated(run_of(first), n[1], extent), n[0], stride);
    }
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_STRUCT: {
      const int64_t count = n[0];
      const bool in_extents = contents.combiner == MPI_COMBINER_INDEXED;
      return blocks(
          contents, count, [&](int64_t i) { return n[static_cast<size_t>(1 + i)]; },
          [&](int64_t i, int64_t extent) { return n[static_cast<size_t>(1 + count + i)] * (in_extents ? extent : 1); });
    }
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK: {
      const bool in_extents = contents.combiner == MPI_COMBINER_INDEXED_BLOCK;
      return blocks(
          contents, n[0], [&](int64_t) { return n[1]; },
          [&](int64_t i, int64_t extent) { return n[static_cast<size_t>(2 + i)] * (in_extents ? extent : 1); });
    }
    default:
      return std::nullopt;  // SUBARRAY, DARRAY
  }
}

}  // namespace

std::optional<Run> run_of(MPI_Datatype handle) {
  Contents contents = contents_of(handle);
  if (is_predefined(contents.combiner)) {
    MPI_Count size = 0;
    PMPI_Type_size_x(handle, &size);
    if (size != extent_of(handle)) return std::nullopt;  // a pair with a gap
    return Run{0, size};
  }
  const auto run = run_in(contents);
  for (MPI_Datatype& inner : contents.types) {
    Lengths lengths;
    if (!is_predefined(combiner_of(inner, &lengths))) PMPI_Type_free(&inner);
  }
  return run;
}

}  // namespace ibcoll::under_mpi
