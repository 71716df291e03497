// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/pmix/pending.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace ibcoll {

std::shared_ptr<Pending> Pending::create(size_t operations, size_t bytes) noexcept {
  try {
    auto pending = std::make_shared<Pending>(operations, bytes);
    pending->self_ = pending;
    return pending;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void Pending::answer(size_t index, pmix_status_t reason, std::span<const std::byte> bytes) noexcept {
  const std::lock_guard lock(mutex_);
  if (reason == PMIX_SUCCESS && bytes.size() != bytes_) reason = PMIX_ERR_BAD_PARAM;
  if (reason == PMIX_SUCCESS) {
    std::copy(bytes.begin(), bytes.end(), data_.begin() + static_cast<std::ptrdiff_t>(index * bytes_));
    good_[index] = true;
  } else if (reason_ == PMIX_SUCCESS) {
    reason_ = reason;
  }
  if (--outstanding_ == 0) all_answered_.notify_all();
}

void Pending::fence_done(pmix_status_t reason, void* data) noexcept {
  const std::unique_ptr<Slot> slot(static_cast<Slot*>(data));
  slot->pending->answer(slot->index, reason, {});
}

void Pending::value_arrived(pmix_status_t reason, pmix_value_t* value, void* data) noexcept {
  const std::unique_ptr<Slot> slot(static_cast<Slot*>(data));
  std::span<const std::byte> bytes;
  if (reason == PMIX_SUCCESS && value != nullptr && value->type == PMIX_BYTE_OBJECT) {
    bytes = {reinterpret_cast<const std::byte*>(value->data.bo.bytes), value->data.bo.size};
  } else if (reason == PMIX_SUCCESS) {
    reason = PMIX_ERR_TYPE_MISMATCH;
  }
  slot->pending->answer(slot->index, reason, bytes);
}

bool Pending::wait(double seconds) {
  std::unique_lock lock(mutex_);
  return all_answered_.wait_for(lock, wait_time(seconds), [this] { return outstanding_ == 0; });
}

int Pending::first_failed() {
  const std::lock_guard lock(mutex_);
  const auto failed = std::find(good_.begin(), good_.end(), false);
  return failed == good_.end() ? -1 : static_cast<int>(failed - good_.begin());
}

pmix_status_t Pending::reason() {
  const std::lock_guard lock(mutex_);
  return reason_;
}

}  // namespace ibcoll
