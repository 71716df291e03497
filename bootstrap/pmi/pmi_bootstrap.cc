// SPDX-License-Identifier: BSD-3-Clause
#include "bootstrap/pmi/pmi_bootstrap.h"

#include <sodium.h>

#include <algorithm>
#include <cstdio>
#include <mutex>

#include "bootstrap/pmi/running_mpi.h"

namespace ibcoll {
namespace {

// Letters, digits, - and _: no blank and no =, which end a word of the protocol.
constexpr int kLetters = sodium_base64_VARIANT_URLSAFE_NO_PADDING;

PmiConnection::Clock::time_point in_seconds(double seconds) {
  constexpr double kForever = 1e9;  // 31 years; keeps the sum inside the clock's range
  return PmiConnection::Clock::now() + std::chrono::duration_cast<PmiConnection::Clock::duration>(
                                           std::chrono::duration<double>(std::clamp(seconds, 0.0, kForever)));
}

std::string text_from(std::span<const std::byte> bytes) {
  std::string text(sodium_base64_encoded_len(bytes.size(), kLetters), '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                    kLetters);
  text.pop_back();  // the 0 at its end
  return text;
}

bool bytes_from(const std::string& text, std::span<std::byte> bytes) {
  size_t length = 0;
  return sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), text.data(), text.size(),
                           nullptr, &length, nullptr, kLetters) == 0 &&
         length == bytes.size();
}

// One exchange: each rank's bytes, cut into segments that fit into values.
class PmiAllgather {
 public:
  using Clock = PmiConnection::Clock;
  PmiAllgather(PmiConnection& connection, size_t bytes, Clock::time_point deadline)
      : connection_(connection),
        number_(connection.next_exchange()),
        bytes_(bytes),
        segment_(connection.value_room() / 4 * 3),  // four letters hold three bytes
        deadline_(deadline) {}

  Status publish(std::span<const std::byte> mine) const {
    for (size_t at = 0; at < bytes_; at += segment_) {
      const auto segment = mine.subspan(at, std::min(segment_, bytes_ - at));
      if (Status status = connection_.put(key(connection_.rank(), at), text_from(segment), deadline_); !status.ok())
        return status;
    }
    return {};
  }

  Status collect(int peer, std::span<std::byte> theirs) const {
    for (size_t at = 0; at < bytes_; at += segment_) {
      const Result<std::string> text = connection_.get(key(peer, at), deadline_);
      if (!text.ok()) return text.status();
      if (!bytes_from(text.value(), theirs.subspan(at, std::min(segment_, bytes_ - at)))) {
        return error(IBCOLL_ERR_BOOTSTRAP,
                     "rank {}: what the launcher's PMI server has as {} is not what rank {} put there: '{}'",
                     connection_.rank(), key(peer, at), peer, text.value());
      }
    }
    return {};
  }

 private:
  std::string key(int rank, size_t at) const { return fmt::format("ibcoll.{}.{}.{}", number_, rank, at / segment_); }

  PmiConnection& connection_;
  const size_t number_;
  const size_t bytes_;
  const size_t segment_;
  const Clock::time_point deadline_;
};

std::mutex kept_lock;
std::shared_ptr<PmiConnection>& kept_connection() {
  static auto& kept = *new std::shared_ptr<PmiConnection>();
  return kept;
}

// After the destructors of all libraries that use this one, and may still end a context there.
[[gnu::destructor]] void say_goodbye() { kept_connection().reset(); }

// The connection of the process, kept until the process ends: the launcher takes the end of the connection for the end
// of the rank. A context that is destroyed later than this keeps it.
Result<std::shared_ptr<PmiConnection>> connection_of_process(PmiConnection::Clock::time_point deadline) {
  const std::lock_guard lock(kept_lock);
  std::shared_ptr<PmiConnection>& kept = kept_connection();
  if (!kept) {
    if (mpi_is_running()) {
      return error(IBCOLL_ERR_BOOTSTRAP,
                   "MPI runs in this process and uses the connection to the launcher (PMI_FD); fill "
                   "ibcoll_context_params_t.bootstrap by ibcoll_mpi_bootstrap() of ibcoll_mpi_bootstrap.h");
    }
    Result<std::unique_ptr<PmiConnection>> opened = PmiConnection::open(deadline);
    if (!opened.ok()) return opened.status();
    kept = std::move(opened.value());
  }
  if (!kept->of_this_process()) {
    return error(IBCOLL_ERR_BOOTSTRAP,
                 "rank {}: this process was forked from the rank, whose connection to the launcher (PMI_FD) it has; "
                 "set IBCOLL_SINGLETON=yes where it is to run alone",
                 kept->rank());
  }
  return kept;
}

}  // namespace

Result<std::unique_ptr<PmiBootstrap>> PmiBootstrap::create(double seconds) {
  const PmiConnection::Clock::time_point deadline = in_seconds(seconds);
  const Result<std::shared_ptr<PmiConnection>> connection = connection_of_process(deadline);
  if (!connection.ok()) return connection.status();
  const std::lock_guard one_at_a_time(connection.value()->exchanging());
  // Not every launcher gives it; without it the job counts as one that spans machines.
  const Result<std::string> mapping = connection.value()->get("PMI_process_mapping", deadline);
  if (mapping.status().code() == IBCOLL_ERR_TIMEOUT) return mapping.status();
  const bool local_job = mapping.ok() && on_one_node(mapping.value());
  return std::unique_ptr<PmiBootstrap>(new PmiBootstrap(connection.value(), local_job, seconds));
}

Status PmiBootstrap::allgather(std::span<const std::byte> mine, std::span<std::byte> all) {
  if (all.size() != mine.size() * static_cast<size_t>(size())) {
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "rank {}: pmi exchange: room for {} bytes, {} ranks of {} bytes", rank(),
                 all.size(), size(), mine.size());
  }
  const std::lock_guard one_at_a_time(connection_->exchanging());
  const PmiConnection::Clock::time_point deadline = in_seconds(seconds_);
  const PmiAllgather exchange(*connection_, mine.size(), deadline);
  if (Status status = exchange.publish(mine); !status.ok()) return status;
  if (Status status = connection_->barrier(deadline); !status.ok()) {
    if (status.code() != IBCOLL_ERR_TIMEOUT) return status;
    return error(IBCOLL_ERR_TIMEOUT,
                 "rank {}: PMI barrier: not all {} ranks came within {} s (IBCOLL_TIMEOUT); does every rank create its "
                 "context?",
                 rank(), size(), seconds_);
  }
  for (int peer = 0; peer < size(); ++peer) {
    const auto theirs = all.subspan(static_cast<size_t>(peer) * mine.size(), mine.size());
    if (Status status = exchange.collect(peer, theirs); !status.ok()) return status;
  }
  return {};
}

bool on_one_node(const std::string& mapping) {
  if (!mapping.starts_with("(vector,")) return false;
  int only = -1;
  for (size_t at = mapping.find('(', 1); at != std::string::npos; at = mapping.find('(', at + 1)) {
    int first = 0, nodes = 0, ranks = 0;
    if (std::sscanf(mapping.c_str() + at, "(%d,%d,%d)", &first, &nodes, &ranks) != 3) return false;
    if (nodes != 1 || (only >= 0 && first != only)) return false;
    only = first;
  }
  return only >= 0;
}

}  // namespace ibcoll
