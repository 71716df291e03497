// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/core_binding.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>

#include "runtime/base/own_cpus.h"

namespace ibcoll::run {
namespace {

using Cores = CoreBinding::Cores;

// Processors that the scheduler gives this process; an upper bound of its cores.
int processor_count() {
  const std::vector<int> cpus = own_cpus();
  return static_cast<int>(cpus.empty() ? ::sysconf(_SC_NPROCESSORS_ONLN) : static_cast<long>(cpus.size()));
}

std::vector<hwloc_obj*> objects(hwloc_topology* topology, hwloc_obj_type_t type) {
  std::vector<hwloc_obj*> found;
  for (hwloc_obj* object = nullptr; (object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr;)
    if (object->cpuset != nullptr && hwloc_bitmap_iszero(object->cpuset) == 0) found.push_back(object);
  return found;
}

std::vector<hwloc_obj*> cores_of(hwloc_topology* topology) {
  std::vector<hwloc_obj*> cores = objects(topology, HWLOC_OBJ_CORE);
  return cores.empty() ? objects(topology, HWLOC_OBJ_PU) : cores;
}

std::string list_of(const hwloc_bitmap_s* processors) {
  std::array<char, 256> list{};
  hwloc_bitmap_list_snprintf(list.data(), list.size(), processors);
  return list.data();
}

// Emulated nodes with more ranks than there are cores; empty: the cores cannot be shared out evenly.
std::vector<Cores> by_node(const std::vector<std::string>& nodes, int cores) {
  std::map<std::string_view, int> numbers;  // in the order in which the nodes come
  for (const std::string& node : nodes) numbers.try_emplace(node, static_cast<int>(numbers.size()));
  const auto count = static_cast<int>(numbers.size());
  if (count < 2 || (count % cores != 0 && cores % count != 0)) return {};
  const int each = std::max(1, cores / count);
  std::vector<Cores> shares;
  shares.reserve(nodes.size());
  for (const std::string& node : nodes) shares.push_back({numbers[node] * each % cores, each});
  return shares;
}

// By these hwloc reads another topology than the machine's.
constexpr std::array kTopologyVariables = {"HWLOC_XMLFILE", "HWLOC_SYNTHETIC", "HWLOC_FSROOT", "HWLOC_CPUID_PATH",
                                           "HWLOC_COMPONENTS"};

// While it exists these are not set. They belong to the ranks.
class WithoutTopologyVariables {
 public:
  WithoutTopologyVariables() {
    for (size_t i = 0; i < kTopologyVariables.size(); ++i)
      if (const char* const value = std::getenv(kTopologyVariables[i])) {
        values_[i] = value;
        ::unsetenv(kTopologyVariables[i]);
      }
  }
  ~WithoutTopologyVariables() {
    for (size_t i = 0; i < kTopologyVariables.size(); ++i)
      if (values_[i]) ::setenv(kTopologyVariables[i], values_[i]->c_str(), 1);
  }
  WithoutTopologyVariables(const WithoutTopologyVariables&) = delete;
  WithoutTopologyVariables& operator=(const WithoutTopologyVariables&) = delete;

 private:
  std::array<std::optional<std::string>, kTopologyVariables.size()> values_;
};

// "-gl,-opencl", as sites set it: nothing of what is read here.
bool only_removes(std::string_view components) {
  return !components.empty() && components[0] == '-' && components.find(",") == components.find(",-");
}

}  // namespace

std::string CoreBinding::ignored_variables() {
  std::string names;
  for (const char* const name : kTopologyVariables) {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    if (name == std::string_view("HWLOC_COMPONENTS") && only_removes(value)) continue;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return names;
}

CoreBinding::Topology CoreBinding::load() {
  hwloc_topology* raw = nullptr;
  if (own_cpus().empty()) return nullptr;
  const WithoutTopologyVariables own_machine;
  if (hwloc_topology_init(&raw) != 0) return nullptr;
  Topology topology(raw);
  hwloc_topology_set_all_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_NONE);
  hwloc_topology_set_type_filter(raw, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING | HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM |
                                    HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING | HWLOC_TOPOLOGY_FLAG_NO_DISTANCES |
                                    HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS | HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS);
  return hwloc_topology_load(raw) == 0 ? std::move(topology) : nullptr;
}

Result<std::vector<Cores>> CoreBinding::share_out(const Binding& wanted, int ranks,
                                                  const std::vector<std::string>& nodes, int cores) {
  const int64_t needed = int64_t{ranks} * wanted.cores_per_rank;
  std::vector<Cores> shares;
  if (needed > cores) {
    if (wanted.cores_per_rank == 1) shares = by_node(nodes, cores);
    if (!shares.empty() || wanted.to == Binding::To::kAuto) return shares;
    return error(IBCOLL_ERR_INVALID_ARGUMENT,
                 "--bind-to core: {} ranks with {} cores each need {} cores, and there are {} that they may use; "
                 "--bind-to none binds none",
                 ranks, wanted.cores_per_rank, needed, cores);
  }
  if (wanted.to == Binding::To::kAuto && needed < cores) return shares;
  for (int i = 0; i < ranks; ++i) shares.push_back({i * wanted.cores_per_rank, wanted.cores_per_rank});
  return shares;
}

Result<CoreBinding> CoreBinding::for_ranks(const Binding& wanted, int ranks, const std::vector<std::string>& nodes) {
  CoreBinding binding;
  const bool surely_free = wanted.to == Binding::To::kNone ||
                           (wanted.to == Binding::To::kAuto && nodes.empty() && ranks > processor_count());
  if (surely_free && !wanted.report) return binding;
  binding.topology_ = load();
  if (!binding.topology_) {
    if (wanted.to == Binding::To::kAuto || wanted.to == Binding::To::kNone) return binding;
    return error(IBCOLL_ERR_SYSTEM, "--bind-to: hwloc cannot read the machine's topology{}; --bind-to none binds none",
                 own_cpus().empty() ? " (sched_getaffinity is refused; by a seccomp filter?)" : "");
  }
  if (surely_free) return binding;
  binding.numa_ = wanted.to == Binding::To::kNuma;
  binding.units_ =
      binding.numa_ ? objects(binding.topology_.get(), HWLOC_OBJ_NUMANODE) : cores_of(binding.topology_.get());
  const auto units = static_cast<int>(binding.units_.size());
  if (binding.numa_) {
    for (int i = 0; i < ranks && units > 0; ++i)
      binding.units_of_rank_.push_back({static_cast<int>(int64_t{i} * units / ranks), 1});
  } else {
    Result<std::vector<Cores>> shares = share_out(wanted, ranks, nodes, std::max(1, units));
    if (!shares.ok()) return shares.status();
    if (units > 0) binding.units_of_rank_ = std::move(shares.value());
  }
  if (Status bound = binding.try_to_bind(); !bound.ok()) {
    if (wanted.to != Binding::To::kAuto) return bound;
    binding.units_of_rank_.clear();
  }
  return binding;
}

// As a rank cannot say that it is not bound: bind() runs in its process, where the program follows at once.
Status CoreBinding::try_to_bind() const {
  const Set before(hwloc_bitmap_alloc()), now(hwloc_bitmap_alloc());
  hwloc_topology* const machine = topology_.get();
  if (units_of_rank_.empty() || !before || !now || hwloc_get_cpubind(machine, before.get(), HWLOC_CPUBIND_THREAD) != 0)
    return {};
  Status status;
  for (int i = 0; status.ok() && i < static_cast<int>(units_of_rank_.size()); ++i) {
    const Set wanted = processors_of(i);
    errno = 0;
    if (!wanted || (hwloc_set_cpubind(machine, wanted.get(), HWLOC_CPUBIND_THREAD) == 0 &&
                    hwloc_get_cpubind(machine, now.get(), HWLOC_CPUBIND_THREAD) == 0 &&
                    hwloc_bitmap_isequal(wanted.get(), now.get()) != 0))
      continue;
    status =
        error(IBCOLL_ERR_SYSTEM, "--bind-to: rank {} cannot be bound to processors {}: {}; --bind-to none binds none",
              i, list_of(wanted.get()), errno != 0 ? std::strerror(errno) : "the kernel binds it to others");
  }
  hwloc_set_cpubind(machine, before.get(), HWLOC_CPUBIND_THREAD);
  return status;
}

int CoreBinding::core_count() {
  const Topology topology = load();
  return std::max(1, topology ? static_cast<int>(cores_of(topology.get()).size()) : processor_count());
}

CoreBinding::Set CoreBinding::processors_of(int index) const {
  Set set(hwloc_bitmap_alloc());
  const Cores mine = units_of_rank_[static_cast<size_t>(index)];
  for (int unit = mine.first; set && unit < mine.first + mine.count; ++unit)
    hwloc_bitmap_or(set.get(), set.get(), units_[static_cast<size_t>(unit)]->cpuset);
  return set;
}

void CoreBinding::bind(int index) const noexcept {
  if (units_of_rank_.empty()) return;
  if (const Set set = processors_of(index)) hwloc_set_cpubind(topology_.get(), set.get(), HWLOC_CPUBIND_PROCESS);
}

std::string CoreBinding::describe(int index) const {
  if (!topology_) return "not bound";
  if (units_of_rank_.empty())
    return fmt::format("not bound (processors {})", list_of(hwloc_get_root_obj(topology_.get())->cpuset));
  const Cores mine = units_of_rank_[static_cast<size_t>(index)];
  const std::string which = mine.count == 1 ? fmt::format(" {}", mine.first)
                                            : fmt::format("s {}-{}", mine.first, mine.first + mine.count - 1);
  return fmt::format("bound to {}{} (processors {})", numa_ ? "NUMA node" : "core", which,
                     list_of(processors_of(index).get()));
}

}  // namespace ibcoll::run
