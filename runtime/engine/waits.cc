// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/engine/waits.h"

#include <fmt/format.h>

#include <iterator>

#include "runtime/engine/exchange.h"
#include "runtime/engine/team.h"

namespace ibcoll {
namespace {

using Ask = void (*)(void* to, int rank);

// "2,5" : the peers that `is_one` holds for.
template <typename IsOne>
std::string peers(const Exchange& x, IsOne is_one) {
  std::string ranks;
  for (const Channel* c = x.state().first(); c; c = c->next_peer)
    if (is_one(*c)) ranks += fmt::format("{}{}", ranks.empty() ? "" : ",", c->peer);
  return ranks.empty() ? "?" : ranks;
}

std::string describe_data(const Exchange& x, const Wait&) {
  return fmt::format("waits for data of ranks {} {}",
                     peers(x, [](const Channel& c) { return c.in.announced.head != nullptr; }),
                     x.incoming().describe_landed());
}

// All with messages under way.
void ask_all(const Exchange& x, const Wait&, Ask ask, void* to) {
  for (const Channel* c = x.state().first(); c; c = c->next_peer)
    if (c->in.announced.head || c->out.puts.head) ask(to, c->peer);
}
void ask_peer(const Exchange&, const Wait& wait, Ask ask, void* to) { ask(to, wait.peer); }
void ends_nothing(Exchange&, const Wait&, int) {}

// ---------------------------------------------------------------- messages

bool always(Exchange&, const Wait&) { return true; }
std::string describe_running(const Exchange&, const Wait&) { return "is about to run"; }
void ask_none(const Exchange&, const Wait&, Ask, void*) {}

bool ready(Exchange& x, const Wait& wait) {
  if (wait.value == 0 || x.state().eager(wait.value)) return true;
  const Channel* const c = x.state().find(wait.peer);
  return c && c->out.advertisements.head && !c->out.puts.head;
}
std::string describe_ready(const Exchange&, const Wait& wait) {
  return fmt::format("waits for rank {} to arrive, to send it {} bytes", wait.peer, wait.value);
}
void receiver_ended(Exchange& x, const Wait& wait, int peer) {
  if (peer == wait.peer && !rule_of(wait).satisfied(x, wait))
    x.state().mismatch(peer, 0, wait.value, "bytes of a message to it");
}

bool has_arrival(Exchange& x, const Wait&) { return x.incoming().has_arrival(); }
std::string describe_arrival(const Exchange& x, const Wait&) {
  return fmt::format("waits for an arrival among ranks {} {}",
                     peers(x, [](const Channel& c) { return c.service.wanted && !c.service.arrived; }),
                     x.incoming().describe_landed());
}
void ask_late(const Exchange& x, const Wait&, Ask ask, void* to) {
  for (const Channel* c = x.state().first(); c; c = c->next_peer)
    if (c->in.announced.head || c->out.puts.head || (c->service.wanted && !c->service.arrived)) ask(to, c->peer);
}
void late_peer_ended(Exchange& x, const Wait& wait, int peer) {
  const Channel* const c = x.state().find(peer);
  if (!rule_of(wait).satisfied(x, wait) && c && c->service.wanted && !c->service.arrived)
    x.state().mismatch(peer, 0, c->service.bytes, "bytes of a message to it");
}

bool all_landed(Exchange& x, const Wait&) { return x.incoming().all_landed(); }
bool has_landing(Exchange& x, const Wait&) { return x.incoming().has_landing(); }
// Nothing is announced during the wait.
bool landed_from(Exchange& x, const Wait& wait) {
  const Channel* const c = x.state().find(wait.peer);
  return !c || c->in.bytes_landed + wait.value >= c->in.bytes_announced;
}
uint64_t awaited_bytes(const Exchange& x, const Wait& wait) {
  const Channel* const c = x.state().find(wait.peer);
  return c ? c->in.bytes_announced - wait.value : 0;
}
std::string describe_sender(const Exchange& x, const Wait& wait) {
  const Channel* const c = x.state().find(wait.peer);
  return fmt::format("waits for data of rank {} ({} of {} bytes landed)", wait.peer, c ? c->in.bytes_landed : 0,
                     awaited_bytes(x, wait));
}
void sender_ended(Exchange& x, const Wait& wait, int peer) {
  if (peer == wait.peer && !rule_of(wait).satisfied(x, wait))
    x.state().mismatch(peer, 0, awaited_bytes(x, wait), "bytes from it");
}

bool flushed(Exchange& x, const Wait& wait) { return x.outgoing().unflushed() <= wait.value; }
std::string describe_flush(const Exchange& x, const Wait&) {
  return fmt::format("waits to send its data to ranks {} {}",
                     peers(x, [](const Channel& c) { return c.out.puts.head != nullptr; }),
                     x.incoming().describe_landed());
}

bool passed(Exchange& x, const Wait& wait) { return x.team().engine().passes() >= wait.value; }
int no_bell(const Exchange&, const Wait&) { return Exchange::kNoBell; }

// ---------------------------------------------------------------- the node window

// Data of other nodes are awaited by the leader of this node.
void ask_node(const Exchange& x, const Wait&, Ask ask, void* to) {
  for (int local = 0; local < x.node().window().size(); ++local)
    if (local != x.node().window().rank()) ask(to, x.node().team_rank_of(local));
}

std::string describe_step(const Exchange& x, const Wait&) {
  return fmt::format("waits for the ranks of its node to leave step {} of the node window",
                     x.node().window().steps().step());
}

// The step begins, or never will.
template <bool (WindowSteps::*kTry)(uint64_t) noexcept>
bool begins(Exchange& x, const Wait& wait) {
  return x.node().may_use_window() && ((x.node().window().steps().*kTry)(wait.value) || x.node().no_memory_for_step());
}

int step_bell(const Exchange& x, const Wait&) {
  if (!x.node().may_use_window()) return Exchange::kEarlierCollective;
  return x.node().window().memory().has_lines() ? x.node().window().bells().of(x.node().window().steps().lagging())
                                                : Exchange::kNoBell;
}

void step_ended(Exchange& x, const Wait&, int peer) {
  const int local = x.node().local_of(peer);
  if (local >= 0 && x.node().may_use_window() && x.node().window().steps().holds_back(local)) x.node().other_call(peer);
}

// The local rank that a wait for all of them is for just now; the own rank where all have published.
int first_lagging(const Exchange& x) {
  NodeWindow& window = x.node().window();
  int local = window.next(window.rank());
  while (local != window.rank() && window.published(local, NodeWindow::kWhole)) local = window.next(local);
  return local;
}

std::string describe_published(const Exchange& x, const Wait& wait) {
  return fmt::format("waits for data of rank {} in step {} of the node window",
                     x.node().team_rank_of(wait.peer < 0 ? first_lagging(x) : wait.peer),
                     x.node().window().steps().step());
}

void publisher_ended(Exchange& x, const Wait& wait, int peer) {
  const int local = x.node().local_of(peer);
  if (local >= 0 && (wait.peer < 0 || wait.peer == local) && !x.node().window().published(local, wait.value))
    x.node().other_call(peer);
}

// The wait, for parts, is for some of a local rank that it has not published.
bool lacks_part(const Exchange& x, const Wait& wait, int local) {
  const uint32_t parts = wait.parts()[local];
  return parts > 0 && !x.node().window().published(local, parts);
}

// The first local rank for which that is so; the own rank: none.
int first_lacking(const Exchange& x, const Wait& wait) {
  NodeWindow& window = x.node().window();
  int local = window.next(window.rank());
  while (local != window.rank() && !lacks_part(x, wait, local)) local = window.next(local);
  return local;
}

bool published(Exchange& x, const Wait& wait) { return x.node().peer_published(wait.peer, wait.value); }
int publisher_bell(const Exchange& x, const Wait& wait) { return x.node().window().bells().of(wait.peer); }

bool all_published(Exchange& x, const Wait& wait) {
  const NodeWindow& window = x.node().window();
  for (int local = window.next(window.rank()); local != window.rank(); local = window.next(local))
    if (!x.node().peer_published(local, wait.value)) return false;
  return true;
}
int lagging_bell(const Exchange& x, const Wait&) {
  const int local = first_lagging(x);
  return local != x.node().window().rank() ? x.node().window().bells().of(local) : Exchange::kNoBell;
}

bool part_or_landing(Exchange& x, const Wait& wait) {
  return x.incoming().has_landing() || x.node().peer_with_part(wait.parts()) >= 0;
}
std::string describe_part(const Exchange& x, const Wait& wait) {
  const int lacking = first_lacking(x, wait);
  if (!x.incoming().all_landed() || lacking == x.node().window().rank()) return describe_data(x, wait);
  return fmt::format("waits for data of rank {} in step {} of the node window", x.node().team_rank_of(lacking),
                     x.node().window().steps().step());
}
void ask_for_parts(const Exchange& x, const Wait& wait, Ask ask, void* to) {
  ask_all(x, wait, ask, to);
  for (int local = 0; local < x.node().window().size(); ++local)
    if (lacks_part(x, wait, local)) ask(to, x.node().team_rank_of(local));
}
void part_publisher_ended(Exchange& x, const Wait& wait, int peer) {
  const int local = x.node().local_of(peer);
  if (local >= 0 && lacks_part(x, wait, local)) x.node().other_call(peer);
}
int part_bell(const Exchange& x, const Wait& wait) {
  const int lacking = first_lacking(x, wait);
  return lacking != x.node().window().rank() ? x.node().window().bells().of(lacking) : Exchange::kNoBell;
}

}  // namespace

constinit const WaitRule kWaitRules[] = {
    /* kNone */ {always, describe_running, ask_none, ends_nothing, nullptr},
    /* kReady */ {ready, describe_ready, ask_peer, receiver_ended, nullptr},
    /* kArrival */ {has_arrival, describe_arrival, ask_late, late_peer_ended, nullptr},
    /* kReceived */ {all_landed, describe_data, ask_all, ends_nothing, nullptr},
    /* kReceivedFrom */ {landed_from, describe_sender, ask_peer, sender_ended, nullptr},
    /* kLanding */ {has_landing, describe_data, ask_all, ends_nothing, nullptr},
    /* kFlushed */ {flushed, describe_flush, ask_all, ends_nothing, nullptr},
    /* kPassed */ {passed, describe_running, ask_none, ends_nothing, no_bell},
    /* kStep */ {begins<&WindowSteps::try_next>, describe_step, ask_node, step_ended, step_bell},
    /* kSoleStep */ {begins<&WindowSteps::try_next_sole>, describe_step, ask_node, step_ended, step_bell},
    /* kOwnStep */ {begins<&WindowSteps::try_next_own>, describe_step, ask_node, step_ended, step_bell},
    /* kPublished */ {published, describe_published, ask_node, publisher_ended, publisher_bell},
    /* kAllPublished */ {all_published, describe_published, ask_node, publisher_ended, lagging_bell},
    /* kPartOrLanding */ {part_or_landing, describe_part, ask_for_parts, part_publisher_ended, part_bell}};
static_assert(std::size(kWaitRules) == static_cast<size_t>(WaitKind::kPartOrLanding) + 1);

}  // namespace ibcoll
