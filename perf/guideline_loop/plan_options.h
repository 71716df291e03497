// SPDX-License-Identifier: BSD-3-Clause
// The command line of the programs that perf/guidelines starts.
#pragma once

#include <CLI/CLI.hpp>
#include <cmath>

#include "perf/guideline_loop/guideline_loop.h"

namespace ibcoll::perf {

inline void add_plan_options(CLI::App& app, GuidelinePlan& plan) {
  const CLI::Validator of_doubles(
      [](const std::string& text) {
        return std::strtoull(text.c_str(), nullptr, 10) % sizeof(double) == 0 ? "" : "not a multiple of 8: " + text;
      },
      "BYTES");
  app.add_option("--least", plan.least_bytes, "bytes of the smallest block")
      ->check(CLI::Range(8, 1 << 24) & of_doubles);
  app.add_option("--most", plan.most_bytes, "bytes of the largest block")->check(CLI::Range(8, 1 << 24) & of_doubles);
  app.add_option("--factor", plan.factor, "from one size to the next")->check(CLI::Range(2, 1 << 20));
  app.add_option("--repetitions", plan.repetitions, "of each call and its mock-up")->check(CLI::Range(1, 10000));
  app.add_option("--seconds", plan.seconds, "for all repetitions of one side")->check(CLI::Range(1e-6, 3600.0));
}

}  // namespace ibcoll::perf
