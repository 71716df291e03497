// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/collectives/framework/registry.h"

#include <vector>

namespace ibcoll {

// runtime/CMakeLists.txt lists the files.
#define ALGORITHM(folder, name)      \
  namespace folder::name {           \
  std::span<const Algorithm> rows(); \
  }
#include "algorithm_files.inc"
#undef ALGORITHM

namespace {

std::vector<const Algorithm*> all_rows() {
  std::vector<const Algorithm*> all;
#define ALGORITHM(folder, name) \
  for (const Algorithm& row : folder::name::rows()) all.push_back(&row);
#include "algorithm_files.inc"
#undef ALGORITHM
  return all;
}

}  // namespace

std::span<const Algorithm* const> algorithms() {
  static const auto& all = *new std::vector<const Algorithm*>(all_rows());
  return all;
}

const Algorithm* find_algorithm(ibcoll_collective_t collective, std::string_view name) {
  for (const Algorithm* const algorithm : algorithms())
    if (algorithm->collective == collective && algorithm->name == name) return algorithm;
  return nullptr;
}

}  // namespace ibcoll
