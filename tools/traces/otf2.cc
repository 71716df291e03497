// SPDX-License-Identifier: BSD-3-Clause
// OTF2 archives, as Score-P writes them. A record of a collective has communicator, root, and the bytes that the rank
// sent and received; sizes for each peer, types and operations are not in it.
#include <fmt/format.h>
#include <otf2/otf2.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <map>
#include <new>
#include <utility>

#include "runtime/base/catalog.h"
#include "tools/traces/printable.h"
#include "tools/traces/trace.h"

namespace ibcoll::tracing {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

// In the order of OTF2_CollectiveOp; nullptr: ibcoll has no such collective.
constexpr std::array<const char*, 17> kNames = {"barrier",
                                                "bcast",
                                                "gather",
                                                "gatherv",
                                                "scatter",
                                                "scatterv",
                                                "allgather",
                                                "allgatherv",
                                                "alltoall",
                                                "alltoallv",
                                                nullptr,
                                                "allreduce",
                                                "reduce",
                                                "reduce_scatter",
                                                "scan",
                                                "exscan",
                                                "reduce_scatter_block"};

const Collective* collective_of(OTF2_CollectiveOp op) {
  if (op >= kNames.size() || !kNames[op]) return nullptr;
  return std::find_if(std::begin(kCatalog), std::end(kCatalog),
                      [op](const Collective& row) { return std::string_view(row.name) == kNames[op]; });
}

struct Region {
  uint32_t name = kNone, file = kNone;
  int line = 0;
};

// Holds what is known of a location while its events are read.
struct Location {
  uint64_t group = 0;
  int rank = -1;
  std::vector<uint32_t> regions;  // that it is in
  OTF2_TimeStamp begun = 0;       // of a blocking collective
  std::map<uint64_t, OTF2_TimeStamp> requests;
  std::map<uint32_t, uint32_t> calls;  // by communicator
};

struct Archive {
  uint64_t ticks_per_second = 1, offset = 0;
  std::map<uint32_t, std::string> strings;
  std::map<uint32_t, Region> regions;
  std::map<uint64_t, uint64_t> nodes;                // of location groups
  std::map<uint32_t, std::vector<uint64_t>> groups;  // of ranks
  std::vector<uint64_t> ranks;                       // locations, by rank
  std::map<uint32_t, uint32_t> comms;                // to groups
  std::map<uint64_t, Location> locations;
  std::map<std::pair<int, uint32_t>, size_t> sites;  // by rank and region
  std::vector<RankTrace> traces;
  bool out_of_memory = false;
  std::string problem;

  std::string text(uint32_t string) const {
    const auto at = strings.find(string);
    return at == strings.end() ? "" : at->second;
  }
  int64_t ns(OTF2_TimeStamp at) const {
    return static_cast<int64_t>(static_cast<double>(at - offset) * (1e9 / static_cast<double>(ticks_per_second)));
  }
};

// Callbacks are called by C.
template <typename Action>
OTF2_CallbackCode guarded(void* data, Action action) noexcept {
  auto& archive = *static_cast<Archive*>(data);
  try {
    action(archive);
    return OTF2_CALLBACK_SUCCESS;
  } catch (const std::bad_alloc&) {
    archive.out_of_memory = true;
    return OTF2_CALLBACK_INTERRUPT;
  }
}

// The problem of the last call.
OTF2_ErrorCode keep_problem(void* data, const char*, uint64_t, const char*, OTF2_ErrorCode code, const char* format,
                            va_list arguments) {
  std::array<char, 300> text{};
  std::vsnprintf(text.data(), text.size(), format, arguments);
  auto& archive = *static_cast<Archive*>(data);
  if (archive.problem.empty()) archive.problem = fmt::format("{}: {}", OTF2_Error_GetDescription(code), text.data());
  return code;
}

// ---------------------------------------------------------------- definitions

OTF2_CallbackCode on_clock(void* data, uint64_t resolution, uint64_t offset, uint64_t, uint64_t) {
  return guarded(data, [&](Archive& a) { a.ticks_per_second = std::max<uint64_t>(1, resolution), a.offset = offset; });
}

OTF2_CallbackCode on_string(void* data, OTF2_StringRef self, const char* text) {
  return guarded(data, [&](Archive& a) { a.strings[self] = printable(text); });
}

OTF2_CallbackCode on_location_group(void* data, OTF2_LocationGroupRef self, OTF2_StringRef, OTF2_LocationGroupType,
                                    OTF2_SystemTreeNodeRef node, OTF2_LocationGroupRef) {
  return guarded(data, [&](Archive& a) { a.nodes[self] = node; });
}

OTF2_CallbackCode on_location(void* data, OTF2_LocationRef self, OTF2_StringRef, OTF2_LocationType, uint64_t,
                              OTF2_LocationGroupRef group) {
  return guarded(data, [&](Archive& a) { a.locations[self].group = group; });
}

OTF2_CallbackCode on_region(void* data, OTF2_RegionRef self, OTF2_StringRef name, OTF2_StringRef, OTF2_StringRef,
                            OTF2_RegionRole, OTF2_Paradigm, OTF2_RegionFlag, OTF2_StringRef file, uint32_t line,
                            uint32_t) {
  return guarded(data, [&](Archive& a) { a.regions[self] = {name, file, static_cast<int>(line)}; });
}

OTF2_CallbackCode on_group(void* data, OTF2_GroupRef self, OTF2_StringRef, OTF2_GroupType type, OTF2_Paradigm paradigm,
                           OTF2_GroupFlag, uint32_t count, const uint64_t* members) {
  return guarded(data, [&](Archive& a) {
    if (paradigm != OTF2_PARADIGM_MPI) return;
    if (type == OTF2_GROUP_TYPE_COMM_LOCATIONS) a.ranks.assign(members, members + count);
    if (type == OTF2_GROUP_TYPE_COMM_GROUP) a.groups[self].assign(members, members + count);
  });
}

OTF2_CallbackCode on_comm(void* data, OTF2_CommRef self, OTF2_StringRef, OTF2_GroupRef group, OTF2_CommRef,
                          OTF2_CommFlag) {
  return guarded(data, [&](Archive& a) { a.comms[self] = group; });
}

// ---------------------------------------------------------------- events

OTF2_CallbackCode on_enter(OTF2_LocationRef at, OTF2_TimeStamp, void* data, OTF2_AttributeList*,
                           OTF2_RegionRef region) {
  return guarded(data, [&](Archive& a) { a.locations[at].regions.push_back(region); });
}

OTF2_CallbackCode on_leave(OTF2_LocationRef at, OTF2_TimeStamp, void* data, OTF2_AttributeList*, OTF2_RegionRef) {
  return guarded(data, [&](Archive& a) {
    std::vector<uint32_t>& regions = a.locations[at].regions;
    if (!regions.empty()) regions.pop_back();
  });
}

OTF2_CallbackCode on_begin(OTF2_LocationRef at, OTF2_TimeStamp time, void* data, OTF2_AttributeList*) {
  return guarded(data, [&](Archive& a) { a.locations[at].begun = time; });
}

OTF2_CallbackCode on_request(OTF2_LocationRef at, OTF2_TimeStamp time, void* data, OTF2_AttributeList*,
                             uint64_t request) {
  return guarded(data, [&](Archive& a) { a.locations[at].requests[request] = time; });
}

// The block of a call by what Score-P records: bytes to, and from, all ranks of the communicator together.
uint64_t block_of(const Collective& row, uint64_t ranks, uint64_t rank, uint64_t sent, uint64_t received) {
  switch (row.id) {
    case IBCOLL_BARRIER:
      return 0;
    case IBCOLL_BCAST:
    case IBCOLL_SCATTER:
    case IBCOLL_SCATTERV:
      return received;
    case IBCOLL_GATHER:
    case IBCOLL_GATHERV:
    case IBCOLL_REDUCE:
      return sent;
    case IBCOLL_SCAN:
      return received / (rank + 1);
    case IBCOLL_EXSCAN:
      return rank > 0 ? received / rank : 0;
    default:
      return received / ranks;
  }
}

// The region around the MPI function.
size_t site_of(Archive& a, RankTrace& trace, const Location& location) {
  const uint32_t region = location.regions.size() < 2 ? kNone : location.regions[location.regions.size() - 2];
  const auto [at, is_new] = a.sites.emplace(std::pair(trace.rank, region), trace.sites.size());
  if (!is_new) return at->second;
  Site& site = trace.sites.emplace_back();
  if (const auto known = a.regions.find(region); known != a.regions.end()) {
    site.function = a.text(known->second.name), site.file = a.text(known->second.file);
    site.line = known->second.line;
    if (site.file.empty()) site.symbol = site.function;
  }
  return at->second;
}

void add_call(Archive& a, Location& location, OTF2_TimeStamp begun, OTF2_TimeStamp ended, bool blocks,
              OTF2_CollectiveOp op, uint32_t comm, uint32_t root, uint64_t sent, uint64_t received) {
  const Collective* const row = collective_of(op);
  const auto group = a.comms.find(comm);
  if (!row || location.rank < 0 || group == a.comms.end()) return;
  const auto members = a.groups.find(group->second);
  if (members == a.groups.end()) return;  // of one rank
  const auto found = std::find(members->second.begin(), members->second.end(), static_cast<uint64_t>(location.rank));
  const uint64_t ranks = members->second.size();
  if (found == members->second.end()) return;
  RankTrace& trace = a.traces[static_cast<size_t>(location.rank)];
  const auto kept = [&](const char* text) -> std::string_view { return *trace.texts.emplace(text).first; };
  Record r;
  r.arrival_ns = a.ns(begun), r.exit_ns = std::max(r.arrival_ns, a.ns(ended));
  r.collective = row->name;
  r.algorithm = kept("-"), r.scheme = kept("auto");
  r.bytes = block_of(*row, ranks, static_cast<uint64_t>(found - members->second.begin()), sent, received);
  r.team = comm, r.op = ++location.calls[comm];
  r.team_ranks = static_cast<int>(ranks);
  r.site = site_of(a, trace, location);
  if (row->rooted) r.root = static_cast<int>(root);
  if (row->reduces()) r.type = kept(r.bytes % 8 == 0 ? "double" : "uint8"), r.operation = kept("sum");
  if (blocks) r.wait_ns = 0;
  if (row->sizes == SizesKnown::kToAll || row->sizes == SizesKnown::kToPairs) {
    const uint64_t each = row->sizes == SizesKnown::kToPairs ? sent / ranks : r.bytes;
    const std::vector<uint64_t> counts(ranks, each);
    const auto known = std::find(trace.counts.begin(), trace.counts.end(), counts);
    r.counts = static_cast<size_t>(known - trace.counts.begin());
    if (known == trace.counts.end()) trace.counts.push_back(counts);
  }
  trace.teams.try_emplace(comm, members->second.begin(), members->second.end());
  trace.records.push_back(std::move(r));
}

OTF2_CallbackCode on_end(OTF2_LocationRef at, OTF2_TimeStamp time, void* data, OTF2_AttributeList*,
                         OTF2_CollectiveOp op, OTF2_CommRef comm, uint32_t root, uint64_t sent, uint64_t received) {
  return guarded(data, [&](Archive& a) {
    Location& location = a.locations[at];
    add_call(a, location, location.begun, time, true, op, comm, root, sent, received);
  });
}

OTF2_CallbackCode on_complete(OTF2_LocationRef at, OTF2_TimeStamp time, void* data, OTF2_AttributeList*,
                              OTF2_CollectiveOp op, OTF2_CommRef comm, uint32_t root, uint64_t sent, uint64_t received,
                              uint64_t request) {
  return guarded(data, [&](Archive& a) {
    Location& location = a.locations[at];
    const auto begun = location.requests.find(request);
    if (begun == location.requests.end()) return;
    add_call(a, location, begun->second, time, false, op, comm, root, sent, received);
    location.requests.erase(begun);
  });
}

// ---------------------------------------------------------------- the archive

bool read_definitions(OTF2_Reader* reader, Archive& archive) {
  OTF2_GlobalDefReader* const definitions = OTF2_Reader_GetGlobalDefReader(reader);
  OTF2_GlobalDefReaderCallbacks* const calls = OTF2_GlobalDefReaderCallbacks_New();
  OTF2_GlobalDefReaderCallbacks_SetClockPropertiesCallback(calls, on_clock);
  OTF2_GlobalDefReaderCallbacks_SetStringCallback(calls, on_string);
  OTF2_GlobalDefReaderCallbacks_SetLocationGroupCallback(calls, on_location_group);
  OTF2_GlobalDefReaderCallbacks_SetLocationCallback(calls, on_location);
  OTF2_GlobalDefReaderCallbacks_SetRegionCallback(calls, on_region);
  OTF2_GlobalDefReaderCallbacks_SetGroupCallback(calls, on_group);
  OTF2_GlobalDefReaderCallbacks_SetCommCallback(calls, on_comm);
  OTF2_Reader_RegisterGlobalDefCallbacks(reader, definitions, calls, &archive);
  OTF2_GlobalDefReaderCallbacks_Delete(calls);
  uint64_t count = 0;
  return OTF2_Reader_ReadAllGlobalDefinitions(reader, definitions, &count) == OTF2_SUCCESS;
}

bool read_events(OTF2_Reader* reader, Archive& archive) {
  for (const auto& [location, known] : archive.locations) OTF2_Reader_SelectLocation(reader, location);
  const bool has_definitions = OTF2_Reader_OpenDefFiles(reader) == OTF2_SUCCESS;
  if (OTF2_Reader_OpenEvtFiles(reader) != OTF2_SUCCESS) return false;
  for (const auto& [location, known] : archive.locations) {
    uint64_t count = 0;
    if (OTF2_DefReader* const definitions = has_definitions ? OTF2_Reader_GetDefReader(reader, location) : nullptr) {
      OTF2_Reader_ReadAllLocalDefinitions(reader, definitions, &count);
      OTF2_Reader_CloseDefReader(reader, definitions);
    }
    OTF2_Reader_GetEvtReader(reader, location);
  }
  OTF2_GlobalEvtReader* const events = OTF2_Reader_GetGlobalEvtReader(reader);
  OTF2_GlobalEvtReaderCallbacks* const calls = OTF2_GlobalEvtReaderCallbacks_New();
  OTF2_GlobalEvtReaderCallbacks_SetEnterCallback(calls, on_enter);
  OTF2_GlobalEvtReaderCallbacks_SetLeaveCallback(calls, on_leave);
  OTF2_GlobalEvtReaderCallbacks_SetMpiCollectiveBeginCallback(calls, on_begin);
  OTF2_GlobalEvtReaderCallbacks_SetMpiCollectiveEndCallback(calls, on_end);
  OTF2_GlobalEvtReaderCallbacks_SetNonBlockingCollectiveRequestCallback(calls, on_request);
  OTF2_GlobalEvtReaderCallbacks_SetNonBlockingCollectiveCompleteCallback(calls, on_complete);
  OTF2_Reader_RegisterGlobalEvtCallbacks(reader, events, calls, &archive);
  OTF2_GlobalEvtReaderCallbacks_Delete(calls);
  uint64_t count = 0;
  const bool read = OTF2_Reader_ReadAllGlobalEvents(reader, events, &count) == OTF2_SUCCESS;
  OTF2_Reader_CloseGlobalEvtReader(reader, events);
  OTF2_Reader_CloseEvtFiles(reader);
  return read;
}

void make_traces(const std::string& path, Archive& archive) {
  std::map<uint64_t, int> nodes;
  for (const uint64_t location : archive.ranks) {
    RankTrace& trace = archive.traces.emplace_back();
    trace.path = path, trace.version = kOtf2Version;
    trace.rank = static_cast<int>(archive.traces.size()) - 1, trace.ranks = static_cast<int>(archive.ranks.size());
    trace.job = trace.clock = "otf2";
    Location& known = archive.locations[location];
    known.rank = trace.rank;
    trace.node = nodes.emplace(archive.nodes[known.group], static_cast<int>(nodes.size())).first->second;
  }
}

// A root may record other sizes than the others, such as nothing for its own data in place.
void agree_on_blocks(std::vector<RankTrace>& traces) {
  std::map<std::pair<uint64_t, uint32_t>, uint64_t> most;
  const auto regular = [](const Record& r) {
    return std::any_of(std::begin(kCatalog), std::end(kCatalog),
                       [&](const Collective& row) { return r.collective == row.name && !row.irregular(); });
  };
  for (const RankTrace& trace : traces)
    for (const Record& r : trace.records)
      if (regular(r)) most[{r.team, r.op}] = std::max(most[{r.team, r.op}], r.bytes);
  for (RankTrace& trace : traces) {
    for (Record& r : trace.records) {
      if (!regular(r)) continue;
      r.bytes = most[{r.team, r.op}];
      if (!r.type.empty()) r.type = *trace.texts.emplace(r.bytes % 8 == 0 ? "double" : "uint8").first;
    }
    std::stable_sort(trace.records.begin(), trace.records.end(),
                     [](const Record& a, const Record& b) { return a.arrival_ns < b.arrival_ns; });
  }
}

}  // namespace

Result<std::vector<RankTrace>> read_otf2(const std::string& path) {
  Archive archive;
  OTF2_Error_RegisterCallback(keep_problem, &archive);
  const auto failed = [&](const char* what) {
    if (archive.out_of_memory) throw std::bad_alloc();
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "{}: {}: {}", printable(path), what,
                 archive.problem.empty() ? "it is damaged" : printable(archive.problem));
  };
  OTF2_Reader* const reader = OTF2_Reader_Open(path.c_str());
  if (!reader) return failed("cannot be opened as an OTF2 archive");
  const struct Closing {
    OTF2_Reader* reader;
    ~Closing() { OTF2_Reader_Close(reader); }
  } closing{reader};
  OTF2_Reader_SetSerialCollectiveCallbacks(reader);
  if (!read_definitions(reader, archive)) return failed("its definitions cannot be read");
  if (archive.ranks.empty()) return failed("it has no MPI ranks");
  make_traces(path, archive);
  if (!read_events(reader, archive)) return failed("its events cannot be read");
  agree_on_blocks(archive.traces);
  return std::move(archive.traces);
}

}  // namespace ibcoll::tracing
