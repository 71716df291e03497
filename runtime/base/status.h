// SPDX-License-Identifier: BSD-3-Clause
// Errors as values. A Status is a class of error (ibcoll.h) and a text that says who, where, why and what to try.
// Making one never throws: where there is no memory for the text, the class alone is left.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "runtime/include/ibcoll.h"

// Marks what modules (libibcoll_ucx.so, ...) use of libibcoll.so.
#define IBCOLL_MODULE_API __attribute__((visibility("default")))

namespace ibcoll {

// The text that make() returns, or at most 15 bytes of `instead`, which need no memory.
template <typename Make>
std::string text_or(const char* instead, Make make) noexcept {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    return instead;
  }
}

// Success costs one null pointer and no allocation.
class [[nodiscard]] Status {
 public:
  Status() noexcept = default;
  Status(ibcoll_status_t code, std::string text) noexcept {
    if (code == IBCOLL_OK) return;
    try {
      error_ = std::make_shared<const Error>(Error{code, std::move(text)});
    } catch (const std::bad_alloc&) {
      *this = without_text(code);
    }
  }
  // Takes no memory.
  static Status without_text(ibcoll_status_t code) noexcept {
    // Never destroyed, and in no memory that could be refused.
    alignas(Bare) static std::byte place[sizeof(Bare)];
    static const Bare& bare = *new (place) Bare;
    const auto at = static_cast<size_t>(-static_cast<int>(code));
    const bool known = at > 0 && at < bare.errors.size();
    Status status;
    status.error_ = {std::shared_ptr<void>(), &bare.errors[known ? at : size_t{-IBCOLL_ERR_INTERNAL}]};
    return status;
  }

  bool ok() const noexcept { return error_ == nullptr; }
  ibcoll_status_t code() const noexcept { return error_ ? error_->code : IBCOLL_OK; }
  const std::string& text() const noexcept {
    static const std::string& none = *new std::string;
    return error_ ? error_->text : none;
  }

 private:
  struct Error {
    ibcoll_status_t code;
    std::string text;
  };
  // By -code. Never destroyed: what runs last in a process may still fail.
  struct Bare {
    Bare() noexcept : errors{} {
      for (size_t i = 0; i < errors.size(); ++i)
        new (&errors[i]) Error{static_cast<ibcoll_status_t>(-static_cast<int>(i)), "out of memory"};
    }
    Bare(const Bare&) = delete;
    Bare& operator=(const Bare&) = delete;
    ~Bare() {}
    union {
      std::array<Error, 1 - IBCOLL_ERR_REVOKED> errors;
    };
  };
  std::shared_ptr<const Error> error_;
};

// error(IBCOLL_ERR_SYSTEM, "rank {}: memfd_create: {}", rank, std::strerror(errno))
template <typename... Args>
Status error(ibcoll_status_t code, fmt::format_string<Args...> format, Args&&... args) noexcept {
  try {
    return Status(code, fmt::format(format, std::forward<Args>(args)...));
  } catch (const std::bad_alloc&) {
    return Status::without_text(code);
  }
}

// NO_MEMORY for what body() throws where memory is short; else what it returns, a Status or a Result.
template <typename Body>
auto or_no_memory(Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return error(IBCOLL_ERR_NO_MEMORY, "memory for ibcoll's own data was refused; free memory and call again");
  }
}

// For memory without which this rank could not take part in an exchange: the others would wait for it, so that a second
// try is worth its time. Throws std::bad_alloc.
template <typename Body>
auto try_twice(Body body) -> decltype(body()) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
  }
  return body();
}

// A value, or the reason why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {}

  bool ok() const noexcept { return value_.has_value(); }
  const Status& status() const noexcept { return status_; }
  T& value() noexcept { return *value_; }
  const T& value() const noexcept { return *value_; }
  T& operator*() noexcept { return *value_; }
  T* operator->() noexcept { return &*value_; }
  const T* operator->() const noexcept { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace ibcoll
