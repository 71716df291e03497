// SPDX-License-Identifier: BSD-3-Clause
// The C interface: collectives, algorithms, what selection would choose, and the state as JSON.

#include "runtime/api/handles.h"
#include "runtime/api/taken.h"
#include "runtime/base/build_info.h"
#include "runtime/base/catalog.h"
#include "runtime/collectives/framework/registry.h"
#include "runtime/machine/descriptors.h"

using namespace ibcoll;
using namespace ibcoll::api;

extern "C" {

const char* ibcoll_collective_name(ibcoll_collective_t collective) {
  const Collective* const row = find_collective(collective);
  return row ? row->name : nullptr;
}

const char* ibcoll_algorithm_name(ibcoll_collective_t collective, int index) {
  for (const Algorithm* const a : algorithms())
    if (a->collective == collective && index-- == 0) return a->name;
  return nullptr;
}

const char* ibcoll_algorithm_about(ibcoll_collective_t collective, const char* algorithm) {
  const Algorithm* const a = algorithm ? find_algorithm(collective, algorithm) : nullptr;
  return a ? a->about : nullptr;
}

ibcoll_status_t ibcoll_explain(ibcoll_team_t team, const ibcoll_collective_args_t* args, char* text, size_t bytes) {
  return guarded([&] {
    if (!team || !args || !text)
      return refuse(IBCOLL_ERR_INVALID_ARGUMENT, "ibcoll_explain: team, args or text is NULL");
    const auto known = taken_args(*args);
    if (!known.ok()) return report(known.status());
    args = &known.value();
    TeamHandle& t = *handle(team);
    const Guard guard = t.context->enter();
    const Result<std::string> decision = t.context->calls().explain(t, *args);
    if (!decision.ok()) return report(decision.status());
    hand_out(decision.value(), text, bytes);
    return IBCOLL_OK;
  });
}

static constexpr char kNoMemory[] = "{}";  // in place of the state

size_t ibcoll_info_json(ibcoll_context_t context, char* text, size_t bytes) {
  if (closed() || UserOperation::runs()) return hand_out("", text, bytes);
  const HighDescriptors high;
  if (context) {
    const Guard guard = context->context->enter();
    return hand_out(text_or(kNoMemory, [&] { return context->context->info_json(); }), text, bytes);
  }
  return hand_out(text_or(kNoMemory,
                          [] {
                            const Result<Config> config = Config::load();
                            Json state = {{"build", build_json()}};
                            if (config.ok())
                              state.set("settings", settings_json(config.value()));
                            else
                              state.set("error", config.status().text());
                            return state.dump();
                          }),
                  text, bytes);
}

}  // extern "C"
