// SPDX-License-Identifier: BSD-3-Clause
// Every setting there is. To add one, add a row: ibcoll_info -c and the check at start follow from it.
#include <algorithm>
#include <array>
#include <cctype>
#include <deque>
#include <string_view>

#include "runtime/base/catalog.h"
#include "runtime/base/config.h"
#include "runtime/base/network_modules.h"

namespace ibcoll {
namespace {

using Kind = Setting::Kind;
constexpr auto kMayDiffer = Setting::Ranks::kMayDiffer;

// "auto", each transport between nodes, "shm".
constexpr auto kNetworkChoices = [] {
  std::array<char, 64> text{};
  char* end = text.data();
  const auto append = [&end](std::string_view word) { end = std::copy(word.begin(), word.end(), end); };
  append("auto|");
  for (const NetworkModule& module : kNetworkModules) append(module.name), append("|");
  append("shm");
  return text;
}();

constexpr Setting kSettings[] = {
    // Name, kind, default, allowed, meaning, and kMayDiffer where ranks need not agree.
    {"IBCOLL_CONFIG_FILE", Kind::kText, "", "",
     "configuration file; empty: ~/.config/ibcoll.conf, else /etc/ibcoll.conf, where there is one", kMayDiffer},
    {"IBCOLL_LOG", Kind::kChoice, "warn", "error|warn|info|debug", "least severe message that is written to stderr",
     kMayDiffer},
    {"IBCOLL_TRACE", Kind::kText, "", "",
     "record the arrival and exit of every call: FILE, written as FILE.RANK when the context ends, or an existing "
     "folder; for ibcoll_trace",
     kMayDiffer},
    {"IBCOLL_TRACE_CALLS", Kind::kInteger, "65536", "1..16777216",
     "calls that a trace keeps, the last ones, in 120 bytes of memory each", kMayDiffer},
    {"IBCOLL_TRACE_PEERS", Kind::kInteger, "131072", "0..16777216",
     "peers of these calls for which a trace keeps when they were served, in 32 bytes of memory each; 0: none",
     kMayDiffer},
    {"IBCOLL_TIMEOUT", Kind::kSeconds, "600", "0.1..inf",
     "a collective that takes longer fails on all ranks that are still in it; the start of the job waits as long "
     "for a rank",
     kMayDiffer},
    {"IBCOLL_SINGLETON", Kind::kBoolean, "no", "", "this process is a job of one rank, whatever launcher started it",
     kMayDiffer},
    {"IBCOLL_PEER_TIMEOUT", Kind::kSeconds, "10", "1..86400",
     "over TCP, a rank whose host does not answer for so long counts as failed; one that lives and is busy does not",
     kMayDiffer},
    {"IBCOLL_WAIT", Kind::kChoice, "auto", "auto|spin|yield|sleep",
     "how a rank waits; auto: from the cores that it may use and the ranks that share them", kMayDiffer},

    {"IBCOLL_NET", Kind::kChoice, "auto", kNetworkChoices.data(), "transport between nodes; shm: one node only"},
    {"IBCOLL_LINK_MBITS", Kind::kInteger, "0", "0..10000000",
     "speed of a node's link in Mbit/s, by which algorithms are chosen; 0: over TCP timed at start, else as the device "
     "reports"},
    {"IBCOLL_ALLOW_PUBLIC", Kind::kBoolean, "no", "",
     "listen on addresses outside the private ranges (10/8, 172.16/12, 192.168/16, ...)"},
    {"IBCOLL_UCX_TLS", Kind::kTransports, "", "",
     "UCX transports to use, as UCX_TLS; empty: what is safe between the nodes of this job"},

    {"IBCOLL_VERBS_DEVICE", Kind::kText, "", "", "RDMA device, name or name:port; empty: an active port, near and fast",
     kMayDiffer},
    {"IBCOLL_VERBS_GID", Kind::kGid, "auto", "0..255",
     "address on RoCE: auto, an index of the port's GID table (0 to 255), or a subnet such as 10.1.0.0/16", kMayDiffer},
    {"IBCOLL_VERBS_CONNECT", Kind::kChoice, "datagrams", "datagrams|rdmacm",
     "how ranks exchange what a connection needs: by datagrams of their own, or by librdmacm"},
    {"IBCOLL_VERBS_NOTIFY", Kind::kChoice, "auto", "auto|imm|memory",
     "how messages are noticed: by immediate data, or by polling memory, which needs a device that writes in order"},
    {"IBCOLL_VERBS_WINDOWS", Kind::kChoice, "auto", "auto|on|off",
     "open memory by memory windows, to one peer each; off: by regions, open to any rank that has their key"},
    {"IBCOLL_VERBS_SERVICE_LEVEL", Kind::kInteger, "0", "0..15",
     "InfiniBand service level; with rdmacm the subnet manager says"},
    {"IBCOLL_VERBS_TRAFFIC_CLASS", Kind::kInteger, "0", "0..255", "traffic class (DSCP and ECN) of RoCE packets"},
    {"IBCOLL_VERBS_TIMEOUT", Kind::kInteger, "16", "1..31",
     "an unanswered packet is sent again after 4.096 us times 2 to this power"},
    {"IBCOLL_VERBS_RETRIES", Kind::kInteger, "6", "0..6",
     "how many times; after that a new connection is tried, and a peer that does not answer counts as lost (7 would "
     "mean without end to some devices)"},
    {"IBCOLL_VERBS_QUEUE_PAIRS", Kind::kInteger, "4096", "1..1000000", "most peers that a rank connects to"},

    {"IBCOLL_REGISTRATION_CACHE", Kind::kChoice, "auto", "auto|off",
     "keep user memory pinned between uses, where its unmapping is noticed; off: pin for each use"},
    {"IBCOLL_REGISTRATION_BYTES", Kind::kBytes, "0", "",
     "most bytes that stay pinned after their use; 0: half of the memlock limit (ulimit -l), where it binds"},
    {"IBCOLL_REGISTRATION_REGIONS", Kind::kInteger, "65536", "0..1000000",
     "most regions that stay pinned after their use"},

    {"IBCOLL_SHM_SLOT_BYTES", Kind::kBytes, "256K", "4K..4M", "node window: bytes of each of a rank's four areas"},
    {"IBCOLL_SHM_RING_BYTES", Kind::kBytes, "64K", "16K..16M",
     "ring of notes and small payload between two ranks of a node, rounded up to a power of two; at least four times "
     "IBCOLL_EAGER_BYTES"},
    {"IBCOLL_EAGER_BYTES", Kind::kBytes, "8K", "0..1M",
     "largest block that goes through a landing slot without an advertisement; at most what the slots of all "
     "transports in use hold (ibcoll_info -d)"},
    {"IBCOLL_SPILL_BYTES", Kind::kBytes, "2M", "0..1G",
     "for a rank that has not come to a collective yet: how much the others may send ahead, in all, which it keeps "
     "until it comes; "
     "0: nothing"},
    {"IBCOLL_SINGLE_COPY", Kind::kChoice, "auto", "auto|off",
     "copy large blocks between processes of a node by process_vm_readv and process_vm_writev, where the kernel "
     "permits it"},
    {"IBCOLL_SCHEME", Kind::kChoice, "auto", "auto|copy|zero_copy",
     "of messages, copy: through landing slots; zero_copy: straight into the receive buffer; auto: by size"},
    {"IBCOLL_CHECK_OVERLAP", Kind::kChoice, "auto", "auto|on|off",
     "look for receive blocks that overlap each other; auto: except inside of a host, such as an MPI"},
    {"IBCOLL_DETERMINISTIC", Kind::kBoolean, "yes", "",
     "reductions give the same bits in every run with the same number of ranks, the same ranks on each node and the "
     "same settings; no: operands are combined as they come, and in any order that was timed as the fastest"},
    {"IBCOLL_ARRIVAL", Kind::kChoice, "mixed", "together|mixed|late",
     "what algorithms are chosen for by predicted cost: ranks that arrive together, one that is late, or both"},

    {"IBCOLL_TUNING", Kind::kText, "", "",
     "file of the algorithms that ibcoll_tune has timed as the fastest, for this machine, transport and layout; off: "
     "none; empty: one in $XDG_CACHE_HOME/ibcoll or ~/.cache/ibcoll",
     kMayDiffer},

    {"IBCOLL_MPI", Kind::kChoice, "on", "on|off",
     "under an MPI, run its collectives in ibcoll; off on one rank: on no rank. This and the next two count in the "
     "environment only",
     kMayDiffer},
    {"IBCOLL_MPI_COLLECTIVES", Kind::kText, "", "",
     "under an MPI, which collectives: a list such as allreduce,bcast, or ^alltoallw for all others; empty: all; a "
     "collective runs in ibcoll if the lists of all ranks have it",
     kMayDiffer},
    {"IBCOLL_MPI_VERBOSE", Kind::kInteger, "0", "0..2",
     "under an MPI, 1: rank 0 writes at the end how many calls of each collective ran in ibcoll, and why others did "
     "not; 2: every rank does",
     kMayDiffer},
};

// The table above, then the algorithm of each collective.
std::vector<Setting> all_settings() {
  static auto& texts = *new std::deque<std::string>;  // their addresses stay
  std::vector<Setting> all(std::begin(kSettings), std::end(kSettings));
  for (const Collective& row : kCatalog) {
    const char* const name = texts.emplace_back(algorithm_setting(row)).c_str();
    const char* const meaning =
        texts
            .emplace_back(std::string("algorithm of ") + row.name +
                          ", as in NAME[:PARAMETER][:FROM..TO][,...]; auto: lowest predicted cost")
            .c_str();
    all.push_back({name, Kind::kAlgorithm, "auto", "", meaning});
  }
  return all;
}

}  // namespace

std::string algorithm_setting(const Collective& collective) {
  std::string name = std::string("IBCOLL_") + collective.name;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
  return name;
}

std::span<const Setting> Config::settings() {
  static const auto& all = *new std::vector<Setting>(all_settings());
  return all;
}

}  // namespace ibcoll
