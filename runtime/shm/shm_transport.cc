// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/shm/shm_transport.h"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "runtime/json.h"
#include "runtime/log.h"
#include "runtime/shm/single_copy.h"
#include "runtime/wait.h"

namespace ibcoll {

// In the ring, 16-byte aligned. length: of the payload; kFiller: skip to the start of the ring.
struct ShmTransport::Record {
  static constexpr uint64_t kFiller = ~uint64_t{0};
  uint64_t length;
  uint64_t unused;
  Note note;
  static uint64_t bytes(uint64_t payload) { return (sizeof(Record) + payload + 15) & ~uint64_t{15}; }
};

ShmTransport::ShmTransport(std::shared_ptr<Segment> segment, std::vector<int> jobs, int rank, bool single_copy)
    : segment_(std::move(segment)),
      jobs_(std::move(jobs)),
      rank_(rank),
      single_copy_(single_copy),
      mask_(segment_->ring_bytes() - 1),
      outgoing_(jobs_.size()),
      known_dead_(jobs_.size(), false) {
  locals_.assign(static_cast<size_t>(*std::max_element(jobs_.begin(), jobs_.end())) + 1, -1);
  for (size_t i = 0; i < jobs_.size(); ++i) locals_[static_cast<size_t>(jobs_[i])] = static_cast<int>(i);
  RankInfo& info = segment_->info(rank_);
  info.probe.store(reinterpret_cast<uint64_t>(probe_word()), std::memory_order_relaxed);
  info.start.store(processes_.own().start, std::memory_order_relaxed);
  info.pid.store(::getpid(), std::memory_order_release);
}

Status ShmTransport::probe() {
  for (int i = 0; i < segment_->ranks(); ++i) {
    if (i == rank_) continue;
    const RankInfo& peer = segment_->info(i);
    if (Status status = processes_.add(i, pid(i), peer.start.load(std::memory_order_relaxed)); !status.ok())
      return error(status.code(), "shm: rank {}: {}", jobs_[static_cast<size_t>(rank_)], status.text());
    const bool may = single_copy_ && may_copy_process(pid(i), peer.probe.load(std::memory_order_relaxed));
    segment_->may_copy(rank_, i).store(may, std::memory_order_release);
  }
  return {};
}

bool ShmTransport::all_may_copy(const std::vector<int>& locals) const {
  for (const int i : locals)
    for (const int j : locals)
      if (i != j && !segment_->may_copy(i, j).load(std::memory_order_acquire)) return false;
  return true;
}

// ---------------------------------------------------------------- sending

ShmTransport::Outgoing* ShmTransport::outgoing(int local) noexcept {
  Outgoing& out = outgoing_[static_cast<size_t>(local)];
  if (out.block) return out.dead ? nullptr : &out;
  if (out.dead) return nullptr;
  if (Status status = segment_->ensure_pair(rank_, local); !status.ok()) {
    failed(local, status.text());
    return nullptr;
  }
  out.block = &segment_->pair(rank_, local);
  out.ring = segment_->ring(rank_, local);
  segment_->open(rank_, local).store(1, std::memory_order_release);
  segment_->info(local).open_count.fetch_add(1, std::memory_order_release);
  return &out;
}

// Room for one record in one piece; nullptr: the ring is full.
std::byte* ShmTransport::reserve(Outgoing& out, uint64_t bytes) noexcept {
  const uint64_t to_end = mask_ + 1 - (out.tail & mask_);
  const uint64_t needed = bytes <= to_end ? bytes : to_end + bytes;
  if (out.tail + needed - out.head > mask_ + 1) {
    out.head = out.block->head.load(std::memory_order_acquire);
    if (out.tail + needed - out.head > mask_ + 1) return nullptr;
  }
  if (bytes > to_end) {
    reinterpret_cast<Record*>(out.ring + (out.tail & mask_))->length = Record::kFiller;
    out.tail += to_end;
  }
  return out.ring + (out.tail & mask_);
}

void ShmTransport::write_record(Outgoing& out, std::byte* at, const Note& note,
                                std::span<const std::byte> payload) noexcept {
  auto* const record = reinterpret_cast<Record*>(at);
  record->length = payload.size();
  record->note = note;
  if (!payload.empty()) std::memcpy(record + 1, payload.data(), payload.size());
  out.tail += Record::bytes(payload.size());
  out.block->tail.store(out.tail, std::memory_order_release);
  ++messages_sent_;
}

bool ShmTransport::send(int peer, const Note& note, std::span<const std::byte> payload) {
  Outgoing* const out = outgoing(local(peer));
  if (!out) return false;
  std::byte* const at = reserve(*out, Record::bytes(payload.size()));
  if (!at) return false;
  write_record(*out, at, note, payload);
  return true;
}

// ---------------------------------------------------------------- exposures and puts

RemoteRegion ShmTransport::expose(int peer, std::span<std::byte> memory) {
  const int from = local(peer);
  const RemoteRegion none{reinterpret_cast<uint64_t>(memory.data()), memory.size(), 0};
  if (!segment_->may_copy(from, rank_).load(std::memory_order_acquire)) return none;
  if (!segment_->ensure_pair(from, rank_).ok()) return none;
  PairBlock& block = segment_->pair(from, rank_);
  for (uint64_t i = 0; i < PairBlock::kExposures; ++i) {
    Exposure& exposure = block.exposures[i];
    const uint64_t word = exposure.word.load(std::memory_order_acquire);
    if ((word & 3) != Exposure::kFree) continue;
    const uint64_t generation = (word >> 2) + 1;
    exposure.address.store(none.address, std::memory_order_relaxed);
    exposure.bytes.store(none.bytes, std::memory_order_relaxed);
    exposure.word.store(generation << 2 | Exposure::kExposed, std::memory_order_release);
    return {none.address, none.bytes, generation * PairBlock::kExposures + i};
  }
  return none;
}

// The right is the sender's while it writes, and nothing takes it back: the kernel moves the bytes on its behalf. Only its
// end does; a dead process writes nothing.
bool ShmTransport::conceal(int peer, const RemoteRegion& region) {
  if (region.key == 0) return true;
  const int from = local(peer);
  Exposure& exposure = segment_->pair(from, rank_).exposures[region.key % PairBlock::kExposures];
  const uint64_t generation = region.key / PairBlock::kExposures;
  const uint64_t concealed = generation << 2 | Exposure::kFree;
  uint64_t word = generation << 2 | Exposure::kExposed;
  if (exposure.word.compare_exchange_strong(word, concealed, std::memory_order_acq_rel)) return true;
  if (word != (generation << 2 | Exposure::kWriting)) return true;  // concealed before
  if (alive(from)) return false;
  exposure.word.store(concealed, std::memory_order_release);
  return true;
}

PutResult ShmTransport::put(int peer, const RemoteRegion& to, std::span<const std::byte> from, const Note& note,
                            uint64_t) {
  const int to_local = local(peer);
  Outgoing* const out = outgoing(to_local);
  if (!out) return PutResult::kBusy;
  std::byte* const at = reserve(*out, Record::bytes(0));
  if (!at) return PutResult::kBusy;

  Exposure& exposure = out->block->exposures[to.key % PairBlock::kExposures];
  const uint64_t generation = to.key / PairBlock::kExposures;
  uint64_t exposed = generation << 2 | Exposure::kExposed;
  if (to.key == 0 || !exposure.word.compare_exchange_strong(exposed, generation << 2 | Exposure::kWriting,
                                                            std::memory_order_acq_rel)) {
    ++puts_dropped_;
    log(LogLevel::kInfo, "shm: a put of {} bytes to rank {} was dropped: the region is not exposed any more",
        from.size(), peer);
    return PutResult::kDone;
  }
  const bool fits = exposure.address.load(std::memory_order_relaxed) == to.address &&
                    from.size() <= exposure.bytes.load(std::memory_order_relaxed);
  Status status;
  if (fits && !from.empty()) status = write_process(pid(to_local), to.address, from);
  exposure.word.store(generation << 2 | Exposure::kExposed, std::memory_order_release);
  if (!fits) {
    ++puts_dropped_;
    log(LogLevel::kWarning, "shm: a put of {} bytes to rank {} was dropped: it is outside of the exposed region",
        from.size(), peer);
    return PutResult::kDone;
  }
  if (!status.ok()) {
    failed(to_local, status.text());
    return PutResult::kBusy;
  }
  ++single_copies_;
  write_record(*out, at, note, {});
  return PutResult::kDone;
}

// ---------------------------------------------------------------- receiving

void ShmTransport::find_senders() {
  seen_open_count_ = segment_->info(rank_).open_count.load(std::memory_order_acquire);
  for (int i = 0; i < segment_->ranks(); ++i) {
    if (!segment_->open(i, rank_).load(std::memory_order_acquire)) continue;
    if (std::any_of(incoming_.begin(), incoming_.end(), [&](const Incoming& in) { return in.local == i; })) continue;
    incoming_.push_back({i, &segment_->pair(i, rank_), segment_->ring(i, rank_), 0, false});
  }
}

size_t ShmTransport::take(Incoming& in, std::span<Event> events) noexcept {
  const uint64_t tail = in.block->tail.load(std::memory_order_acquire);
  size_t count = 0;
  while (in.head != tail && count < events.size()) {
    const auto* const record = reinterpret_cast<const Record*>(in.ring + (in.head & mask_));
    in.taken = true;
    if (record->length == Record::kFiller) {
      in.head += mask_ + 1 - (in.head & mask_);
      continue;
    }
    Event& event = events[count++];
    event.kind = Event::Kind::kMessage;
    event.peer = jobs_[static_cast<size_t>(in.local)];
    event.note = record->note;
    event.payload = {reinterpret_cast<const std::byte*>(record + 1), record->length};
    in.head += Record::bytes(record->length);
  }
  return count;
}

size_t ShmTransport::poll(std::span<Event> events) {
  size_t count = 0;
  if (segment_->info(rank_).open_count.load(std::memory_order_relaxed) != seen_open_count_) [[unlikely]]
    find_senders();
  const size_t senders = incoming_.size();
  for (size_t i = 0; i < senders; ++i) {
    Incoming& in = incoming_[i];
    if (!in.taken) continue;
    in.block->head.store(in.head, std::memory_order_release);  // what the last poll gave out may be overwritten now
    in.taken = false;
  }
  for (size_t i = 0; i < senders && count < events.size(); ++i) {
    if (next_incoming_ >= senders) next_incoming_ = 0;
    count += take(incoming_[next_incoming_++], events.subspan(count));
  }
  if (!failures_.empty()) [[unlikely]]
    count += report_failures(events.subspan(count));
  return count;
}

// In the order in which they were noticed, and each after all that the peer sent: what it had to say of the failure of
// another rank comes before its own end.
size_t ShmTransport::report_failures(std::span<Event> events) {
  size_t count = 0;
  for (auto at = failures_.begin(); at != failures_.end() && count < events.size();) {
    const int local = at->local;
    const auto in =
        std::find_if(incoming_.begin(), incoming_.end(), [local](const Incoming& i) { return i.local == local; });
    const bool drained = in != incoming_.end() ? in->head == in->block->tail.load(std::memory_order_acquire)
                                               : !segment_->open(local, rank_).load(std::memory_order_acquire);
    if (!drained) {
      ++at;
      continue;
    }
    reported_.push_back(std::make_unique<std::string>(std::move(at->why)));
    events[count++] = {Event::Kind::kPeerFailed,
                       jobs_[static_cast<size_t>(local)],
                       {},
                       std::as_bytes(std::span(*reported_.back())),
                       0};
    at = failures_.erase(at);
  }
  return count;
}

// ---------------------------------------------------------------- liveness

void ShmTransport::failed(int local, std::string why) {
  outgoing_[static_cast<size_t>(local)].dead = true;
  if (known_dead_[static_cast<size_t>(local)]) return;
  known_dead_[static_cast<size_t>(local)] = true;
  failures_.push_back({local, std::move(why)});
}

void ShmTransport::check_peers() {
  for (const int i : processes_.ended()) failed(i, fmt::format("its process {} on this node is gone", pid(i)));
}

Time ShmTransport::now() const {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<Time>(time.tv_sec) * 1'000'000'000 + static_cast<Time>(time.tv_nsec);
}

Json ShmTransport::describe() const {
  int readable = 0;
  for (int i = 0; i < segment_->ranks(); ++i) readable += i != rank_ && segment_->may_copy(rank_, i).load();
  const int peers = segment_->ranks() - 1;
  const char* const why =
      !single_copy_       ? "off (IBCOLL_SINGLE_COPY)"
      : readable == peers ? "process_vm_readv and process_vm_writev work with all"
      : readable == 0
          ? "the kernel refuses process_vm_readv or process_vm_writev (ptrace scope, seccomp or user namespaces)"
          : "the kernel refuses process_vm_readv or process_vm_writev with some";
  return {{"name", name()},
          {"ranks_on_node", segment_->ranks()},
          {"single_copy_peers", readable},
          {"single_copy", why},
          {"ends_noticed_by", processes_.method()},
          {"slot_bytes", slot_bytes()},
          {"ring_bytes", segment_->ring_bytes()},
          {"connections", std::count_if(outgoing_.begin(), outgoing_.end(), [](const Outgoing& o) { return o.block; })},
          {"messages_sent", messages_sent_},
          {"single_copy_puts", single_copies_},
          {"puts_dropped", puts_dropped_}};
}

// ---------------------------------------------------------------- node memory

bool ShmNodeMemory::can_read(int peer) const {
  return transport_.segment().may_copy(transport_.self(), transport_.local(peer)).load(std::memory_order_acquire);
}

Status ShmNodeMemory::read(int peer, uint64_t address, std::span<std::byte> into) {
  const int local = transport_.local(peer);
  Status status = read_process(transport_.pid(local), address, into);
  if (status.ok() || (status.code() != IBCOLL_ERR_PEER_FAILED && transport_.alive(local))) return status;
  return error(IBCOLL_ERR_PEER_FAILED, "rank {} of the job failed: its process {} on this node is gone", peer,
               transport_.pid(local));
}

}  // namespace ibcoll
