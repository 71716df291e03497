// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/verbs/rdmacm.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include <algorithm>
#include <chrono>

#include "runtime/base/log.h"
#include "runtime/machine/descriptors.h"
#include "runtime/machine/private_address.h"

namespace ibcoll::verbs {
namespace {

constexpr int kAddressTimeout = 2000;    // milliseconds
constexpr uint64_t kLookPause = 50'000;  // nanoseconds between looks for events: each is a system call

union SocketAddress {
  sockaddr any;
  sockaddr_in ip4;
  sockaddr_in6 ip6;
};

SocketAddress socket_address(const Gid& ip, uint32_t port) {
  SocketAddress address{};
  if (is_ipv4(ip)) {
    address.ip4.sin_family = AF_INET;
    address.ip4.sin_port = htons(static_cast<uint16_t>(port));
    std::memcpy(&address.ip4.sin_addr, ip.data() + 12, 4);
  } else {
    address.ip6.sin6_family = AF_INET6;
    address.ip6.sin6_port = htons(static_cast<uint16_t>(port));
    std::memcpy(&address.ip6.sin6_addr, ip.data(), ip.size());
  }
  return address;
}

// The addresses of this machine's network interfaces, those of IPoIB among them.
std::vector<Gid> interface_addresses() {
  std::vector<Gid> found;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return found;
  for (const ifaddrs* entry = list; entry; entry = entry->ifa_next) {
    Gid ip{};
    if (entry->ifa_addr && entry->ifa_addr->sa_family == AF_INET) {
      ip[10] = ip[11] = 0xff;
      std::memcpy(ip.data() + 12, &reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr, 4);
    } else if (entry->ifa_addr && entry->ifa_addr->sa_family == AF_INET6) {
      std::memcpy(ip.data(), &reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr)->sin6_addr, ip.size());
    } else {
      continue;
    }
    found.push_back(ip);
  }
  ::freeifaddrs(list);
  return found;
}

bool may_listen_at(const Gid& ip, const Config& config) {
  in6_addr address;
  std::memcpy(&address, ip.data(), sizeof address);
  return !IN6_IS_ADDR_LINKLOCAL(&address) && (ibcoll::is_private(address) || config.boolean("IBCOLL_ALLOW_PUBLIC"));
}

}  // namespace

Result<std::unique_ptr<ConnectionManager>> RdmaCm::open(int rank, int size, uint64_t job, const PortChoice& choice,
                                                        const Config& config) {
  std::unique_ptr<RdmaCm> manager(new RdmaCm(rank, size, job, choice));
  manager->traffic_class_ = static_cast<uint8_t>(config.integer("IBCOLL_VERBS_TRAFFIC_CLASS"));
  if (Status status = manager->listen(config, choice); !status.ok()) return status;
  return std::unique_ptr<ConnectionManager>(std::move(manager));
}

Status RdmaCm::listen(const Config& config, const PortChoice& choice) {
  channel_.reset(rdma_create_event_channel());
  if (!channel_)
    return error(IBCOLL_ERR_SYSTEM, "{}: rdma_create_event_channel: {}; is the kernel module rdma_ucm loaded?", device_,
                 std::strerror(errno));
  const int flags = ::fcntl(channel_->fd, F_GETFL);
  if (flags < 0 || ::fcntl(channel_->fd, F_SETFL, flags | O_NONBLOCK) != 0)
    return verbs_error(device_, "fcntl of the rdma_cm channel", errno);
  const std::vector<Gid> candidates = choice.port.ethernet ? std::vector{choice.gid} : interface_addresses();
  Status last;
  for (const Gid& ip : candidates) {
    if (!may_listen_at(ip, config)) continue;
    last = listen_at(ip);
    if (last.ok()) return last;
  }
  if (!last.ok()) return last;
  return error(IBCOLL_ERR_CONFIG,
               "{}:{}: IBCOLL_VERBS_CONNECT=rdmacm needs a private, not link-local IP address on this port; see "
               "IBCOLL_VERBS_GID, IBCOLL_ALLOW_PUBLIC, and for InfiniBand the interface of IPoIB",
               device_, port_);
}

Status RdmaCm::listen_at(const Gid& ip) {
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(channel_.get(), &id, nullptr, RDMA_PS_TCP) != 0)
    return verbs_error(device_, "rdma_create_id", errno);
  listener_.reset(id);
  SocketAddress address = socket_address(ip, 0);
  if (rdma_bind_addr(id, &address.any) != 0)
    return verbs_error(device_, fmt::format("rdma_bind_addr to {}", gid_text(ip)), errno);
  if (!id->verbs || device_ != ibv_get_device_name(id->verbs->device) || id->port_num != port_)
    return error(IBCOLL_ERR_CONFIG, "{}:{}: rdma_bind_addr: the address {} belongs to another port", device_, port_,
                 gid_text(ip));
  if (rdma_listen(id, size_) != 0) return verbs_error(device_, "rdma_listen", errno);
  ip_ = ip;
  return {};
}

rdma_conn_param RdmaCm::parameters(const Greeting& greeting) {
  rdma_conn_param chosen{};
  chosen.private_data = &greeting;
  chosen.private_data_len = sizeof greeting;
  chosen.retry_count = chosen.rnr_retry_count = 6;  // for the kernel's books: the transport sets up the queue pair
  chosen.qp_num = greeting.queue_pair;
  return chosen;
}

void RdmaCm::fill_in_address(Address& own) const {
  own.gid = ip_;
  own.protocol = {}, own.subnet = 0;  // librdmacm finds paths between those that differ
  own.queue_pair = ntohs(rdma_get_src_port(listener_.get()));
}

Status RdmaCm::send(int to, const Greeting& greeting) {
  Call& call = calls_[to];
  if (greeting.epoch > call.epoch) call = {};
  if (greeting.epoch < call.epoch || (greeting.has_yours == 0 && call.state == Call::State::kInvited)) {
    // Its request came while the rank was not ready for it.
    if (call.state == Call::State::kInvited) received_.push_back(call.theirs);
    return {};
  }
  call.epoch = greeting.epoch;
  call.mine = greeting;
  if (greeting.given_up != 0 && call.state != Call::State::kNone && call.state != Call::State::kInvited) {
    end(to, call, "this rank has closed the connection");  // the answer to its next request says so
    return {};
  }
  rdma_conn_param response = parameters(call.mine);
  switch (call.state) {
    case Call::State::kNone:
      return begin(to, call);
    case Call::State::kInvited:
      call.state = Call::State::kReplied;
      return done(to, call, "rdma_accept", rdma_accept(call.id.get(), &response));
    case Call::State::kAnswered:
      if (greeting.has_yours == 0) return {};
      call.state = Call::State::kDone;
      return done(to, call, "rdma_establish", rdma_establish(call.id.get()));
    default:
      return call.last_error;  // under way, and as long as no route is found as good as before
  }
}

// Tells of the call before this one, where that found no way, as what becomes of this one is known later.
Status RdmaCm::begin(int to, Call& call) {
  const HighDescriptors high;
  rdma_cm_id* id = nullptr;
  void* const context = reinterpret_cast<void*>(static_cast<intptr_t>(to));
  if (Status status = done(to, call, "rdma_create_id", rdma_create_id(channel_.get(), &id, context, RDMA_PS_TCP));
      !status.ok())
    return status;
  call.id.reset(id);
  call.state = Call::State::kResolving;
  if (traffic_class_ != 0) rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &traffic_class_, 1);
  const Address& peer = addresses_[static_cast<size_t>(to)];
  SocketAddress from = socket_address(ip_, 0), at = socket_address(peer.gid, peer.queue_pair);
  const Status begun = done(to, call, "rdma_resolve_addr", rdma_resolve_addr(id, &from.any, &at.any, kAddressTimeout));
  return begun.ok() ? call.last_error : begun;
}

Status RdmaCm::done(int peer, Call& call, const char* step, int result) {
  return result == 0 ? Status() : failed(peer, call, step, errno);
}

Status RdmaCm::failed(int peer, Call& call, const char* step, int code) {
  const Address& address = addresses_[static_cast<size_t>(peer)];
  call.last_error =
      verbs_error(device_, fmt::format("{} from {} to {}", step, gid_text(ip_), gid_text(address.gid)), code);
  end(peer, call, call.last_error.text().c_str());
  return call.last_error;
}

void RdmaCm::end(int peer, Call& call, const char* why) const {
  log(LogLevel::kDebug, "verbs: rank {}: no connection to rank {}: {}", rank_, peer, why);
  call.id.reset();
  call.state = Call::State::kNone;
}

bool RdmaCm::receive(Greeting& greeting) {
  if (received_.empty()) {
    const auto time = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    if (time < next_look_) return false;
    while (received_.empty() && take_event()) {
    }
    if (received_.empty()) next_look_ = time + kLookPause;
  }
  if (received_.empty()) return false;
  greeting = received_.front();
  received_.pop_front();
  return true;
}

Status RdmaCm::find_path(const Greeting& theirs, ibv_qp_attr& attributes) {
  const Call& call = calls_[static_cast<int>(theirs.from)];
  if (!call.id) return error(IBCOLL_ERR_TRANSPORT, "{}: the connection request is withdrawn", device_);
  ibv_qp_attr found{};
  found.qp_state = IBV_QPS_RTR;
  int mask = 0;
  if (rdma_init_qp_attr(call.id.get(), &found, &mask) != 0) return verbs_error(device_, "rdma_init_qp_attr", errno);
  attributes.ah_attr = found.ah_attr;
  // The path's MTU is what the rank that called knows: its own.
  attributes.path_mtu = std::min({found.path_mtu, mtu_, static_cast<ibv_mtu>(theirs.mtu)});
  return {};
}

}  // namespace ibcoll::verbs
