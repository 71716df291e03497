// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/shm/transport.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "runtime/shm/memory_trial.h"
#include "runtime/shm/single_copy.h"

namespace ibcoll::shm {
namespace {

constexpr std::chrono::milliseconds kTrialLimit{50};  // a fraction of what a start takes; it needs two to five

}  // namespace

Transport::Transport(std::shared_ptr<Segment> segment, std::vector<int> jobs, int rank, bool single_copy)
    : segment_(std::move(segment)),
      jobs_(std::move(jobs)),
      pids_(jobs_.size(), ::getpid()),
      rank_(rank),
      single_copy_(single_copy),
      mask_(segment_->ring_bytes() - 1),
      outgoing_(jobs_.size()),
      stores_(StoreCosts(static_cast<int>(jobs_.size()))),
      known_dead_(jobs_.size(), false) {
  incoming_.reserve(jobs_.size());
  failures_.reserve(jobs_.size());
  reported_.reserve(jobs_.size());
  locals_.assign(static_cast<size_t>(*std::max_element(jobs_.begin(), jobs_.end())) + 1, -1);
  for (size_t i = 0; i < jobs_.size(); ++i) locals_[static_cast<size_t>(jobs_[i])] = static_cast<int>(i);
  RankInfo& info = segment_->info(rank_);
  info.probe.store(reinterpret_cast<uint64_t>(probe_word()), std::memory_order_relaxed);
  info.start.store(processes_.own().start, std::memory_order_relaxed);
  info.pid.store(::getpid(), std::memory_order_release);
}

Status Transport::probe() {
  for (int i = 0; i < segment_->ranks(); ++i) {
    if (i == rank_) continue;
    const RankInfo& peer = segment_->info(i);
    pids_[static_cast<size_t>(i)] = peer.pid.load(std::memory_order_acquire);
    if (Status status = processes_.add(i, pid(i), peer.start.load(std::memory_order_relaxed)); !status.ok())
      return error(status.code(), "shm: rank {}: {}", jobs_[static_cast<size_t>(rank_)], status.text());
    const bool may = single_copy_ && may_copy_process(pid(i), peer.probe.load(std::memory_order_relaxed));
    segment_->may_copy(rank_, i).store(may ? Segment::kMayCopy : Segment::kNever, std::memory_order_release);
  }
  return {};
}

MemoryModel Transport::time_memory() {
  const int partner = trial_partner(rank_, segment_->ranks());
  if (partner < 0) return {};
  const bool reads = segment_->may_copy(rank_, partner).load(std::memory_order_acquire) != 0;
  return shm::time_memory(*segment_, rank_, partner, reads, kTrialLimit);
}

bool Transport::all_may_copy(const std::vector<int>& jobs) const noexcept {
  for (const int i : jobs)
    for (const int j : jobs)
      if (i != j && segment_->may_copy(local(i), local(j)).load(std::memory_order_acquire) == Segment::kNever)
        return false;
  return true;
}

// A process that changes its user, or forbids that its memory is read, is not asked again.
void Transport::refused(int local, const Status& why) noexcept {
  segment_->may_copy(rank_, local).store(Segment::kRefused, std::memory_order_release);
  log(LogLevel::kInfo, "shm: large blocks go to and from rank {} by two copies from now on: {}",
      jobs_[static_cast<size_t>(local)], why.text());
}

bool Transport::any_refused() const noexcept {
  for (int i = 0; i < segment_->ranks(); ++i)
    if (segment_->may_copy(rank_, i).load(std::memory_order_relaxed) == Segment::kRefused) return true;
  return false;
}

// ---------------------------------------------------------------- sending

Transport::Outgoing* Transport::outgoing(int local) noexcept {
  Outgoing& out = outgoing_[static_cast<size_t>(local)];
  if (out.block) return out.dead ? nullptr : &out;
  if (out.dead) return nullptr;
  if (Status status = segment_->ensure_pair(rank_, local); !status.ok()) {
    failed(local, status, status.code());
    return nullptr;
  }
  out.block = &segment_->pair(rank_, local);
  out.ring = segment_->ring(rank_, local);
  segment_->open(rank_, local).store(1, std::memory_order_release);
  segment_->info(local).open_count.fetch_add(1, std::memory_order_release);
  return &out;
}

// Contiguous room for one record; nullptr: the ring is full.
std::byte* Transport::reserve(Outgoing& out, uint64_t bytes) noexcept {
  const uint64_t to_end = mask_ + 1 - (out.tail & mask_);
  const uint64_t needed = bytes <= to_end ? bytes : to_end + bytes;
  if (out.tail + needed - out.head > mask_ + 1) {
    const uint64_t head = out.block->head.load(std::memory_order_acquire);
    if (out.tail - head > mask_ + 1) [[unlikely]] {
      failed(static_cast<int>(&out - outgoing_.data()),
             error(IBCOLL_ERR_PEER_FAILED,
                   "it has taken more than was sent to it: shared memory is spoiled; run the program with a memory "
                   "checker"));
      return nullptr;
    }
    out.head = head;
    if (out.tail + needed - out.head > mask_ + 1) return nullptr;
  }
  if (bytes > to_end) {
    reinterpret_cast<Record*>(out.ring + (out.tail & mask_))->length = Record::kFiller;
    out.tail += to_end;
  }
  return out.ring + (out.tail & mask_);
}

void Transport::write_record(Outgoing& out, std::byte* at, const Note& note,
                             std::span<const std::byte> payload) noexcept {
  auto* const record = reinterpret_cast<Record*>(at);
  record->length = payload.size();
  record->note = note;
  stores_.copy(static_cast<int>(&out - outgoing_.data()), {reinterpret_cast<std::byte*>(record + 1), payload.size()},
               payload);
  stores_.fence();
  out.tail += Record::bytes(payload.size());
  out.block->tail.store(out.tail, std::memory_order_release);
  ++messages_sent_;
}

bool Transport::send(int peer, const Note& note, std::span<const std::byte> payload) {
  Outgoing* const out = outgoing(local(peer));
  if (!out) return false;
  std::byte* const at = reserve(*out, Record::bytes(payload.size()));
  if (!at) return false;
  write_record(*out, at, note, payload);
  return true;
}

// ---------------------------------------------------------------- liveness

void Transport::failed(int local, Status why, ibcoll_status_t of_this_rank) noexcept {
  outgoing_[static_cast<size_t>(local)].dead = true;
  if (known_dead_[static_cast<size_t>(local)]) return;
  known_dead_[static_cast<size_t>(local)] = true;
  failures_.push_back({local, std::move(why), of_this_rank});
}

void Transport::check_peers() {
  for (const int i : processes_.ended())
    failed(i, error(IBCOLL_ERR_PEER_FAILED, "its process {} on this node is gone", pid(i)));
}

Time Transport::now() const {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<Time>(time.tv_sec) * 1'000'000'000 + static_cast<Time>(time.tv_nsec);
}

Json Transport::describe() const {
  // Counts all ranks, not this one alone: collectives depend on what all may do.
  const int ranks = segment_->ranks();
  int allowed = 0;
  std::string refused;
  for (int i = 0; i < ranks; ++i)
    for (int j = 0; j < ranks; ++j)
      if (i != j && segment_->may_copy(i, j).load() == Segment::kMayCopy)
        ++allowed;
      else if (i != j && refused.empty())
        refused = fmt::format("rank {} with rank {}", jobs_[static_cast<size_t>(i)], jobs_[static_cast<size_t>(j)]);
  const int pairs = ranks * (ranks - 1);
  const std::string why =
      !single_copy_      ? "off (IBCOLL_SINGLE_COPY)"
      : allowed == pairs ? "process_vm_readv and process_vm_writev work between all ranks of the node"
                         : fmt::format(
                               "the kernel refuses process_vm_readv or process_vm_writev (ptrace scope, seccomp or "
                               "user namespaces), first to {}",
                               refused);
  return {{"name", name()},
          {"ranks_on_node", ranks},
          {"single_copy_pairs", fmt::format("{} of {}", allowed, pairs)},
          {"single_copy", why},
          {"ends_noticed_by", processes_.method()},
          {"heap", fmt::format("{} MB", segment_->heap_bytes() >> 20)},
          {"heap_reserved_bytes", segment_->reserved()},
          {"slot_bytes", slot_bytes()},
          {"ring_bytes", segment_->ring_bytes()},
          {"connections", std::count_if(outgoing_.begin(), outgoing_.end(), [](const Outgoing& o) { return o.block; })},
          {"messages_sent", messages_sent_},
          {"single_copy_puts", single_copies_},
          {"puts_dropped", puts_dropped_}};
}

// ---------------------------------------------------------------- node memory

// Stored where others find it if this rank dies before it can send the offset.
Result<uint64_t> NodeMemory::allocate(uint64_t bytes) {
  Result<uint64_t> offset = segment().reserve(bytes);
  if (offset.ok())
    segment().info(transport_.self()).window.store(*offset / kSegmentPage + 1, std::memory_order_release);
  return offset;
}

uint64_t NodeMemory::allocated_last(int peer) {
  const uint64_t window = segment().info(transport_.local(peer)).window.load(std::memory_order_acquire);
  return window == 0 || window > kHeapBytes / kSegmentPage ? kNowhere : (window - 1) * kSegmentPage;
}

bool NodeMemory::can_read(int peer) const { return transport_.may_use(transport_.local(peer)); }

Status NodeMemory::read(int peer, uint64_t address, std::span<std::byte> into) {
  const int local = transport_.local(peer);
  if (!transport_.may_use(local))
    return error(IBCOLL_ERR_UNSUPPORTED, "shm: the kernel does not let this rank read the memory of rank {}", peer);
  Status status = read_process(transport_.pid(local), address, into);
  if (status.ok()) {
    if (std::find(read_.begin(), read_.end(), local) == read_.end()) read_.push_back(local);
    return status;
  }
  if (status.code() == IBCOLL_ERR_PEER_FAILED || !transport_.alive(local)) return gone(local);
  if (status.code() == IBCOLL_ERR_UNSUPPORTED) transport_.refused(local, status);
  return error(IBCOLL_ERR_UNSUPPORTED, "{}", status.text());
}

Status NodeMemory::confirm() {
  const int ended = transport_.first_ended(read_);
  read_.clear();
  return ended < 0 ? Status() : gone(ended);
}

Status NodeMemory::gone(int local) const {
  return error(IBCOLL_ERR_PEER_FAILED, "rank {} of the job failed: its process {} on this node is gone",
               transport_.job(local), transport_.pid(local));
}

}  // namespace ibcoll::shm
