// SPDX-License-Identifier: BSD-3-Clause
// Random calls of every collective: by MPI_X, and by the MPI's own function with the same arguments. What they leave in
// memory, gaps included, must be the same. `collectives SEED CASES [nonblocking|persistent] [FOLDER]`. Into a file
// FOLDER/RANK go digests of the results, to compare with those of another run, for where no function of the program
// reaches the MPI's own.
#include <mpi.h>
#ifdef OPEN_MPI
#include <mpi-ext.h>
#define INIT(NAME) MPIX_##NAME##_init
#else
#define INIT(NAME) MPI_##NAME##_init
#endif

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/under_mpi/layouts.h"
#include "tests/under_mpi/operations.h"
#include "tests/under_mpi/own.h"

namespace {

constexpr int kOrigin = 1 << 11, kBuffer = 1 << 15;  // ints, for 8 ranks; layouts have negative offsets

struct Memory {
  std::vector<int> send = std::vector<int>(kBuffer), recv = std::vector<int>(kBuffer);
  int* from() { return send.data() + kOrigin; }
  int* to() { return recv.data() + kOrigin; }
};

// The choices that all ranks share, and this rank's own.
struct Case {
  Case(std::mt19937 shared_chance, MPI_Comm communicator) : comm(communicator) {
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    what = static_cast<int>(shared_chance() % 17);
    root = static_cast<int>(shared_chance() % static_cast<unsigned>(size));
    elements = shared_chance() % 4 == 0 ? 0 : static_cast<int>(shared_chance() % 12);
    in_place = shared_chance() % 3 == 0;
    big = shared_chance() % 4 == 0;
    reduction = static_cast<int>(shared_chance() % 24);
    layout = 1 + static_cast<int>(shared_chance() % (kLayouts - 1));
    counts.resize(static_cast<size_t>(size) * static_cast<size_t>(size));
    for (int& count : counts) count = static_cast<int>(shared_chance() % 4);
    chance.seed(static_cast<unsigned>(shared_chance()) + 31u * static_cast<unsigned>(rank));
    // After the shared draws: ranks differ.
#ifndef OPEN_MPI
    // MPICH's own reduce_scatter of such elements corrupts the heap: their first byte lies before or after their
    // address.
    if ((what == 13 || what == 14) && (layout == 4 || layout == 6)) layout = 3;
    // Its reduce of 2 KiB and more takes MPI_IN_PLACE for a buffer.
    if (what == 12 && big) in_place = false;
#endif
  }
  // Elements from rank `i` to rank `j`.
  int between(int i, int j) const { return counts[static_cast<size_t>(i * size + j)]; }
  MPI_Comm comm;
  std::mt19937 chance;
  int rank = 0, size = 0, what = 0, root = 0, elements = 0, reduction = 0, layout = 0;
  bool in_place = false, big = false;
  std::vector<int> counts;
};

enum Form { kBlocking, kNonblocking, kPersistent };
Form form = kBlocking;

// Calls MPI_NAME, MPI_INAME or MPI_NAME_init. The expected result is from the blocking one: the nonblocking ones of
// these MPIs crash with some layouts and operations.
#define CALL_WITH(NAME, INAME, ...)                     \
  do {                                                  \
    MPI_Request request = MPI_REQUEST_NULL;             \
    if (is_own || form == kBlocking) {                  \
      WHICH(is_own, NAME)(__VA_ARGS__);                 \
    } else if (form == kNonblocking) {                  \
      MPI_##INAME(__VA_ARGS__, &request);               \
      MPI_Wait(&request, MPI_STATUS_IGNORE);            \
    } else {                                            \
      INIT(NAME)(__VA_ARGS__, MPI_INFO_NULL, &request); \
      MPI_Start(&request);                              \
      MPI_Wait(&request, MPI_STATUS_IGNORE);            \
      MPI_Request_free(&request);                       \
    }                                                   \
  } while (false)
#define CALL(NAME, INAME, ...) CALL_WITH(NAME, INAME, __VA_ARGS__, one.comm)

// Counts and displacements of one block per rank, in a buffer of blocks of the layout, in descending order of ranks.
struct Blocks {
  Blocks(const Described& described, const std::vector<int>& elements) {
    int displacement = 0;
    displacements.resize(elements.size());
    for (size_t i = elements.size(); i-- > 0;) {
      counts.push_back(0);
      displacements[i] = described.which > 0 ? displacement : displacement * kInts;
      displacement += elements[i] + 1;
    }
    for (size_t i = 0; i < elements.size(); ++i) counts[i] = described.count(elements[i]);
  }
  std::vector<int> counts, displacements;
};

void move(Case& one, Memory& ours, Memory& theirs) {
  const Described sent(one.chance), received(one.chance);
  const int n = one.elements * (one.big ? 8 : 1);
  const bool root = one.rank == one.root;
  const int sends = sent.count(n), receives = received.count(n);
  std::vector<int> to_me, from_me, shares;
  for (int i = 0; i < one.size; ++i) {
    to_me.push_back(one.between(i, one.rank));
    from_me.push_back(one.between(one.rank, i));
    shares.push_back(one.between(0, i));
  }
  // In place everywhere: what goes to a rank is as long as what comes from it.
  std::vector<int> both_ways = to_me;
  for (int i = 0; i < one.size; ++i) {
    both_ways[static_cast<size_t>(i)] = one.between(std::min(i, one.rank), std::max(i, one.rank));
  }
  const Blocks in(received, one.in_place ? both_ways : to_me), out(sent, from_me);
  const Blocks shared_in(received, shares), shared_out(sent, shares);
  const int own_share = shares[static_cast<size_t>(one.rank)];
  const auto call = [&](Memory& memory, bool is_own) {
    void* const from = one.in_place ? MPI_IN_PLACE : memory.from();
    void* const root_from = one.in_place && root ? MPI_IN_PLACE : memory.from();
    void* const root_to = one.in_place && root ? MPI_IN_PLACE : memory.to();
    int* const to = memory.to();
    const MPI_Datatype s = sent.type(), r = received.type();
    switch (one.what) {
      case 0:
        CALL_WITH(Barrier, Ibarrier, one.comm);
        break;
      case 1:
        CALL(Bcast, Ibcast, to, receives, r, one.root);
        break;
      case 2:
        CALL(Allgather, Iallgather, from, sends, s, to, receives, r);
        break;
      case 3:
        CALL(Allgatherv, Iallgatherv, from, sent.count(own_share), s, to, shared_in.counts.data(),
             shared_in.displacements.data(), r);
        break;
      case 4:
        CALL(Alltoall, Ialltoall, from, sends, s, to, receives, r);
        break;
      case 5:
        CALL(Alltoallv, Ialltoallv, from, out.counts.data(), out.displacements.data(), s, to, in.counts.data(),
             in.displacements.data(), r);
        break;
      case 6: {
        std::vector<MPI_Datatype> send_types(static_cast<size_t>(one.size), s), recv_types(send_types.size(), r);
        std::vector<int> send_displacements = out.displacements, recv_displacements = in.displacements;
        const int send_step = sent.which > 0 ? sent.step() : 1, recv_step = received.which > 0 ? received.step() : 1;
        for (int& displacement : send_displacements) displacement *= send_step * static_cast<int>(sizeof(int));
        for (int& displacement : recv_displacements) displacement *= recv_step * static_cast<int>(sizeof(int));
        CALL(Alltoallw, Ialltoallw, from, out.counts.data(), send_displacements.data(), send_types.data(), to,
             in.counts.data(), recv_displacements.data(), recv_types.data());
        break;
      }
      case 7:
        CALL(Gather, Igather, root_from, sends, s, to, receives, r, one.root);
        break;
      case 8:
        CALL(Gatherv, Igatherv, root_from, sent.count(own_share), s, to, shared_in.counts.data(),
             shared_in.displacements.data(), r, one.root);
        break;
      case 9:
        CALL(Scatter, Iscatter, memory.from(), sends, s, root_to, receives, r, one.root);
        break;
      default:
        CALL(Scatterv, Iscatterv, memory.from(), shared_out.counts.data(), shared_out.displacements.data(), s, root_to,
             received.count(own_share), r, one.root);
        break;
    }
  };
  call(theirs, true);
  call(ours, false);
}

// In place, a reduce_scatter leaves the buffer after its result undefined: only `elements` are kept.
void keep(Memory& memory, int elements, const Reduction& reduction) {
  std::vector<int> kept(kBuffer);
  if (reduction.bytes > 0) {
    std::memcpy(kept.data(), memory.to(), static_cast<size_t>(elements * reduction.bytes));
  } else {
    for (int i = 0; i < elements * kInts; ++i) {
      kept[static_cast<size_t>(i)] =
          memory.to()[i / kInts * int_offsets.step + int_offsets.of_ints[static_cast<size_t>(i % kInts)]];
    }
  }
  memory.recv = kept;
}

void reduce(Case& one, MPI_Op composing, MPI_Op adding, Memory& ours, Memory& theirs) {
  const auto all = predefined_reductions();
  const bool of_program = static_cast<size_t>(one.reduction) >= all.size();
  MPI_Datatype derived = make_layout(one.layout);
  Reduction chosen = {derived, one.reduction % 2 == 0 ? composing : adding, 0};
  if (of_program) {
    int_offsets = int_offsets_of(derived);
  } else {
    chosen = all[static_cast<size_t>(one.reduction)];
  }
  const int n = one.elements * (!one.big ? 1 : of_program ? 8 : 64);
  const bool root = one.rank == one.root;
  std::vector<int> shares;
  for (int i = 0; i < one.size; ++i) shares.push_back(one.between(0, i));
  const auto call = [&](Memory& memory, bool is_own) {
    if (!of_program) {
      for (int* buffer : {memory.from(), memory.to()}) {
        fill(chosen, std::max(64, n * one.size), static_cast<uint32_t>(one.rank) + 1, reinterpret_cast<char*>(buffer));
      }
    }
    void* const from = one.in_place ? MPI_IN_PLACE : memory.from();
    void* const root_from = one.in_place && root ? MPI_IN_PLACE : memory.from();
    int* const to = memory.to();
    switch (one.what) {
      case 11:
        CALL(Allreduce, Iallreduce, from, to, n, chosen.type, chosen.op);
        break;
      case 12:
        CALL(Reduce, Ireduce, root_from, to, n, chosen.type, chosen.op, one.root);
        break;
      case 13:
        CALL(Reduce_scatter, Ireduce_scatter, from, to, shares.data(), chosen.type, chosen.op);
        break;
      case 14:
        CALL(Reduce_scatter_block, Ireduce_scatter_block, from, to, n, chosen.type, chosen.op);
        break;
      case 15:
        CALL(Scan, Iscan, from, to, n, chosen.type, chosen.op);
        break;
      default:
        CALL(Exscan, Iexscan, from, to, n, chosen.type, chosen.op);
        break;
    }
  };
  for (Memory* memory : {&theirs, &ours}) {
    call(*memory, memory == &theirs);
    if (one.in_place && one.what == 13) keep(*memory, shares[static_cast<size_t>(one.rank)], chosen);
    if (one.in_place && one.what == 14) keep(*memory, n, chosen);
  }
  MPI_Type_free(&derived);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const auto seed = static_cast<unsigned>(std::atoi(argv[1]));
  const int cases = std::atoi(argv[2]);
  std::string folder;
  for (int i = 3; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "nonblocking") {
      form = kNonblocking;
    } else if (word == "persistent") {
      form = kPersistent;
    } else {
      folder = word;
    }
  }
  int rank = 0, wrong = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::FILE* const results = folder.empty() ? nullptr : std::fopen((folder + "/" + std::to_string(rank)).c_str(), "w");
  MPI_Comm comms[3] = {MPI_COMM_WORLD, MPI_COMM_NULL, MPI_COMM_NULL};
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &comms[1]);
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[2]);
  for (MPI_Comm comm : comms) MPI_Barrier(comm);
  MPI_Op composing = MPI_OP_NULL, adding = MPI_OP_NULL;
  MPI_Op_create(compose, 0, &composing);
  MPI_Op_create(add_all, 1, &adding);
  for (int number = 0; number < cases; ++number) {
    std::mt19937 chance(seed + 7919u * static_cast<unsigned>(number));
    const MPI_Comm comm = comms[chance() % 3];
    Case one(chance, comm);
    Memory ours, theirs;
    for (Memory* memory : {&ours, &theirs}) {
      for (int i = 0; i < kBuffer; ++i) {
        memory->send[static_cast<size_t>(i)] = i * 31 + one.rank * 100003;
        memory->recv[static_cast<size_t>(i)] = -i * 17 - one.rank * 1009;
      }
    }
    if (one.what <= 10) {
      move(one, ours, theirs);
    } else {
      reduce(one, composing, adding, ours, theirs);
    }
    if (ours.recv != theirs.recv) {
      ++wrong;
      std::printf("rank %d: case %d (what %d, %d ranks, root %d, elements %d, in place %d, reduction %d, layout %d)\n",
                  rank, number, one.what, one.size, one.root, one.elements, one.in_place, one.reduction, one.layout);
    }
    if (results != nullptr) {
      const std::string_view memory(reinterpret_cast<const char*>(ours.recv.data()), ours.recv.size() * sizeof(int));
      std::fprintf(results, "rank %d: case %d (what %d): %zx\n", rank, number, one.what,
                   std::hash<std::string_view>{}(memory));
    }
    std::fflush(stdout);
  }
  if (results != nullptr && std::fclose(results) != 0) ++wrong;
  std::printf("rank %d: %d of %d wrong\n", rank, wrong, cases);
  MPI_Op_free(&composing);
  MPI_Op_free(&adding);
  MPI_Comm_free(&comms[1]);
  MPI_Comm_free(&comms[2]);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
