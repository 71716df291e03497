// SPDX-License-Identifier: BSD-3-Clause
// The state of a context as ibcoll_info shows it.
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "runtime/build_info.h"
#include "runtime/context.h"

namespace ibcoll {

using nlohmann::json;

std::string Context::info_json() {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  json transports = json::array();
  if (job_.shm)
    transports.push_back(job_.shm->describe());
  else
    transports.push_back({{"name", "shm"}, {"reason", "not used: this rank is alone on its node"}});
  json net = job_.net ? job_.net->describe() : json{{"name", "ucx"}};
  net["reason"] = job_.net_reason.empty() ? "not used" : job_.net_reason;
  transports.push_back(std::move(net));
  transports.push_back({{"name", "verbs"}, {"reason", "not in this build"}});
  const json state = {{"build", build_json()},
                      {"settings", settings_json(config_)},
                      {"bootstrap", {{"name", bootstrap_->name()}, {"rank", rank()}, {"size", size()}}},
                      {"topology",
                       {{"host", host},
                        {"node", job_.nodes[static_cast<size_t>(rank())]},
                        {"nodes", job_.node_count},
                        {"ranks_per_core", job_.ranks_per_core},
                        {"waiting", waiting_->name()}}},
                      {"transports", std::move(transports)}};
  return state.dump(-1, ' ', false, json::error_handler_t::replace);  // settings and names need not be UTF-8
}

}  // namespace ibcoll
