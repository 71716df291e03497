// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/verbs/transport.h"

#include <algorithm>

#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "runtime/machine/core_hints.h"
#include "runtime/verbs/addresses.h"

namespace ibcoll::verbs {
namespace {

constexpr uint32_t kPollsPerQueue = 8;     // while slots are enough
constexpr uint32_t kPollsPerGreeting = 8;  // while none is awaited: a look at a completion queue less in the others

}  // namespace

Result<std::unique_ptr<Transport>> Transport::open(const NetworkParams& params) {
  Result<PortChoice> choice = choose_port(*params.config, list_ports());
  if (!choice.ok()) return choice.status();
  for (const std::string& reason : choice->reasons) log(LogLevel::kInfo, "verbs: {}", reason);
  std::unique_ptr<Transport> transport(new Transport(params, std::move(*choice)));
  if (Status status = transport->prepare(params); !status.ok()) return status;
  return transport;
}

Transport::Transport(const NetworkParams& params, PortChoice choice)
    : local_{params.rank, params.size, params.job, {}, Adapter(std::move(choice)), Peers(params.rank, params.size),
             {}} {}

Status Transport::prepare(const NetworkParams& params) {
  const Config& config = *params.config;
  Settings& settings = local_.settings;
  settings.timeout = static_cast<uint8_t>(config.integer("IBCOLL_VERBS_TIMEOUT"));
  settings.retries = static_cast<uint8_t>(config.integer("IBCOLL_VERBS_RETRIES"));
  const Port& port = local_.adapter.port();
  settings.most_queue_pairs =
      static_cast<uint32_t>(std::min<int64_t>({config.integer("IBCOLL_VERBS_QUEUE_PAIRS"),
                                               port.most_completions / completions_for(1), port.most_queue_pairs - 1}));
  const auto peers = static_cast<size_t>(params.size - 1 - params.near);
  const size_t most_connections = std::min(peers, size_t{settings.most_queue_pairs});
  if (Status status = local_.adapter.open(config, params.in_host, most_connections); !status.ok()) return status;
  if (Status status = connector_.open(config); !status.ok()) return status;
  const bool in_order = local_.adapter.measure_link();
  // librdmacm takes the service level that the subnet manager says, which has not been asked about.
  gate_notify(config, in_order && config.text("IBCOLL_VERBS_CONNECT") != "rdmacm");
  return {};
}

// Polling memory needs a device that writes the bytes of a message in order.
void Transport::gate_notify(const Config& config, bool in_order) {
  const std::string& choice = config.text("IBCOLL_VERBS_NOTIFY");
  const char* const promise =
      in_order ? "the device writes messages in order" : "the device promises no order of writes";
  local_.settings.notify = choice == "memory" || (choice == "auto" && in_order) ? Notify::kMemory : Notify::kImmediate;
  notify_reason_ = choice == "auto" ? promise : fmt::format("by IBCOLL_VERBS_NOTIFY; {}", promise);
  if (local_.settings.notify == Notify::kMemory && !in_order)
    log(LogLevel::kWarning,
        "verbs: IBCOLL_VERBS_NOTIFY=memory, but {} does not promise to write a message in order: data may be wrong; "
        "IBCOLL_VERBS_NOTIFY=imm is safe",
        local_.adapter.name());
}

Transport::~Transport() {
  if (!connector_.is_open()) return;
  say_goodbye();
  for (const std::unique_ptr<Peer>& peer : local_.peers.all()) {
    if (!peer || !peer->connection.has_queue_pair()) continue;
    peer->liveness.leave();
    if (!peer->liveness.lost())
      peer->liveness.lose(
          text_or(
              kNoText,
              [&] { return fmt::format("rank {}: verbs: closes the connection to rank {}", local_.rank, peer->rank); }),
          IBCOLL_OK);
    recovery_.break_connection(*peer, 0);
  }
  for (const std::unique_ptr<Peer>& peer : local_.peers.all())
    if (peer && peer->connection.has_queue_pair()) completions_.wait_until_drained(*peer);
}

std::vector<std::byte> Transport::address() const {
  Address own = address_of(local_.adapter.choice());
  own.process = local_.peers.processes.own();
  connector_.manager().fill_in_address(own);
  const auto bytes = std::as_bytes(std::span(&own, 1));
  return {bytes.begin(), bytes.end()};
}

Status Transport::set_addresses(std::vector<std::vector<std::byte>> by_rank) {
  if (by_rank.size() != static_cast<size_t>(local_.size))
    return error(IBCOLL_ERR_INVALID_ARGUMENT, "verbs: {} addresses for {} ranks", by_rank.size(), local_.size);
  std::vector<Address> addresses(by_rank.size());
  for (size_t rank = 0; rank < by_rank.size(); ++rank) {
    if (by_rank[rank].size() != sizeof(Address))
      return error(IBCOLL_ERR_INVALID_ARGUMENT, "verbs: the address of rank {} has {} bytes, not {}", rank,
                   by_rank[rank].size(), sizeof(Address));
    std::memcpy(&addresses[rank], by_rank[rank].data(), sizeof(Address));
  }
  const auto self = static_cast<size_t>(local_.rank);
  for (size_t rank = 0; rank < by_rank.size(); ++rank)
    if (Status status = check_reach(local_.rank, addresses[self], static_cast<int>(rank), addresses[rank]);
        !status.ok())
      return status;
  connector_.manager().set_addresses(addresses);
  local_.peers.set_addresses(std::move(addresses));
  return {};
}

// Null: not now, or never again.
inline Peer* Transport::ready_to_send(int rank) {
  Peer* const peer = local_.peers.find(static_cast<size_t>(rank));
  const bool at_once = peer && peer->connection.ready() && !peer->liveness.left() && !peer->liveness.lost();
  return at_once && peer->sending.has_slot() ? peer : get_ready_to_send(rank);
}

Peer* Transport::get_ready_to_send(int rank) {
  Peer* const peer = local_.find_or_make(rank);
  if (peer == nullptr) return nullptr;
  if (peer->liveness.left()) {
    recovery_.fail(*peer, "it has left the job");
    recovery_.report(*peer);
  } else if (peer->connection.is(State::kNew)) {
    connector_.start(*peer);
  }
  if (peer->liveness.lost()) return nullptr;
  if (peer->sending.has_slot()) {  // what is accepted now leaves when the connection is there
    if (!peer->connection.ready()) connector_.note_unsent();
    return peer;
  }
  ++no_credit_;
  return nullptr;
}

bool Transport::send(int rank, const Note& note, std::span<const std::byte> payload) {
  Peer* const peer = payload.size() <= kSlotPayload ? ready_to_send(rank) : nullptr;
  if (peer == nullptr) return false;
  sender_.send(*peer, note, payload);
  return true;
}

PutResult Transport::put(int rank, const RemoteRegion& to, std::span<const std::byte> from, const Note& note,
                         uint64_t token) {
  Peer* const peer = ready_to_send(rank);
  const PutResult result = peer == nullptr ? PutResult::kBusy : sender_.put(*peer, to, from, note, token);
  exposures_.heed_shortage();
  return result;
}

RemoteRegion Transport::expose(int rank, std::span<std::byte> memory) {
  const RemoteRegion region = expose_with_next(rank, memory);
  if (Peer* const peer = local_.peers.find(static_cast<size_t>(rank)); region.key != 0 && peer->connection.ready())
    sender_.pump(*peer);
  return region;
}

// send() binds the window, by the same call of the device.
RemoteRegion Transport::expose_with_next(int rank, std::span<std::byte> memory) {
  Peer* const peer = local_.find_or_make(rank);
  if (peer == nullptr || peer->connection.is(State::kFailed) || memory.empty()) return {};
  return exposures_.expose(*peer, memory);
}

bool Transport::conceal(int rank, const RemoteRegion& region) {
  if (Peer* const peer = local_.peers.find(static_cast<size_t>(rank))) exposures_.conceal(*peer, region);
  return true;
}

bool Transport::rest(int rank, const RemoteRegion& region) {
  if (Peer* const peer = local_.peers.find(static_cast<size_t>(rank))) exposures_.rest(*peer, region);
  return true;
}

void Transport::end_rests() { exposures_.end_rests(); }

size_t Transport::poll_often(std::span<Event> events, uint32_t looks) {
  if (local_.outbox.has_lent())
    local_.outbox.take_back([this](Peer* peer) {
      peer->receiving.release();
      sender_.return_credit(*peer);
      requests_.flush(*peer);
    });
  local_.adapter.registrations().collect();
  for (;; relax()) {
    ++polls_;
    if (!slots_are_enough() || !local_.outbox.is_empty())
      push();
    else if (receiver_.any_slot_is_written())
      if (const size_t count = receiver_.take_from_slots(events); count > 0) return count;
    if (!local_.outbox.is_empty()) break;
    if (--looks == 0) return 0;
  }
  return local_.outbox.hand_out(events,
                                [this](Peer& peer, Event& event) { return receiver_.take_message(peer, event); });
}

// Messages show in memory, and nothing is awaited that shows elsewhere: only now and then something does.
inline bool Transport::slots_are_enough() const {
  return local_.settings.notify == Notify::kMemory && polls_ % kPollsPerQueue != 0 && !sender_.awaits_completions() &&
         connector_.greeted().empty() && !connector_.has_unsent() && recovery_.draining() == 0;
}

void Transport::resume_sending() {
  if (recovery_.draining() > 0) completions_.end_late_drains();
  connector_.connect_drained();
  sender_.retry_pumps();
}

// What arrives is kept for poll(), which alone hands out slots and takes them back.
void Transport::push() {
  completions_.poll();
  if (local_.settings.notify == Notify::kMemory) receiver_.look_at_slots();
  if (!connector_.greeted().empty() || polls_ % kPollsPerGreeting == 0) connector_.serve_greetings();
  resume_sending();
  connector_.look_for_unsent();
}

void Transport::check_peers() {
  completions_.poll();  // the last ones of peers that have ended
  monitor_.check();
}

// With windows, a bind and an invalidation; without them a region is pinned and unpinned each time
// (measured on soft-RoCE: alltoall of 4 ranks is faster through slots at 20 KB, and as fast at 40 KB).
size_t Transport::least_worth_exposing() const { return local_.adapter.windows_on_cache() ? 0 : 40960; }

Json Transport::describe() const {
  const Adapter& adapter = local_.adapter;
  const PortChoice& choice = adapter.choice();
  const LinkModel& model = adapter.model();
  const Sender::Counters& sent = sender_.counters();
  const Receiver::Counters& received = receiver_.counters();
  return {{"name", name()},
          {"device", fmt::format("{}:{}", adapter.name(), choice.port.number)},
          {"address", choice.global ? gid_text(choice.gid) : fmt::format("LID {}", choice.port.lid)},
          {"gid_index", choice.gid_index},
          {"mtu", 128 << choice.port.mtu},
          {"notify", local_.settings.notify == Notify::kMemory ? "memory" : "imm"},
          {"notify_reason", notify_reason_},
          {"alpha_us", model.alpha_us},
          {"beta_us_per_byte", model.beta_us_per_byte},
          {"cpu_us", model.cpu_us},
          {"by_ranks", model.by_ranks},
          {"model_reason", adapter.model_reason()},
          {"exact_ranges", !adapter.opens_windows()     ? "a memory region each"
                           : adapter.windows_on_cache() ? "memory windows"
                                                        : "memory windows, on a memory region each"},
          {"reasons", choice.reasons},
          {"connect", connector_.manager().name()},
          {"most_queue_pairs", local_.settings.most_queue_pairs},
          {"queue_pairs", local_.peers.with_queue_pair.size()},
          {"connections", connector_.connections() - connector_.reconnections()},
          {"reconnections", connector_.reconnections()},
          {"messages_sent", sent.messages_sent},
          {"puts_sent", sent.puts_sent},
          {"bytes_sent", sent.bytes_sent},
          {"messages_received", received.messages_received},
          {"puts_received", received.puts_received},
          {"puts_refused", sent.puts_refused},
          {"puts_dropped", received.puts_dropped},
          {"bytes_received", received.bytes_received},
          {"no_credit", no_credit_},
          {"credits_returned", sent.credits_returned},
          {"puts_copied", sent.puts_copied},
          {"not_exposed", exposures_.not_exposed()},
          {"registration_cache", adapter.registrations().describe()},
          {"failed_peers", recovery_.failed_peers()}};
}

}  // namespace ibcoll::verbs
