// SPDX-License-Identifier: BSD-3-Clause
// Performance guidelines: a collective is at least as fast as the same thing made of others, called a mock-up. Träff,
// Gropp, Thakur: Self-consistent MPI performance guidelines, IEEE TPDS 21(5), 2010.
//
// `Library` is what perf/guideline_loop has for ibcoll and for MPI: rank(), size(), and blocking calls with root 0, in
// bytes. Reductions sum doubles, so their sizes are multiples of 8. A call that fails ends the program.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ibcoll::perf {

// The buffers that a call may use on each rank; each has room for three blocks of the largest size for every rank.
struct GuidelineBuffers {
  char *send, *recv, *spare;
};

// One way to do something with `bytes` for each block (bcast and reductions: the whole buffer), as in ibcoll_perf.
template <typename Library>
using Way = void (*)(Library&, const GuidelineBuffers&, uint64_t bytes);

template <typename Library>
struct NamedWay {
  const char* name;
  Way<Library> run;
};

template <typename Library>
struct Guideline {
  const char* name;  // CALL<=MOCK-UP, as the table of perf/guidelines prints it
  Way<Library> call, mock_up;
  bool sized = true;  // false: no bytes, the same at every size
};

// The collectives whose times are compared with those of other sizes.
template <typename L>
inline constexpr NamedWay<L> kWays[] = {
    {"bcast", [](L& l, const GuidelineBuffers& b, uint64_t bytes) { l.bcast(b.recv, bytes); }},
    {"gather", [](L& l, const GuidelineBuffers& b, uint64_t bytes) { l.gather(b.send, b.recv, bytes); }},
    {"scatter", [](L& l, const GuidelineBuffers& b, uint64_t bytes) { l.scatter(b.send, b.recv, bytes); }},
    {"allgather", [](L& l, const GuidelineBuffers& b, uint64_t bytes) { l.allgather(b.send, b.recv, bytes); }},
    {"alltoall", [](L& l, const GuidelineBuffers& b, uint64_t bytes) { l.alltoall(b.send, b.recv, bytes); }},
    {"reduce", [](L& l, const GuidelineBuffers& b, uint64_t bytes) { l.reduce(b.send, b.recv, bytes); }},
    {"allreduce", [](L& l, const GuidelineBuffers& b, uint64_t bytes) { l.allreduce(b.send, b.recv, bytes); }},
    {"reduce_scatter_block",
     [](L& l, const GuidelineBuffers& b, uint64_t bytes) { l.reduce_scatter_block(b.send, b.recv, bytes); }},
    {"scan", [](L& l, const GuidelineBuffers& b, uint64_t bytes) { l.scan(b.send, b.recv, bytes); }},
    {"exscan", [](L& l, const GuidelineBuffers& b, uint64_t bytes) { l.exscan(b.send, b.recv, bytes); }},
};

// bytes/2 for rank 0, growing evenly to 3/2 bytes for the last one.
inline uint64_t irregular_block(uint64_t bytes, int rank, int size) noexcept {
  if (size == 1) return bytes;
  return bytes / 2 + bytes * static_cast<uint64_t>(rank) / static_cast<uint64_t>(size - 1);
}

template <typename L>
inline constexpr Guideline<L> kGuidelines[] = {
    {"gather<=gatherv", [](L& l, const GuidelineBuffers& b, uint64_t m) { l.gather(b.send, b.recv, m); },
     [](L& l, const GuidelineBuffers& b, uint64_t m) { l.gatherv_regular(b.send, b.recv, m); }},
    // The root does not know the sizes, so all ranks agree on the largest.
    {"gatherv<=allreduce+gather",
     [](L& l, const GuidelineBuffers& b, uint64_t m) { l.gatherv_irregular(b.send, b.recv, m); },
     [](L& l, const GuidelineBuffers& b, uint64_t m) {
       l.allreduce(b.send, b.spare, sizeof(double));
       l.gather(b.send, b.recv, irregular_block(m, l.size() - 1, l.size()));
     }},
    {"scatter<=scatterv", [](L& l, const GuidelineBuffers& b, uint64_t m) { l.scatter(b.send, b.recv, m); },
     [](L& l, const GuidelineBuffers& b, uint64_t m) { l.scatterv_regular(b.send, b.recv, m); }},
    {"allgather<=allgatherv", [](L& l, const GuidelineBuffers& b, uint64_t m) { l.allgather(b.send, b.recv, m); },
     [](L& l, const GuidelineBuffers& b, uint64_t m) { l.allgatherv_regular(b.send, b.recv, m); }},
    {"allgather<=gather+bcast", [](L& l, const GuidelineBuffers& b, uint64_t m) { l.allgather(b.send, b.recv, m); },
     [](L& l, const GuidelineBuffers& b, uint64_t m) {
       l.gather(b.send, b.recv, m);
       l.bcast(b.recv, m * static_cast<uint64_t>(l.size()));
     }},
    {"alltoall<=alltoallv", [](L& l, const GuidelineBuffers& b, uint64_t m) { l.alltoall(b.send, b.recv, m); },
     [](L& l, const GuidelineBuffers& b, uint64_t m) { l.alltoallv_regular(b.send, b.recv, m); }},
    // Blocks of the same size on every rank, the last one padded.
    {"bcast<=scatter+allgather", [](L& l, const GuidelineBuffers& b, uint64_t m) { l.bcast(b.recv, m); },
     [](L& l, const GuidelineBuffers& b, uint64_t m) {
       const uint64_t size = static_cast<uint64_t>(l.size()), block = (m + size - 1) / size;
       l.scatter(b.send, b.spare, block);
       l.allgather(b.spare, b.recv, block);
     }},
    {"allreduce<=reduce+bcast", [](L& l, const GuidelineBuffers& b, uint64_t m) { l.allreduce(b.send, b.recv, m); },
     [](L& l, const GuidelineBuffers& b, uint64_t m) {
       l.reduce(b.send, b.recv, m);
       l.bcast(b.recv, m);
     }},
    {"reduce_scatter_block<=reduce+scatter",
     [](L& l, const GuidelineBuffers& b, uint64_t m) { l.reduce_scatter_block(b.send, b.recv, m); },
     [](L& l, const GuidelineBuffers& b, uint64_t m) {
       l.reduce(b.send, b.spare, m * static_cast<uint64_t>(l.size()));
       l.scatter(b.spare, b.recv, m);
     }},
    {"scan<=exscan+sum", [](L& l, const GuidelineBuffers& b, uint64_t m) { l.scan(b.send, b.recv, m); },
     [](L& l, const GuidelineBuffers& b, uint64_t m) {
       l.exscan(b.send, b.recv, m);
       const auto* own = reinterpret_cast<const double*>(b.send);
       auto* sum = reinterpret_cast<double*>(b.recv);
       for (size_t i = 0; i < m / sizeof(double); ++i) sum[i] += own[i];
     }},
    {"barrier<=allreduce", [](L& l, const GuidelineBuffers&, uint64_t) { l.barrier(); },
     [](L& l, const GuidelineBuffers& b, uint64_t) { l.allreduce(b.send, b.recv, sizeof(double)); },
     /*sized=*/false},
};

}  // namespace ibcoll::perf
