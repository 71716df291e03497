// SPDX-License-Identifier: BSD-3-Clause
#include <filesystem>
#include <fstream>
#include <system_error>

#include "runtime/ucx/devices.h"

namespace ibcoll::ucx {

std::vector<std::string> list_rdma_ports() {
  namespace fs = std::filesystem;
  std::vector<std::string> ports;
  std::error_code ignored;  // no such folder: no RDMA devices
  for (const fs::directory_entry& device : fs::directory_iterator("/sys/class/infiniband", ignored)) {
    for (const fs::directory_entry& port : fs::directory_iterator(device.path() / "ports", ignored)) {
      std::string state;
      std::getline(std::ifstream(port.path() / "state"), state);
      if (state.find("ACTIVE") == std::string::npos) continue;
      ports.push_back(device.path().filename().string() + ":" + port.path().filename().string());
    }
  }
  return ports;
}

}  // namespace ibcoll::ucx
