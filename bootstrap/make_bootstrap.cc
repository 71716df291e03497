// SPDX-License-Identifier: BSD-3-Clause
#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string_view>

#include "bootstrap/bootstrap.h"
#include "bootstrap/lone_rank.h"
#include "bootstrap/pmi/pmi_bootstrap.h"
#include "bootstrap/tcp.h"
#include "runtime/base/config.h"
#include "runtime/machine/module.h"

namespace ibcoll {
namespace {

// The bootstrap that the host program brings.
class CallbackBootstrap : public Bootstrap {
 public:
  explicit CallbackBootstrap(const ibcoll_bootstrap_t& callbacks) : callbacks_(callbacks) {}

  std::string name() const override { return "callbacks"; }
  int rank() const override { return callbacks_.rank; }
  int size() const override { return callbacks_.size; }
  Status allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    if (Status status = gather_by_host({callbacks_.allgather, callbacks_.user}, mine, all); !status.ok())
      return error(status.code(), "rank {}: {}", rank(), status.text());
    const auto own = all.subspan(static_cast<size_t>(rank()) * mine.size(), mine.size());
    if (std::equal(mine.begin(), mine.end(), own.begin())) return {};
    return error(
        IBCOLL_ERR_BOOTSTRAP,
        "rank {}: the host program's allgather of {} bytes does not return this rank's own bytes in their place",
        rank(), mine.size());
  }

 private:
  ibcoll_bootstrap_t callbacks_;
};

// One rank, started by hand.
class SingleBootstrap : public Bootstrap {
 public:
  std::string name() const override { return "single"; }
  int rank() const override { return 0; }
  int size() const override { return 1; }
  bool local_job() const override { return true; }
  Status allgather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    if (all.size() != mine.size()) {
      return error(IBCOLL_ERR_INVALID_ARGUMENT, "exchange of {} bytes into {}: one rank", mine.size(), all.size());
    }
    std::memcpy(all.data(), mine.data(), mine.size());
    return {};
  }
};

Result<std::unique_ptr<Bootstrap>> from_callbacks(const ibcoll_bootstrap_t& given) {
  if (given.struct_size < sizeof(ibcoll_bootstrap_t)) {
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_bootstrap_t.struct_size is {}: set it to sizeof, {} bytes",
                 given.struct_size, sizeof(ibcoll_bootstrap_t));
  }
  if (given.size < 1 || given.rank < 0 || given.rank >= given.size) {
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_bootstrap_t: rank {} of {} ranks", given.rank, given.size);
  }
  if (!(given.timeout_seconds >= 0)) {
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_bootstrap_t.timeout_seconds is {}: 0 is for no deadline",
                 given.timeout_seconds);
  }
  if (given.allgather == nullptr) return error(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_bootstrap_t.allgather is NULL");
  return std::unique_ptr<Bootstrap>(std::make_unique<CallbackBootstrap>(given));
}

Result<std::unique_ptr<Bootstrap>> alone() { return std::unique_ptr<Bootstrap>(std::make_unique<SingleBootstrap>()); }

template <typename T>
Result<std::unique_ptr<Bootstrap>> as_bootstrap(Result<std::unique_ptr<T>> made) {
  if (!made.ok()) return made.status();
  return std::unique_ptr<Bootstrap>(std::move(made.value()));
}

std::atomic<void (*)()> pmix_end{nullptr};

// After the destructors of all libraries that use this one, and may still end a context there. A destructor of the
// module would run before: the dynamic linker knows of no dependency on what was loaded last.
[[gnu::destructor]] void end_pmix() {
  if (void (*const end)() = pmix_end) end();
}

Result<std::unique_ptr<Bootstrap>> from_pmix(double seconds) {
  const Result<void*> factory = module_function("libibcoll_pmix.so", "ibcoll_pmix_bootstrap");
  if (!factory.ok()) {
    return error(
        IBCOLL_ERR_BOOTSTRAP,
        "a PMIx launcher started this process (PMIX_RANK={}), but: {}; install libpmix and build ibcoll with it, "
        "start the program by ibcoll_run, or unset PMIX_RANK",
        std::getenv("PMIX_RANK"), factory.status().text());
  }
  if (Result<void*> end = module_function("libibcoll_pmix.so", "ibcoll_pmix_end"); end.ok())
    pmix_end = reinterpret_cast<void (*)()>(*end);
  const auto create = reinterpret_cast<Bootstrap* (*)(double, Status*)>(factory.value());
  Status status;
  std::unique_ptr<Bootstrap> bootstrap(create(seconds, &status));
  if (!bootstrap) return status;
  return bootstrap;
}

// PMI comes before PMIx: its socket shows that the launcher next to this process is one of PMI, while variables of PMIx
// are inherited from a launcher further out, such as that of a batch system's shell.
Result<std::unique_ptr<Bootstrap>> from_launcher() {
  const Result<Config> config = Config::load();
  if (!config.ok()) return config.status();
  const double seconds = config.value().seconds("IBCOLL_TIMEOUT");
  if (config.value().boolean("IBCOLL_SINGLETON")) return alone();
  if (TcpBootstrap::available()) return as_bootstrap(TcpBootstrap::join(seconds));
  // One rank needs no server. A shell under a launcher may start several programs in a row, and the server answers only
  // the first.
  if (PmiConnection::offered())
    return PmiConnection::offered_size() == 1 ? alone() : as_bootstrap(PmiBootstrap::create(seconds));
  if (std::getenv("PMIX_RANK") != nullptr && std::getenv("PMIX_NAMESPACE") != nullptr) return from_pmix(seconds);
  if (Status status = check_that_rank_is_alone(); !status.ok()) return status;
  return alone();
}

}  // namespace

Status gather_by_host(const HostGroup& group, std::span<const std::byte> mine, std::span<std::byte> all) {
  const auto failed = [&](std::string_view how) {
    return error(IBCOLL_ERR_BOOTSTRAP, "the host program's allgather of {} bytes {}", mine.size(), how);
  };
  try {
    const int reason = group.allgather(group.user, mine.data(), all.data(), mine.size());
    if (reason != 0) return failed(fmt::format("returned {}", reason));
  } catch (const std::exception& e) {
    return failed(fmt::format("threw an exception: {}", e.what()));
  } catch (const abi::__forced_unwind&) {  // the thread is cancelled, or ends itself
    throw;
  } catch (...) {
    return failed("threw an exception of a type that is not known here");
  }
  return {};
}

Result<std::unique_ptr<Bootstrap>> make_bootstrap(const ibcoll_bootstrap_t* callbacks) {
  if (callbacks != nullptr) return from_callbacks(*callbacks);
  return from_launcher();
}

}  // namespace ibcoll
