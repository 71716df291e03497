// SPDX-License-Identifier: BSD-3-Clause
// Buffers in memory that is not like other memory: read-only, or such that the kernel does not move it for another
// process (mapped devices, memfd_secret), or not there at all.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "tests/multiprocess/scenario.h"

namespace ibcoll::multiprocess {
namespace {

// Pages of their own, for as long as this lives.
class Mapped {
 public:
  explicit Mapped(size_t bytes, int descriptor = -1)
      : bytes_(bytes),
        start_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, descriptor < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED,
                      descriptor, 0)) {}
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  ~Mapped() {
    if (mapped()) ::munmap(start_, bytes_);
  }
  bool mapped() const { return start_ != MAP_FAILED; }
  uint8_t* data() const { return static_cast<uint8_t*>(start_); }
  void protect(int access) const { ::mprotect(start_, bytes_, access); }

 private:
  size_t bytes_;
  void* start_;
};

// Memory that only this process can read and write. Not mapped where the kernel has no such memory, or not so much.
Mapped secret(size_t bytes) {
  const auto descriptor = static_cast<int>(::syscall(SYS_memfd_secret, 0U));
  if (descriptor >= 0 && ::ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) complain("ftruncate");
  const size_t size = descriptor < 0 ? 0 : bytes;  // mmap() refuses 0
  struct Closer {
    int descriptor;
    ~Closer() {
      if (descriptor >= 0) ::close(descriptor);
    }
  } closer{descriptor};
  return Mapped(size, descriptor);
}

constexpr ibcoll_collective_t kMoves[] = {IBCOLL_BCAST,     IBCOLL_ALLGATHER, IBCOLL_ALLTOALL, IBCOLL_ALLTOALLV,
                                          IBCOLL_ALLREDUCE, IBCOLL_GATHER,    IBCOLL_SCATTER};

// Blocks of `bytes` bytes, all of which have one value: the source's rank + 1. Of reductions the maximum; the last rank
// is the root.
class Move {
 public:
  Move(const Rank& self, ibcoll_collective_t collective, size_t bytes)
      : self_(self), collective_(collective), bytes_(bytes), p_(static_cast<size_t>(self.size)) {
    for (size_t i = 0; i < p_; ++i) displacements_.push_back(i * bytes);
  }

  // False: wrong, and that was said. `send`, `recv`: p blocks each.
  bool run(uint8_t* send, uint8_t* recv, const char* algorithm, ibcoll_scheme_t scheme) const {
    const bool bcast = collective_ == IBCOLL_BCAST;
    if (bcast && at_root()) recv = send;
    ibcoll_collective_args_t args{};
    args.struct_size = sizeof args;
    args.collective = collective_;
    args.algorithm = algorithm;
    args.scheme = scheme;
    args.root = self_.size - 1;
    args.send = bcast ? nullptr : send;
    args.recv = recv;
    if (collective_ == IBCOLL_ALLTOALLV) {
      args.send_counts = args.recv_counts = counts_.data();
      args.send_displacements = args.recv_displacements = displacements_.data();
    } else if (collective_ == IBCOLL_ALLREDUCE) {
      args.count = bytes_, args.type = IBCOLL_UINT8, args.op = IBCOLL_MAX;
    } else {
      args.bytes = bytes_;
    }
    if (recv != send) std::memset(recv, 0, p_ * bytes_);
    const ibcoll_status_t status = ibcoll_collective_run(self_.world, &args);
    if (status == IBCOLL_ERR_NOT_APPLICABLE) return true;
    if (!expect_ok(status, fmt::format("{} ({})", name(), algorithm ? algorithm : "auto"))) return false;
    return is_right(recv, algorithm ? algorithm : "auto");
  }
  const char* name() const { return ibcoll_collective_name(collective_); }

 private:
  bool at_root() const { return self_.rank == self_.size - 1; }
  bool is_right(const uint8_t* recv, const char* algorithm) const {
    const bool rooted = collective_ == IBCOLL_GATHER, blocks = rooted || has_blocks();
    for (size_t at = 0; (!rooted || at_root()) && at < (blocks ? p_ * bytes_ : bytes_); ++at) {
      const size_t wanted = blocks ? at / bytes_ + 1 : p_;
      if (!expect(recv[at] == wanted, "{} {} of {} bytes: byte {} is {}, not {}", name(), algorithm, bytes_, at,
                  recv[at], wanted))
        return false;
    }
    return true;
  }
  bool has_blocks() const {
    return collective_ == IBCOLL_ALLGATHER || collective_ == IBCOLL_ALLTOALL || collective_ == IBCOLL_ALLTOALLV;
  }

  const Rank& self_;
  const ibcoll_collective_t collective_;
  const size_t bytes_, p_;
  std::vector<uint64_t> counts_ = std::vector<uint64_t>(p_, bytes_), displacements_;
};

// By every algorithm, and by what selection takes.
bool move_by_all(const Rank& self, size_t bytes, uint8_t* send, uint8_t* recv) {
  for (const ibcoll_collective_t collective : kMoves) {
    const Move move(self, collective, bytes);
    const char* algorithm = nullptr;
    if (!move.run(send, recv, algorithm, IBCOLL_SCHEME_AUTO)) return false;
    for (int i = 0; (algorithm = ibcoll_algorithm_name(collective, i)) != nullptr; ++i)
      if (!move.run(send, recv, algorithm, IBCOLL_SCHEME_ZERO_COPY)) return false;
  }
  return true;
}

// A send buffer may be memory that cannot be written: a file's, or constants.
void read_only_sources(Rank& self) {
  for (const size_t bytes : {size_t{100}, size_t{100'000}}) {
    const size_t all = static_cast<size_t>(self.size) * bytes;
    const Mapped send(all);
    if (!expect(send.mapped(), "mmap")) return;
    std::memset(send.data(), self.rank + 1, all);
    send.protect(PROT_READ);
    std::vector<uint8_t> received(all);
    if (!move_by_all(self, bytes, send.data(), received.data())) return;
  }
}

// Every other rank's buffers are its own secret: first those that it sends, then those that it receives.
void secret_buffers(Rank& self) {
  for (const size_t bytes : {size_t{1000}, size_t{100'000}}) {
    const size_t all = static_cast<size_t>(self.size) * bytes;
    const Mapped hidden = secret(all);
    uint8_t mine = !hidden.mapped(), any = 0;
    expect_ok(ibcoll_allreduce(self.world, &mine, &any, 1, IBCOLL_UINT8, IBCOLL_MAX), "allreduce");
    if (any > 0) {
      if (self.rank == 0) fmt::print(stderr, "secret_buffers: skipped, no memfd_secret of {} bytes here\n", all);
      return;
    }
    std::vector<uint8_t> open(all);
    for (const bool receives : {false, true}) {
      const bool hides = self.rank % 2 == (receives ? 0 : 1);
      uint8_t* send = open.data();
      std::vector<uint8_t> other(all);
      uint8_t* recv = other.data();
      if (hides) (receives ? recv : send) = hidden.data();
      std::memset(send, self.rank + 1, all);
      if (!move_by_all(self, bytes, send, recv)) return;
    }
  }
}

// A part of rank 1's buffer is not there: of the block for rank 0, or from it. All ranks get an error that says so.
void missing_memory(Rank& self) {
  constexpr size_t kBytes = 300'000, kPage = 4096;
  struct Case {
    ibcoll_collective_t collective;
    const char* algorithm;
    bool sends;
  };
  for (const Case& one : {Case{IBCOLL_BCAST, "single_copy", true}, Case{IBCOLL_BCAST, "single_copy", false},
                          Case{IBCOLL_ALLTOALL, "direct", true}, Case{IBCOLL_ALLTOALL, "direct", false}}) {
    const TeamOwner team = split(self.world, 0, self.rank);
    const size_t all = static_cast<size_t>(self.size) * kBytes;
    const Mapped send(all), recv(all);
    const bool bcast = one.collective == IBCOLL_BCAST;
    const Mapped& whole = one.sends && !bcast ? send : recv;
    if (self.rank == 1) ::mprotect(whole.data() + kPage, 10 * kPage, PROT_NONE);
    ibcoll_collective_args_t args{};
    args.struct_size = sizeof args;
    args.collective = one.collective;
    args.algorithm = one.algorithm;
    args.root = one.sends ? 1 : 0;
    args.send = bcast ? nullptr : send.data();
    args.recv = recv.data();
    args.bytes = kBytes;
    ibcoll_status_t status = ibcoll_collective_run(team.get(), &args);
    if (status == IBCOLL_OK && self.rank != 1) status = ibcoll_barrier(team.get());  // its part was complete
    expect_error(status, IBCOLL_ERR_SYSTEM,
                 one.sends ? "rank 1 cannot read its own buffer" : "rank 1 cannot write to its own buffer",
                 fmt::format("{} ({})", ibcoll_collective_name(one.collective), one.sends ? "sends" : "receives"));
  }
}

constexpr Scenario kMappedMemoryScenarios[] = {
    {"read_only_sources", read_only_sources}, {"secret_buffers", secret_buffers}, {"missing_memory", missing_memory}};

}  // namespace

std::span<const Scenario> mapped_memory_scenarios() { return kMappedMemoryScenarios; }

}  // namespace ibcoll::multiprocess
