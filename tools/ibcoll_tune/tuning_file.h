// SPDX-License-Identifier: BSD-3-Clause
// The file that later jobs read (runtime/context/tuning.h), as ibcoll_tune writes it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/base/unique_fd.h"

namespace ibcoll::tune {

// Functions throw std::runtime_error: the text names the file.
class TuningFile {
 public:
  // `job`: version, machine, transport and layout, which the file is for. A file that is damaged or of another job is
  // refused, and stays as it is. Its folder must exist, or be `in_cache`: then it is created.
  TuningFile(std::string path, bool in_cache, nlohmann::json job);

  // Adds the choices to those in the file; one for the same class is replaced. Several jobs may do so at once: each waits
  // until the others have written. The file is never seen in parts.
  void merge(const std::vector<nlohmann::json>& choices) const;

 private:
  nlohmann::json read() const;
  UniqueFd lock() const;
  void write(const std::string& text) const;

  std::string path_;
  nlohmann::json job_;
};

}  // namespace ibcoll::tune
