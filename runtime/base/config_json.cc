// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/base/config.h"
#include "runtime/base/config_values.h"
#include "runtime/base/json.h"

namespace ibcoll {
namespace {

const char* kind_name(Setting::Kind kind) {
  switch (kind) {
    case Setting::Kind::kText:
      return "text";
    case Setting::Kind::kChoice:
      return "choice";
    case Setting::Kind::kInteger:
      return "integer";
    case Setting::Kind::kBytes:
      return "bytes";
    case Setting::Kind::kSeconds:
      return "seconds";
    case Setting::Kind::kBoolean:
      return "boolean";
    case Setting::Kind::kAlgorithm:
      return "algorithm";
    case Setting::Kind::kGid:
      return "gid";
    case Setting::Kind::kTransports:
      return "transports";
  }
  return "";
}

}  // namespace

Json settings_json(const Config& config) {
  Json settings = Json::list();
  for (const Setting& setting : Config::settings()) {
    const Config::Value& value = config.value(setting.name);
    settings.push_back({{"name", setting.name},
                        {"kind", kind_name(setting.kind)},
                        {"default", setting.fallback},
                        {"value", value.text},
                        {"origin", value.origin},
                        {"allowed", allowed_text(setting)},
                        {"ranks", setting.ranks == Setting::Ranks::kAgree ? "agree" : "may differ"},
                        {"meaning", setting.meaning}});
  }
  return settings;
}

}  // namespace ibcoll
