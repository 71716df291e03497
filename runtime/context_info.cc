// SPDX-License-Identifier: BSD-3-Clause
// The state of a context as ibcoll_info shows it.
#include <unistd.h>

#include "runtime/build_info.h"
#include "runtime/context.h"
#include "runtime/json.h"
#include "runtime/module.h"
#include "runtime/verbs/verbs_module.h"

namespace ibcoll {
namespace {

// What verbs finds on this machine, also in a job that does not use it.
Json rdma_devices(const Config& config) {
  const Result<void*> list = module_function("libibcoll_verbs.so", "ibcoll_verbs_devices");
  if (!list.ok()) return {{"reason", list.status().text()}};
  Json devices;
  reinterpret_cast<ibcoll_verbs_devices_t>(list.value())(config, &devices);
  return devices;
}

}  // namespace

std::string Context::info_json() {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  Json transports = Json::list();
  if (job_.shm)
    transports.push_back(job_.shm->describe());
  else
    transports.push_back({{"name", "shm"}, {"reason", "not used: this rank is alone on its node"}});
  // Both network transports are shown: the one that is used with its state, the other with the reason why not.
  const std::string used = job_.net ? job_.net->name() : "";
  for (const char* name : {"ucx", "verbs"}) {
    Json transport = used == name                   ? job_.net->describe()
                     : std::string(name) == "verbs" ? rdma_devices(config_)
                                                    : Json();
    transport.set("name", name);
    if (used.empty() || used == name || !transport.contains("reason")) transport.set("reason", job_.net_reason);
    if (!used.empty() && used != name && std::string(name) == "ucx") transport.set("reason", "not used: verbs is");
    transports.push_back(transport);
  }
  const Json state = {{"build", build_json()},
                      {"settings", settings_json(config_)},
                      {"bootstrap", {{"name", bootstrap_->name()}, {"rank", rank()}, {"size", size()}}},
                      {"topology",
                       {{"host", host},
                        {"node", job_.nodes[static_cast<size_t>(rank())]},
                        {"nodes", job_.node_count},
                        {"ranks_per_core", job_.ranks_per_core},
                        {"waiting", waiting_->name()}}},
                      {"transports", transports}};
  return state.dump();
}

}  // namespace ibcoll
