// SPDX-License-Identifier: BSD-3-Clause
// The state of a context as ibcoll_info shows it.
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>

#include "runtime/base/build_info.h"
#include "runtime/base/json.h"
#include "runtime/comm/reduce/kernels.h"
#include "runtime/context/context.h"
#include "runtime/context/network_library.h"

namespace ibcoll {
namespace {

std::string timed_at_start(const MemoryModel& model) {
  if (model.copy_us_per_byte == 0) return "no, the machine was busy; defaults are used";
  std::string text = fmt::format("{:.3f} ns per byte copied through shared memory", 1e3 * model.copy_us_per_byte);
  if (model.streamed_copy_us_per_byte > 0)
    text += fmt::format(", {:.3f} in long streams", 1e3 * model.streamed_copy_us_per_byte);
  if (model.read_us_per_byte > 0)
    text +=
        fmt::format(", single-copy reads {:.1f} us + {:.3f} ns per byte", model.read_us, 1e3 * model.read_us_per_byte);
  return text;
}

}  // namespace

std::string Context::info_json() {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  Json transports = Json::list();
  if (job_.shm) {
    Json shm = job_.shm->describe();
    shm.set("timed_at_start", timed_at_start(job_.memory_model));
    transports.push_back(shm);
  } else {
    transports.push_back({{"name", "shm"}, {"reason", "not used: this rank is alone on its node"}});
  }
  // All network transports are shown: the one that is used with its state, the others with the reason why not.
  const std::string used = job_.net ? job_.net->name() : "";
  bool used_is_better = false;
  for (const NetworkModule& module : kNetworkModules) {
    const Json not_looked_at = {{"reason", "not looked at: inside of a host no library is loaded for this"}};
    Json transport = used == module.name ? job_.net->describe()
                     : in_host()         ? not_looked_at
                                         : network_devices(module, config_);
    transport.set("name", module.name);
    if (used == module.name) {
      used_is_better = true;
      transport.set("reason", job_.net_reason);
      transport.set(
          "link_mbits",
          static_cast<int64_t>(std::llround(8 / job_.net_model.beta_us_per_byte)));  // by which algorithms are chosen
    } else if (used.empty() || used_is_better) {
      transport.set("job", used.empty() ? job_.net_reason : fmt::format("not used: {} is", used));
    }
    transports.push_back(transport);
  }
  const Doorbell* const doorbell = waiting_.doorbell();
  const Json state = {
      {"build", build_json()},
      {"settings", settings_json(config_)},
      {"bootstrap",
       {{"name", bootstrap_->name()},
        {"rank", rank()},
        {"size", size()},
        {"host_mode", in_host()},
        {"timeout_seconds", static_cast<double>(progress_.engine().limits().timeout_ns) / 1e9}}},  // 0: none
      {"topology",
       {{"host", host},
        {"node", job_.nodes[static_cast<size_t>(rank())]},
        {"nodes", job_.node_count},
        {"ranks_per_core", job_.ranks_per_core},
        {"reduction_kernels", chosen_kernels().instructions},
        {"reduction_ns_per_byte", 1e3 * job_.combine_us_per_byte},
        {"waiting", waiting_.strategy().name()},
        {"sleeps_until_woken", doorbell ? doorbell->sleeps() : 0},
        {"times_woken", doorbell ? doorbell->times_woken() : 0},
        {"times_others_woken", doorbell ? doorbell->times_others_woken() : 0},
        {"questions_that_helped", progress_.engine().scheduler().questions_that_helped()}}},
      {"transports", transports},
      {"tuning", tuning_.json(config_)}};
  return state.dump();
}

}  // namespace ibcoll
