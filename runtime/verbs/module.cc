// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/verbs/module.h"

#include "runtime/verbs/transport.h"

extern "C" ibcoll::NetworkTransport* ibcoll_verbs_open(const ibcoll::NetworkParams& params, ibcoll::Status* status) {
  ibcoll::Result<std::unique_ptr<ibcoll::verbs::Transport>> opened = ibcoll::verbs::Transport::open(params);
  if (opened.ok()) return opened.value().release();
  *status = opened.status();
  return nullptr;
}

extern "C" void ibcoll_verbs_devices(const ibcoll::Config& config, ibcoll::Json* devices) {
  using namespace ibcoll::verbs;
  *devices = ibcoll::Json();
  const std::vector<Port> ports = list_ports();
  for (const Port& port : ports) {
    ibcoll::Json gids = ibcoll::Json::list();
    for (const GidEntry& gid : port.gids) gids.push_back(gid_entry_text(gid));
    const ibcoll::Json about = {{"state", port.state},
                                {"link", port.ethernet ? "Ethernet" : "InfiniBand"},
                                {"lid", port.lid},
                                {"gids", gids},
                                {"mtu", 128 << port.mtu},
                                {"gigabits", port.gigabits},
                                {"memory_windows", !port.windows       ? "none"
                                                   : port.good_windows ? "type 2B"
                                                                       : "type 2B, with faults"},
                                {"most_queue_pairs", port.most_queue_pairs},
                                {"most_completions", port.most_completions},
                                {"most_regions", port.most_regions}};
    devices->set(fmt::format("{}:{}", port.device, port.number), about);
  }
  const ibcoll::Result<PortChoice> choice = choose_port(config, ports);
  devices->set("reason", choice.ok() ? "usable" : choice.status().text());
  if (choice.ok()) devices->set("choice", choice.value().reasons);
}
