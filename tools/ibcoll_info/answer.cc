// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_info/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/base/catalog.h"
#include "tools/ibcoll_info/rank_facts.h"
#include "tools/ibcoll_info/selection.h"
#include "tools/ibcoll_info/text_tree.h"

namespace ibcoll::info {
namespace {

using nlohmann::json;

json state_of(ibcoll_context_t context) {
  std::string text(ibcoll_info_json(context, nullptr, 0) + 4096, '\0');  // counters may grow between the calls
  text.resize(std::min(ibcoll_info_json(context, text.data(), text.size()), text.size() - 1));
  return json::parse(text);
}

json section(const json& state, const char* name) { return state.contains(name) ? state[name] : json::object(); }

std::string version_text(const json& state) {
  const json build = section(state, "build");
  std::string text = fmt::format("ibcoll version {}\n", ibcoll_version_string());
  return text + text_tree(build, 2);
}

std::string settings_text(const json& state) {
  std::string text = "Settings (environment, else configuration file, else default)\n";
  for (const json& setting : section(state, "settings")) {
    const auto field = [&](const char* name) { return setting.value(name, std::string()); };
    const auto shown = [](const std::string& value) { return value.empty() ? std::string("''") : value; };
    text += fmt::format("  {} = {}", field("name"), shown(field("value")));
    text += field("origin") == "default"
                ? "  (default)\n"
                : fmt::format("  ({}; default {})\n", field("origin"), shown(field("default")));
    text += fmt::format("      {}\n      {}\n", field("meaning"), field("allowed"));
  }
  return text;
}

std::string devices_text(const json& state, const json& ranks) {
  std::string text;
  for (const char* name : {"bootstrap", "topology", "transports"}) {
    if (state.contains(name)) text += fmt::format("{}\n", name) + text_tree(state[name], 2);
  }
  return text + "ranks\n" + facts_text(ranks);
}

std::vector<ibcoll_collective_t> asked(const Options& options) {
  std::vector<ibcoll_collective_t> list;
  for (int i = 0; i < kCollectives; ++i) {
    const auto collective = static_cast<ibcoll_collective_t>(i);
    if (options.collective.empty() || options.collective == ibcoll_collective_name(collective))
      list.push_back(collective);
  }
  return list;
}

json collectives_json(const Options& options, ibcoll_team_t team) {
  json result = json::object();
  for (const ibcoll_collective_t collective : asked(options)) {
    result[ibcoll_collective_name(collective)] = {
        {"algorithms", algorithms_json(collective)},
        {"selection", selection_json(choices(team, collective, options.min_bytes, options.max_bytes))}};
  }
  return result;
}

std::string collectives_text(const Options& options, ibcoll_team_t team) {
  std::string text;
  for (const ibcoll_collective_t collective : asked(options)) {
    text +=
        fmt::format("{}\n{}  would run, by bytes:\n{}", ibcoll_collective_name(collective), algorithms_text(collective),
                    selection_text(choices(team, collective, options.min_bytes, options.max_bytes)));
  }
  return text;
}

}  // namespace

std::string answer(const Options& options, ibcoll_context_t context, std::string& failure) {
  const ibcoll_team_t team = context == nullptr ? nullptr : ibcoll_team_world(context);
  json ranks = json::array();
  if (team != nullptr && options.devices) (void)gather_facts(team, ranks, failure);
  if (team != nullptr && ibcoll_team_rank(team) != 0) return {};
  const json state = state_of(context);
  if (options.as_json) {
    json document = json::object();
    if (options.version) document["build"] = section(state, "build");
    if (options.settings) document["settings"] = section(state, "settings");
    if (options.devices) {
      for (const char* name : {"bootstrap", "topology", "transports"}) document[name] = section(state, name);
      document["ranks"] = ranks;
    }
    if (options.algorithms && team != nullptr) document["collectives"] = collectives_json(options, team);
    return document.dump(2, ' ', false, json::error_handler_t::replace) + "\n";
  }
  std::string text;
  if (options.version) text += version_text(state);
  if (options.settings) text += settings_text(state);
  if (options.devices) text += devices_text(state, ranks);
  if (options.algorithms && team != nullptr) text += collectives_text(options, team);
  return text;
}

}  // namespace ibcoll::info
