// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/verbs/devices.h"

#include <arpa/inet.h>
#include <hwloc.h>
#include <hwloc/openfabrics-verbs.h>

#include <algorithm>
#include <cstring>

#include "runtime/base/own_cpus.h"
#include "runtime/verbs/objects.h"

namespace ibcoll::verbs {
namespace {

// The soft-RoCE driver of Linux 6.1 checks writes through a window against the region below it, not the window, and
// binds a window again, which fails, when it goes back over lost packets.
constexpr uint32_t kSoftRoceVendor = 0xffffff;

constexpr uint32_t kLastGidIndex = 255;  // the largest that fits into ah_attr

double speed_of(const ibv_port_attr& attributes) {
  // Codes of the InfiniBand specification, in Gbit/s per lane.
  static constexpr std::pair<int, double> kLanes[] = {{1, 2.5}, {2, 5},   {4, 10},  {8, 10},
                                                      {16, 14}, {32, 25}, {64, 50}, {128, 100}};
  static constexpr std::pair<int, double> kWidths[] = {{1, 1}, {2, 4}, {4, 8}, {8, 12}, {16, 2}};
  double lane = 0, width = 0;
  for (const auto& [code, value] : kLanes)
    if (attributes.active_speed == code) lane = value;
  for (const auto& [code, value] : kWidths)
    if (attributes.active_width == code) width = value;
  return lane * width;
}

// The table has the entries of all ports. Not to be had: why, in the device's own words.
Result<std::vector<GidEntry>> gids_of(ibv_context* device, int port, size_t most_entries) {
  std::vector<ibv_gid_entry> table(most_entries);
  const ssize_t count = ibv_query_gid_table(device, table.data(), table.size(), 0);
  if (count < 0)
    return verbs_error(ibv_get_device_name(device->device), "ibv_query_gid_table", static_cast<int>(-count));
  std::vector<GidEntry> found;
  for (ssize_t i = 0; i < count; ++i) {
    const ibv_gid_entry& entry = table[static_cast<size_t>(i)];
    if (static_cast<int>(entry.port_num) != port || entry.gid_index > kLastGidIndex) continue;
    GidEntry gid;
    gid.index = static_cast<int>(entry.gid_index);
    gid.type = entry.gid_type == IBV_GID_TYPE_ROCE_V2   ? GidEntry::Type::kRoceV2
               : entry.gid_type == IBV_GID_TYPE_ROCE_V1 ? GidEntry::Type::kRoceV1
                                                        : GidEntry::Type::kInfiniBand;
    std::memcpy(gid.gid.data(), entry.gid.raw, gid.gid.size());
    found.push_back(gid);
  }
  return found;
}

// Asked only where several devices compete: loading the topology takes some milliseconds.
class Locality {
 public:
  Locality() {
    if (own_cpus().empty() || hwloc_topology_init(&topology_) != 0) return;
    loaded_ = hwloc_topology_load(topology_) == 0;
  }
  Locality(const Locality&) = delete;
  Locality& operator=(const Locality&) = delete;
  ~Locality() {
    if (topology_) hwloc_topology_destroy(topology_);
  }
  bool is_near(ibv_device* device) const {
    if (!loaded_) return false;
    const hwloc_bitmap_t cores = hwloc_bitmap_alloc(), mine = hwloc_bitmap_alloc();
    const bool known = hwloc_ibv_get_device_cpuset(topology_, device, cores) == 0 &&
                       hwloc_get_cpubind(topology_, mine, HWLOC_CPUBIND_PROCESS) == 0;
    const bool near = known && hwloc_bitmap_intersects(cores, mine);
    hwloc_bitmap_free(cores);
    hwloc_bitmap_free(mine);
    return near;
  }

 private:
  hwloc_topology_t topology_ = nullptr;
  bool loaded_ = false;
};

// One that this process may not use, or that is broken, takes nothing away from the others.
Port closed_port(const char* device, int number, const Status& why) {
  Port port;
  port.device = device;
  port.number = number;
  port.state = "unknown";
  port.unfit = why.text();
  port.closed = true;
  return port;
}

// An error: the device cannot be asked at all.
Status add_ports(ibv_device* handle, const Locality* locality, std::vector<Port>& ports) {
  const char* const name = ibv_get_device_name(handle);
  const Device device(ibv_open_device(handle));
  if (!device) return verbs_error(name, "ibv_open_device", errno);
  ibv_device_attr attributes{};
  if (const int code = ibv_query_device(device.get(), &attributes); code != 0)
    return verbs_error(name, "ibv_query_device", code);
  for (int number = 1; number <= attributes.phys_port_cnt; ++number) {
    ibv_port_attr port_attributes{};
    if (const int code = ibv_query_port(device.get(), static_cast<uint8_t>(number), &port_attributes); code != 0) {
      ports.push_back(closed_port(name, number, verbs_error(name, "ibv_query_port", code)));
      continue;
    }
    Port port;
    port.device = name;
    port.number = number;
    port.state = ibv_port_state_str(port_attributes.state);
    port.active = port_attributes.state == IBV_PORT_ACTIVE;
    port.ethernet = port_attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
    port.needs_gid = (port_attributes.flags & IBV_QPF_GRH_REQUIRED) != 0;
    port.lid = port_attributes.lid;
    port.mtu = port_attributes.active_mtu;
    port.gigabits = speed_of(port_attributes);
    Result<std::vector<GidEntry>> gids = gids_of(
        device.get(), number, size_t{attributes.phys_port_cnt} * static_cast<size_t>(port_attributes.gid_tbl_len));
    port.near = locality == nullptr || locality->is_near(handle);
    port.windows = (attributes.device_cap_flags & IBV_DEVICE_MEM_WINDOW_TYPE_2B) != 0;
    port.unfit = unfitness(handle->transport_type);
    if (gids.ok())
      port.gids = std::move(*gids);
    else if (port.ethernet && port.unfit.empty())
      port.unfit = gids.status().text(), port.closed = true;
    port.good_windows = attributes.vendor_id != kSoftRoceVendor;
    port.software = attributes.vendor_id == kSoftRoceVendor;
    port.most_queue_pairs = attributes.max_qp;
    port.most_completions = attributes.max_cqe;
    port.most_regions = attributes.max_mr;
    ports.push_back(std::move(port));
  }
  return {};
}

}  // namespace

const char* protocol_text(GidEntry::Type type) {
  switch (type) {
    case GidEntry::Type::kRoceV2:
      return "RoCE v2";
    case GidEntry::Type::kRoceV1:
      return "RoCE v1";
    default:
      return "InfiniBand";
  }
}

bool is_ipv4(const Gid& gid) {
  return std::all_of(gid.begin(), gid.begin() + 10, [](uint8_t byte) { return byte == 0; }) && gid[10] == 0xff &&
         gid[11] == 0xff;
}

std::string gid_text(const Gid& gid) {
  char text[INET6_ADDRSTRLEN] = "?";
  ::inet_ntop(AF_INET6, gid.data(), text, sizeof text);
  return text;
}

std::string gid_entry_text(const GidEntry& gid) {
  return fmt::format("{} {} ({})", gid.index, gid_text(gid.gid), protocol_text(gid.type));
}

const char* unfitness(ibv_transport_type transport) {
  switch (transport) {
    case IBV_TRANSPORT_IB:  // RoCE as well
      return "";
    case IBV_TRANSPORT_IWARP:
      return "iWARP has no Write with immediate";
    default:
      return "it has no reliable connections";
  }
}

std::vector<Port> list_ports() {
  int count = 0;
  const std::unique_ptr<ibv_device*, Destroy<[](ibv_device** list) { return ibv_free_device_list(list), 0; }>> list(
      ibv_get_device_list(&count));
  std::vector<Port> ports;
  if (!list || count == 0) return ports;
  std::unique_ptr<Locality> locality;
  if (count > 1) locality = std::make_unique<Locality>();
  for (int i = 0; i < count; ++i) {
    const Status status = add_ports(list.get()[i], locality.get(), ports);
    if (!status.ok()) ports.push_back(closed_port(ibv_get_device_name(list.get()[i]), 1, status));
  }
  return ports;
}

}  // namespace ibcoll::verbs
