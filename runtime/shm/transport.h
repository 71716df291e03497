// SPDX-License-Identifier: BSD-3-Clause
// The transport between ranks of one node: for each ordered pair a ring of records in shared memory (one writer, one
// reader, two counters), and puts by process_vm_writev under the guard of an exposure that the receiver can revoke.
// A record: length, note, payload; never split: a filler record skips to the start of the ring.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/machine/process_watch.h"
#include "runtime/machine/store_choice.h"
#include "runtime/shm/segment.h"
#include "runtime/transport/cost_constants.h"
#include "runtime/transport/transport.h"

namespace ibcoll::shm {

class Transport : public ibcoll::Transport {
 public:
  // `jobs[i]`: job rank of local rank i; `rank`: this one's local index. Collective over the node in two steps, with a
  // synchronisation of all its ranks after each: the constructor publishes pid and probe word; then probe().
  Transport(std::shared_ptr<Segment> segment, std::vector<int> jobs, int rank, bool single_copy);

  // Watches the other processes, and tries which ranks' memory this rank may read and write; the results of the other
  // ranks are known after the next synchronisation. SYSTEM: the end of a process would not be noticed.
  Status probe();
  // How long two ranks of the node take to move bytes to each other; collective like probe(), after its
  // synchronisation. All 0 on other ranks, and where it took too long.
  MemoryModel time_memory();
  // True when all of these ranks of the job may read and write each other's memory.
  bool all_may_copy(const std::vector<int>& jobs) const noexcept;

  const char* name() const override { return "shm"; }
  size_t slot_bytes() const override { return segment_->ring_bytes() / 4; }
  bool send(int peer, const Note& note, std::span<const std::byte> payload) override;
  RemoteRegion expose(int peer, std::span<std::byte> memory) override;
  bool conceal(int peer, const RemoteRegion& region) override;
  PutResult put(int peer, const RemoteRegion& to, std::span<const std::byte> from, const Note& note,
                uint64_t token) override;
  size_t poll(std::span<Event> events) override;
  void check_peers() override;
  Time now() const override;
  LinkModel model() const override { return cost::kShmLink; }
  bool moves_meanwhile() const override { return false; }
  Json describe() const override;

  Segment& segment() noexcept { return *segment_; }
  int self() const noexcept { return rank_; }
  int local(int job_rank) const noexcept { return locals_[static_cast<size_t>(job_rank)]; }
  std::vector<int> locals(const std::vector<int>& job_ranks) const {
    std::vector<int> all;
    all.reserve(job_ranks.size());
    for (const int job_rank : job_ranks) all.push_back(local(job_rank));
    return all;
  }
  int job(int local) const noexcept { return jobs_[static_cast<size_t>(local)]; }
  // False once the process has ended.
  bool alive(int local) const { return processes_.alive(local); }
  // The first of these ranks whose process has ended, or -1: one system call.
  int first_ended(const std::vector<int>& locals) { return processes_.first_ended(locals); }
  pid_t pid(int local) const noexcept { return pids_[static_cast<size_t>(local)]; }
  // This rank may use the memory of `local`; false for good once the kernel has refused it.
  bool may_use(int local) const noexcept {
    return segment_->may_copy(rank_, local).load(std::memory_order_acquire) == Segment::kMayCopy;
  }
  void refused(int local, const Status& why) noexcept;
  bool any_refused() const noexcept;

 private:
  struct Outgoing {  // to one peer
    PairBlock* block = nullptr;
    std::byte* ring = nullptr;
    uint64_t tail = 0;
    uint64_t head = 0;  // as last seen
    bool dead = false;
  };
  struct Incoming {  // from one peer
    int local = -1;
    PairBlock* block = nullptr;
    const std::byte* ring = nullptr;
    uint64_t head = 0;
    bool taken = false;    // since the last poll: head must be published
    bool spoiled = false;  // nothing more is taken
  };
  // In the ring, 16-byte aligned. length: of the payload; kFiller: skip to the start of the ring.
  struct Record {
    static constexpr uint64_t kFiller = ~uint64_t{0};
    uint64_t length;
    uint64_t unused;
    Note note;
    static uint64_t bytes(uint64_t payload) { return (sizeof(Record) + payload + 15) & ~uint64_t{15}; }
  };

  Outgoing* outgoing(int local) noexcept;
  std::byte* reserve(Outgoing& out, uint64_t bytes) noexcept;
  void write_record(Outgoing& out, std::byte* at, const Note& note, std::span<const std::byte> payload) noexcept;
  void find_senders();
  size_t take(Incoming& in, std::span<Event> events) noexcept;
  void spoiled(Incoming& in) noexcept;
  size_t report_failures(std::span<Event> events, bool of_this_rank);
  void failed(int local, Status why, ibcoll_status_t of_this_rank = IBCOLL_OK) noexcept;

  std::shared_ptr<Segment> segment_;
  std::vector<int> jobs_;
  std::vector<int> locals_;  // job rank -> local rank, -1: on another node
  std::vector<pid_t> pids_;  // by local rank
  int rank_;
  bool single_copy_;
  uint64_t mask_;
  std::vector<Outgoing> outgoing_;
  StoreChoice stores_;  // into the rings of others
  std::vector<Incoming> incoming_;
  int seen_open_count_ = 0;
  size_t next_incoming_ = 0;
  ProcessWatch processes_{ProcessWatch::Until::kEnded};  // by local rank
  struct Failure {
    int local;
    Status why;
    ibcoll_status_t of_this_rank;  // OK: it is the peer that failed
  };
  // Each peer has one at most, and there is room for that from the start.
  std::vector<Failure> failures_;  // not reported yet
  std::vector<Status> reported_;   // texts of events
  std::vector<bool> known_dead_;
  uint64_t messages_sent_ = 0;
  uint64_t single_copies_ = 0;
  uint64_t puts_dropped_ = 0;
};

// The node's heap and single-copy reads, on the same segment.
class NodeMemory : public ibcoll::NodeMemory {
 public:
  explicit NodeMemory(Transport& transport) : transport_(transport) {
    read_.reserve(static_cast<size_t>(transport.segment().ranks()));
  }
  Result<uint64_t> allocate(uint64_t bytes) override;
  void release(uint64_t offset, uint64_t bytes) override { segment().release(offset, bytes); }
  uint64_t allocated_last(int peer) override;
  Result<std::byte*> at(uint64_t offset, uint64_t bytes) override { return segment().map_heap(offset, bytes); }
  Status back(uint64_t offset, uint64_t bytes) override { return segment().back(offset, bytes); }
  bool back_all(uint64_t offset, uint64_t bytes) override { return segment().back_all(offset, bytes); }
  bool alive(int peer) const override {
    const int local = transport_.local(peer);
    return local == transport_.self() || transport_.alive(local);
  }
  bool can_read(int peer) const override;
  Status read(int peer, uint64_t address, std::span<std::byte> into) override;
  Status confirm() override;

 private:
  Segment& segment() noexcept { return transport_.segment(); }
  Status gone(int local) const;

  Transport& transport_;
  std::vector<int> read_;  // local ranks, since the last confirm(), each once
};

}  // namespace ibcoll::shm
