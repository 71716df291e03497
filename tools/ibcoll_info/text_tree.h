// SPDX-License-Identifier: BSD-3-Clause
// JSON as indented text for people.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace ibcoll::info {

// One line per value, `name: value`, two spaces deeper per level; a list of small values on one line, runs of numbers
// as "0-3,8". Empty texts, objects and lists say "none".
std::string text_tree(const nlohmann::json& value, int indent);

}  // namespace ibcoll::info
