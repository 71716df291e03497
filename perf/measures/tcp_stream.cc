// SPDX-License-Identifier: BSD-3-Clause
// Measures one TCP connection between two nodes, with nothing of ibcoll: the round trip of 8 bytes, and a stream.
//   ibcoll_tcp_stream ADDRESS                 one node: listens there, prints its port, serves one peer, ends
//   ibcoll_tcp_stream ADDRESS PORT SECONDS    another: prints us of a round trip (median) and Mbit/s of payload
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "perf/call_times.h"

namespace {

using ibcoll::perf::now_us;

constexpr int kTrips = 500;
constexpr int kWarmUp = 50;
constexpr time_t kTimeout = 20;   // seconds that any one call may take
constexpr size_t kChunk = 65536;  // bytes

[[noreturn]] void give_up(const std::string& what, int error) {
  const char* why = error == EAGAIN ? "nothing came for 20 s" : std::strerror(error);
  fmt::print(stderr, "ibcoll_tcp_stream: {}: {}\n", what, why);
  std::exit(1);
}

void check(bool well, const char* what) {
  if (!well) give_up(what, errno);
}

// Small messages leave at once, and no call takes longer than kTimeout: not even connect and accept.
int make_socket() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  check(socket >= 0, "socket");
  const timeval timeout{kTimeout, 0};
  const int yes = 1;
  check(::setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) == 0, "SO_RCVTIMEO");
  check(::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout) == 0, "SO_SNDTIMEO");
  check(::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) == 0, "TCP_NODELAY");
  return socket;
}

void send_all(int socket, const void* data, size_t bytes) {
  for (size_t sent = 0; sent < bytes;) {
    const ssize_t now = ::send(socket, static_cast<const char*>(data) + sent, bytes - sent, MSG_NOSIGNAL);
    check(now > 0, "send");
    sent += static_cast<size_t>(now);
  }
}

void receive_word(int socket, uint64_t& word) {
  const ssize_t got = ::recv(socket, &word, sizeof word, MSG_WAITALL);
  check(got >= 0, "receive");
  if (got != sizeof word) give_up("receive", ECONNRESET);
}

void serve(sockaddr_in address) {
  const int listener = make_socket();
  socklen_t size = sizeof address;
  check(::bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0, "bind");
  check(::listen(listener, 1) == 0, "listen");
  check(::getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0, "getsockname");
  fmt::print("{}\n", ntohs(address.sin_port));
  std::fflush(stdout);
  const int peer = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  check(peer >= 0, "accept");
  const timeval timeout{kTimeout, 0};
  const int yes = 1;
  check(::setsockopt(peer, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) == 0, "SO_RCVTIMEO");
  check(::setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes) == 0, "TCP_NODELAY");
  uint64_t word = 0;
  for (int trip = 0; trip < kWarmUp + kTrips; ++trip) {
    receive_word(peer, word);
    send_all(peer, &word, sizeof word);
  }
  std::vector<char> buffer(kChunk);
  uint64_t bytes = 0;
  for (ssize_t got = 1; got > 0; bytes += static_cast<uint64_t>(got)) {
    got = ::recv(peer, buffer.data(), buffer.size(), 0);
    check(got >= 0, "receive");
  }
  send_all(peer, &bytes, sizeof bytes);  // all has arrived
}

void measure(sockaddr_in address, double seconds) {
  const int socket = make_socket();
  check(::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0, "connect");
  std::vector<double> trips;
  uint64_t word = 0;
  for (int trip = 0; trip < kWarmUp + kTrips; ++trip) {
    const double begin = now_us();
    send_all(socket, &word, sizeof word);
    receive_word(socket, word);
    if (trip >= kWarmUp) trips.push_back(now_us() - begin);
  }
  const std::vector<char> buffer(kChunk);
  const double begin = now_us();
  while (now_us() - begin < seconds * 1e6) send_all(socket, buffer.data(), buffer.size());
  check(::shutdown(socket, SHUT_WR) == 0, "shutdown");
  receive_word(socket, word);
  const double took = now_us() - begin;
  std::nth_element(trips.begin(), trips.begin() + kTrips / 2, trips.end());
  fmt::print("{:.2f} {:.2f}\n", trips[kTrips / 2], static_cast<double>(word) * 8 / took);
}

}  // namespace

int main(int count, char** words) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  const int port = count == 4 ? std::atoi(words[2]) : 0;
  const double seconds = count == 4 ? std::atof(words[3]) : 1;
  const bool well = (count == 2 || count == 4) && ::inet_pton(AF_INET, words[1], &address.sin_addr) == 1 &&
                    (count == 2 || (port > 0 && port < 65536)) && seconds > 0 && seconds <= kTimeout / 2;
  if (!well) {
    fmt::print(stderr, "usage: ibcoll_tcp_stream IPV4_ADDRESS [PORT SECONDS]     (0 < SECONDS <= {})\n", kTimeout / 2);
    return 2;
  }
  address.sin_port = htons(static_cast<uint16_t>(port));
  if (count == 2)
    serve(address);
  else
    measure(address, seconds);
  return 0;
}
