// SPDX-License-Identifier: BSD-3-Clause
// The connections that UCX's listening sockets accept: none while ranks join, then as few as the kernel can tell apart.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstring>

#include "runtime/base/unique_fd.h"
#include "runtime/ucx/workarounds/socket_watch.h"

namespace ibcoll::ucx {
namespace {

sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

uint16_t port_of(int socket) { return local_address(socket)->port; }

UniqueFd bound_to(uint16_t port) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const sockaddr_in address = loopback(port);
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return socket;
}

// The addresses where a rank says that it listens, and connects from: one listener on loopback, or nothing.
constexpr Host kLoopback{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
std::vector<std::byte> addresses_of(uint16_t port, uint16_t source, bool tells, const Host& host = kLoopback) {
  std::vector<std::byte> bytes(4);
  if (!tells) return bytes;
  bytes[0] = bytes[1] = std::byte{1};
  std::memcpy(&bytes[2], &source, sizeof source);
  const std::span<const std::byte> ports = std::as_bytes(std::span(&port, 1)), hosts = std::as_bytes(std::span(host));
  bytes.insert(bytes.end(), ports.begin(), ports.end());
  bytes.insert(bytes.end(), hosts.begin(), hosts.end());
  return bytes;
}

class UcxDoors : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(::listen(listener_.get(), 8), 0); }
  void find_listeners() {
    const std::array<std::byte, 2> address{std::byte(port_ >> 8), std::byte(port_ & 0xff)};
    watch_.find_listeners({}, address);
  }
  // A connection from this port, or none within a moment.
  UniqueFd enter(uint16_t source = 0) const {
    UniqueFd socket = bound_to(source);
    const sockaddr_in to = loopback(port_);
    (void)::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to);
    pollfd entry{socket.get(), POLLOUT, 0};
    if (::poll(&entry, 1, 100) != 1 || (entry.revents & POLLERR) != 0) socket.reset();
    return socket;
  }

  const UniqueFd listener_ = bound_to(0);
  const uint16_t port_ = port_of(listener_.get());
  static constexpr Time kTimeout = 1'000'000'000;
  SocketWatch watch_{kTimeout};
};

TEST_F(UcxDoors, LetRanksInOnly) {
  find_listeners();
  EXPECT_FALSE(enter()) << "while ranks join";
  const uint16_t source = port_of(bound_to(0).get());
  watch_.set_addresses_of(0, addresses_of(port_, source, true));
  watch_.admit_ranks();
  EXPECT_EQ(watch_.admitted_text(), "ranks of this job only");
  EXPECT_FALSE(enter());
  EXPECT_TRUE(enter(source));
}

TEST_F(UcxDoors, LetRanksOfSeveralHostsIn) {
  find_listeners();
  const uint16_t source = port_of(bound_to(0).get());
  watch_.set_addresses_of(0, addresses_of(port_, 1000, true, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1}));
  watch_.set_addresses_of(1, addresses_of(port_, 1000, true, {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}));
  watch_.set_addresses_of(2, addresses_of(port_, source, true));
  watch_.admit_ranks();
  EXPECT_EQ(watch_.admitted_text(), "ranks of this job only");
  EXPECT_FALSE(enter());
  EXPECT_TRUE(enter(source));
}

TEST(UcxDoorsText, ThatIsCutIsNone) {
  const std::vector<std::byte> addresses = addresses_of(1000, 2000, true);
  EXPECT_EQ(SocketWatch::bytes_of(addresses), addresses.size());
  for (size_t bytes = 0; bytes < addresses.size(); ++bytes)
    EXPECT_EQ(SocketWatch::bytes_of(std::span(addresses).first(bytes)), 0u) << bytes;
}

TEST_F(UcxDoors, LetHostsInWhereRanksAreTooMany) {
  find_listeners();
  for (int rank = 0; rank < 3000; ++rank)
    watch_.set_addresses_of(rank, addresses_of(port_, static_cast<uint16_t>(1000 + rank), true));
  watch_.admit_ranks();
  EXPECT_EQ(watch_.admitted_text(), "hosts of this job only");
  EXPECT_TRUE(enter());
}

TEST_F(UcxDoors, LetEverybodyInWhereARankHasMoreAddressesThanItCanTell) {
  find_listeners();
  watch_.set_addresses_of(0, addresses_of(port_, 1000, true));
  watch_.set_addresses_of(1, addresses_of(port_, 0, false));
  watch_.admit_ranks();
  EXPECT_EQ(watch_.admitted_text(), "everybody who reaches the devices above");
  EXPECT_TRUE(enter());
}

TEST_F(UcxDoors, WhoWasQuickerThanTheFilterIsTurnedOut) {
  const UniqueFd stranger = enter();
  ASSERT_TRUE(stranger);
  const UniqueFd accepted(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  ASSERT_TRUE(accepted);
  find_listeners();
  watch_.set_addresses_of(0, addresses_of(port_, 1000, true));
  watch_.admit_ranks();
  char byte = 0;
  EXPECT_EQ(::recv(stranger.get(), &byte, 1, 0), 0) << "it is still connected";
}

// UCX gives a socket up before the peer's silence counts, and takes another one.
TEST_F(UcxDoors, TriesToConnectInVainAreOneSilence) {
  find_listeners();
  watch_.set_addresses_of(0, addresses_of(port_, 1000, true));
  watch_.admit_ranks();  // not to this process
  const auto now = [] {
    return static_cast<Time>(std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1));
  };
  const auto try_to_connect = [&] {
    UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    const sockaddr_in to = loopback(port_);
    SocketWatch::connects(socket.get(), reinterpret_cast<const sockaddr*>(&to));
    (void)::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to);
    return socket;
  };
  UniqueFd socket = try_to_connect();
  const Time begun = now();
  EXPECT_EQ(watch_.silent_ranks(begun), std::vector<int>());
  socket.reset();
  while (now() <= begun + 1'000'000) {
  }
  socket = try_to_connect();
  EXPECT_EQ(watch_.silence_of(0, 0), "");
  EXPECT_EQ(watch_.silent_ranks(begun + kTimeout + 1), std::vector<int>{0});
  EXPECT_EQ(watch_.silence_of(0, 0), "its host 127.0.0.1 has not answered for 1 s (IBCOLL_PEER_TIMEOUT)");
}

// UCX also reports a connection that breaks in its first moments as one whose time is over.
TEST_F(UcxDoors, WhatBreaksAtOnceWasNotSilent) {
  watch_.set_addresses_of(0, addresses_of(port_, 0, true));
  EXPECT_EQ(watch_.silence_of(0, kTimeout / 4), "");
  EXPECT_EQ(watch_.silence_of(0, kTimeout), "its host 127.0.0.1 has not answered for 1 s (IBCOLL_PEER_TIMEOUT)");
}

}  // namespace
}  // namespace ibcoll::ucx
