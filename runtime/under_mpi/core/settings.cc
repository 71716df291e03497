// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/under_mpi/core/settings.h"

#include <fmt/format.h>

#include <cstdlib>

namespace ibcoll::under_mpi {

namespace {

constexpr uint32_t kAll = (1u << kCollectives) - 1;

Settings& current() {
  static auto& settings = *new Settings(read_settings());
  return settings;
}

// "" where it is not set.
std::string_view variable(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? text : "";
}

std::string allowed_names() {
  std::string names;
  for (int i = 0; i < kCollectives; ++i) {
    names += fmt::format("{}{}", i == 0 ? "" : ", ", name_of(static_cast<Collective>(i)));
  }
  return names;
}

}  // namespace

bool parse_collectives(std::string_view text, uint32_t* collectives, std::string* error) {
  const bool all_but = text.starts_with('^');
  std::string_view rest = all_but ? text.substr(1) : text;
  if (rest == "all") {
    *collectives = all_but ? 0 : kAll;
    return true;
  }
  uint32_t named = 0;
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view name = rest.substr(0, comma);
    const auto collective = collective_of(name);
    if (!collective) {
      *error = fmt::format(
          "IBCOLL_MPI_COLLECTIVES={}: there is no collective '{}'; allowed are all, a list separated by commas, or ^ "
          "before a list for all others, of {}",
          text, name, allowed_names());
      return false;
    }
    named |= 1u << static_cast<unsigned>(*collective);
    rest = comma == std::string_view::npos ? "" : rest.substr(comma + 1);
  }
  *collectives = all_but ? kAll & ~named : named;
  return true;
}

Settings read_settings() {
  Settings settings;
  if (const std::string_view value = variable("IBCOLL_MPI"); !value.empty()) {
    if (value == "off") {
      settings.on = false;
    } else if (value != "on") {
      settings.error = fmt::format("IBCOLL_MPI={}: allowed are on and off", value);
    }
  }
  if (const std::string_view value = variable("IBCOLL_MPI_COLLECTIVES"); !value.empty()) {
    parse_collectives(value, &settings.collectives, &settings.error);
  }
  if (const std::string_view value = variable("IBCOLL_MPI_VERBOSE"); !value.empty()) {
    if (value == "0" || value == "1" || value == "2") {
      settings.verbose = value[0] - '0';
    } else {
      settings.error = fmt::format("IBCOLL_MPI_VERBOSE={}: allowed are 0, 1 and 2", value);
    }
  }
  return settings;
}

const Settings& settings() { return current(); }

void use_settings(const Settings& settings) { current() = settings; }

}  // namespace ibcoll::under_mpi
