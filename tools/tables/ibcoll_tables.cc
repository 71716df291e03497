// SPDX-License-Identifier: BSD-3-Clause
// Prints the tables of the sources as JSON: collectives with their algorithms, settings, transports between nodes, types
// and operations. ibcoll_info --json shows settings, algorithms and the build by the same functions.
#include <cstdio>
#include <nlohmann/json.hpp>

#include "runtime/base/build_info.h"
#include "runtime/base/catalog.h"
#include "runtime/base/config.h"
#include "runtime/base/json.h"
#include "runtime/base/network_modules.h"
#include "tools/ibcoll_info/selection.h"
#include "tools/oracle/elements.h"

namespace ibcoll {
namespace {

using nlohmann::json;

json tables() {
  json document = {{"build", json::parse(build_json().dump())}, {"settings", json::parse(settings_json({}).dump())}};
  for (const Collective& row : kCatalog)
    document["collectives"].push_back(
        {{"name", row.name}, {"irregular", row.irregular()}, {"algorithms", info::algorithms_json(row.id)}});
  for (const NetworkModule& module : kNetworkModules)
    document["networks"].push_back({{"name", module.name}, {"packages", module.packages}});
  for (int i = 0; i <= IBCOLL_OPAQUE; ++i) {
    const auto type = static_cast<ibcoll_type_t>(i);
    document["types"].push_back({{"name", oracle::type_name(type)}, {"bytes", oracle::element_bytes(type)}});
  }
  for (int i = 0; i < oracle::kOperations; ++i)
    document["operations"].push_back({{"name", oracle::operation_name(oracle::operation(i))}});
  return document;
}

}  // namespace
}  // namespace ibcoll

int main() { return std::puts(ibcoll::tables().dump(2).c_str()) < 0 || std::fflush(stdout) != 0; }
