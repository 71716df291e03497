// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/context/link_trial.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace ibcoll {
namespace {

constexpr uint64_t kNoTeam = 0;  // the epoch of these notes: an engine drops what comes too late
enum Kind : uint16_t { kAsk = 1, kData, kEnough };

constexpr uint64_t kRequest = 32 << 10;  // bytes that are asked for at a time
constexpr uint64_t kAhead = 4 * kRequest;
constexpr uint64_t kSkipped = 7 * kRequest;  // twice the burst of a shaper that lets 1 ms at 1 Gbit/s through at once
constexpr uint64_t kInterval = 6 * kRequest;
constexpr uint64_t kDataBytes = kRequest / 2;
constexpr Time kLongEnough = 25'000'000;  // a link that is still busy with less is slow, and this is how slow

}  // namespace

LinkTrial::LinkTrial(Transport& transport, int from, int to)
    : transport_(transport), from_(from), to_(to), payload_(std::min<uint64_t>(transport.slot_bytes(), kDataBytes)) {}

bool LinkTrial::step() {
  std::array<Event, 16> events;
  const size_t count = transport_.poll(events);
  for (size_t i = 0; i < count; ++i) take(events[i]);
  ask();
  answer();
  if (!failure_.ok()) return true;
  return end_sent_ && done_ && requested_ == 0 && !transport_.unsent() && !transport_.needs_polling();
}

void LinkTrial::ask() {
  constexpr uint64_t kAll = kSkipped + kIntervals * kInterval;
  if (ended_) {
    if (!end_sent_) end_sent_ = send(from_, kEnough, 0, {});
    return;
  }
  while (asked_ < std::min(kAll, landed_ + kAhead) && send(from_, kAsk, kRequest, {})) asked_ += kRequest;
}

void LinkTrial::answer() {
  while (requested_ > 0) {
    const uint64_t bytes = std::min<uint64_t>(requested_, payload_.size());
    if (!send(to_, kData, bytes, std::span(payload_).first(bytes))) return;
    requested_ -= bytes;
  }
}

void LinkTrial::take(const Event& event) {
  if (event.kind == Event::Kind::kPeerFailed) {
    const std::string_view why(reinterpret_cast<const char*>(event.payload.data()), event.payload.size());
    const ibcoll_status_t code = lack_of(event) == IBCOLL_OK ? IBCOLL_ERR_PEER_FAILED : lack_of(event);
    failure_ = error(code, "rank {} was lost while its link was timed: {}", event.peer, why);
  }
  if (event.kind != Event::Kind::kMessage || event.note.epoch != kNoTeam) return;
  if (event.note.kind == kAsk && event.peer == to_) requested_ += kRequest;
  if (event.note.kind == kEnough && event.peer == to_) done_ = true;
  if (event.note.kind == kData && event.peer == from_) landed(event.payload.size());
}

// The fastest two intervals in a row count. A rank that is kept from its processor sees one too long, and the next one
// perhaps too short.
void LinkTrial::landed(uint64_t bytes) {
  if (ended_) return;
  const Time now = transport_.now();
  const uint64_t before = landed_;
  landed_ += bytes;
  if (before == 0) {
    first_ = bytes;
    first_at_ = now;
  }
  for (uint64_t i = 0; i < marks_.size(); ++i)
    if (const uint64_t at = kSkipped + i * kInterval; before < at && at <= landed_) marks_[i] = now;
  if (marks_.back() != 0) {
    Time took = UINT64_MAX;
    for (size_t i = 2; i < marks_.size(); ++i) took = std::min(took, marks_[i] - marks_[i - 2]);
    us_per_byte_ = static_cast<double>(took) / 1e3 / (2 * kInterval);
  } else if (landed_ >= 2 * kRequest && now - first_at_ >= kLongEnough) {
    us_per_byte_ = static_cast<double>(now - first_at_) / 1e3 / static_cast<double>(landed_ - first_);
  }
  ended_ = us_per_byte_ > 0 || marks_.back() != 0;
}

double LinkTrial::us_per_byte() const {
  return us_per_byte_ > 0 ? std::exp2(std::round(2 * std::log2(us_per_byte_)) / 2) : 0;
}

bool LinkTrial::send(int peer, uint16_t kind, uint64_t bytes, std::span<const std::byte> payload) {
  Note note;
  note.epoch = kNoTeam;
  note.bytes = bytes;
  note.kind = kind;
  return transport_.send(peer, note, payload);
}

double believed_us_per_byte(const LinkModel& model, std::vector<double> timed) {
  if (timed.empty()) return model.beta_us_per_byte;
  const auto middle = timed.begin() + static_cast<std::ptrdiff_t>((timed.size() - 1) / 2);
  std::nth_element(timed.begin(), middle, timed.end());
  const bool believed = model.beta == LinkModel::Beta::kReported && *middle <= 2 * model.beta_us_per_byte;
  return believed ? model.beta_us_per_byte : *middle;
}

}  // namespace ibcoll
