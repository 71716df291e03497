// SPDX-License-Identifier: BSD-3-Clause
// Errors as values. A Status is a class of error (ibcoll.h) and the text that tells who, where, why and what to try.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "runtime/include/ibcoll.h"

// Marks what the transport and bootstrap modules (libibcoll_ucx.so, ...) use of libibcoll.so.
#define IBCOLL_MODULE_API __attribute__((visibility("default")))

namespace ibcoll {

// Success costs one null pointer and no allocation.
class [[nodiscard]] Status {
 public:
  Status() noexcept = default;
  Status(ibcoll_status_t code, std::string text)
      : error_(code == IBCOLL_OK ? nullptr : std::make_shared<const Error>(Error{code, std::move(text)})) {}

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
  std::shared_ptr<const Error> error_;
};

// error(IBCOLL_ERR_SYSTEM, "rank {}: memfd_create: {}", rank, std::strerror(errno))
template <typename... Args>
Status error(ibcoll_status_t code, fmt::format_string<Args...> format, Args&&... args) {
  return Status(code, fmt::format(format, std::forward<Args>(args)...));
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
