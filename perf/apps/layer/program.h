// SPDX-License-Identifier: BSD-3-Clause
// The frame of an application: joins the job, reads the options, runs, reports.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "perf/apps/layer/job.h"

namespace apps {

class Application {
 public:
  virtual ~Application() = default;
  virtual const char* about() const = 0;
  virtual void add_options(CLI::App& options) = 0;
  // Collective: reads what is needed, calls job.begin(), works, calls job.end(), checks the result. False on all ranks:
  // it failed, and the failure was reported (AppJob::agree).
  virtual bool run(AppJob& job) = 0;
  // One line: the problem, and that the result has been checked.
  virtual std::string title() const = 0;
  // Further lines for a person. Collective.
  virtual std::string details(AppJob&) { return {}; }
};

// For main(): the exit status.
int run_application(Application& application, int argc, char** argv);

}  // namespace apps
