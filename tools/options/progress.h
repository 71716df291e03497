// SPDX-License-Identifier: BSD-3-Clause
// One line on a terminal that says how far a long run is. A thread of its own writes it once a second: nothing is added
// to what is timed, and the time goes on where a call hangs.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace ibcoll {

class ProgressLine {
 public:
  // `shown`: by this rank, where standard error leads to a terminal, also through ibcoll_run.
  explicit ProgressLine(bool shown);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine();

  // Sets the text to show from now on; nothing in the first second of the run.
  void show(std::string text);
  // Takes the line off the terminal, for others to write there.
  void clear();

 private:
  void run();
  void erase();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;
  bool visible_ = false, ending_ = false;
  size_t columns_ = 0;  // of the terminal; 0: there is none
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::thread thread_;  // none: nothing is shown
};

}  // namespace ibcoll
