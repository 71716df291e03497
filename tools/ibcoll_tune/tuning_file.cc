// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_tune/tuning_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "tools/options/output_file.h"

namespace ibcoll::tune {
namespace {

using nlohmann::json;

constexpr int kFormat = 1;                    // that runtime/context/tuning.h reads
constexpr std::chrono::seconds kForLock{30};  // another job has it for some milliseconds

[[noreturn]] void fail(const char* what, const std::string& path) {
  throw std::runtime_error(fmt::format("{} {}: {}", what, path, std::strerror(errno)));
}

// Two choices are for the same calls.
bool same_class(json a, json b) {
  for (json* const one : {&a, &b})
    for (const char* const result : {"algorithm", "trials", "us"}) one->erase(result);
  return a == b;
}

}  // namespace

TuningFile::TuningFile(std::string path, bool in_cache, json job) : path_(std::move(path)), job_(std::move(job)) {
  const std::filesystem::path folder = std::filesystem::absolute(path_).parent_path();
  std::error_code problem;
  if (in_cache) std::filesystem::create_directories(folder, problem);
  if (!std::filesystem::is_directory(folder, problem))
    throw std::runtime_error(fmt::format("{}: the folder {} does not exist", path_, folder.string()));
  if (::access(folder.c_str(), W_OK) != 0) fail("cannot write to", folder);
  (void)read();
}

// The choices in it. A job that reads the file checks all of it; here it is enough that nothing is lost.
json TuningFile::read() const {
  if (!std::filesystem::exists(path_)) return json::array();
  std::ifstream file(path_);
  std::stringstream text;
  text << file.rdbuf();
  if (!file) fail("cannot read", path_);
  const json whole = json::parse(text.str(), nullptr, /*allow_exceptions=*/false);
  const bool damaged = !whole.is_object() || whole.value("ibcoll_tuning", json()) != kFormat ||
                       !whole.contains("choices") || !whole["choices"].is_array();
  const auto refuse = [this](const std::string& why) {
    throw std::runtime_error(fmt::format("{} {}; delete it, or set IBCOLL_TUNING to another file", path_, why));
  };
  if (damaged) refuse("is damaged");
  for (const auto& [name, here] : job_.items())
    if (whole.value(name, json()) != here)
      refuse(fmt::format("is of another {}: {}, here {}", name, whole.value(name, json()).dump(), here.dump()));
  return whole["choices"];
}

// A lock of its own, because the file is replaced. It works over NFS as well, and ends with this process.
UniqueFd TuningFile::lock() const {
  const std::string name = path_ + ".lock";
  UniqueFd file(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!file) fail("cannot open", name);
  struct flock whole {};
  whole.l_type = F_WRLCK;
  const auto end = std::chrono::steady_clock::now() + kForLock;
  while (::fcntl(file.get(), F_OFD_SETLK, &whole) != 0) {
    if (errno != EAGAIN && errno != EACCES && errno != EINTR) fail("cannot lock", name);
    if (std::chrono::steady_clock::now() > end)
      throw std::runtime_error(fmt::format("{}: another process has had this lock for {} s", name, kForLock.count()));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return file;
}

void TuningFile::merge(const std::vector<json>& choices) const {
  const UniqueFd locked = lock();
  json kept = json::array();
  for (const json& known : read()) {
    bool replaced = false;
    for (const json& choice : choices) replaced = replaced || same_class(known, choice);
    if (!replaced) kept.push_back(known);
  }
  for (const json& choice : choices) kept.push_back(choice);
  json whole = job_;
  whole["ibcoll_tuning"] = kFormat;
  whole["choices"] = std::move(kept);
  write(whole.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
}

void TuningFile::write(const std::string& text) const {
  OutputFile file;
  std::string problem = file.open(path_);
  if (problem.empty()) {
    file.write(text);
    problem = file.commit();
  }
  if (!problem.empty()) throw std::runtime_error(problem);
}

}  // namespace ibcoll::tune
