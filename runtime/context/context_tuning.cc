// SPDX-License-Identifier: BSD-3-Clause
// The tuning file in a job. Rank 0 alone reads it, and sends its text to all ranks, so that all choose alike.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/log.h"
#include "runtime/context/context.h"

namespace ibcoll {

// A problem with the file is logged in one line, and the job continues without it.
void Context::read_tuning_file() {
  identity_ = {ibcoll_version_string(), hardware_identity(), job_.net ? job_.net->name() : "shm",
               fmt::format("{} ranks on {} nodes, {:.3g} a core", size(), job_.node_count, job_.ranks_per_core)};
  tuning_path_ = tuning_path(config_.text("IBCOLL_TUNING"), identity_);
  tuning_state_ = tuning_path_.empty() ? "off" : "there is no such file";
  if (tuning_path_.empty()) return;
  Result<std::string> text = read_tuning(tuning_path_);
  if (!text.ok()) {
    log(LogLevel::kWarning, "timed choices are not used: {} (IBCOLL_TUNING=off turns this warning off)",
        text.status().text());
    tuning_state_ = text.status().text();
    return;
  }
  if (text->empty()) return;
  const Result<Tuning> known = Tuning::parse(text.value(), &identity_);
  tuning_state_ = known.ok() ? fmt::format("{} choices", known->size()) : std::string(known.status().text());
  if (known.ok())
    tuning_text_ = std::move(text.value());
  else
    log(LogLevel::kWarning, "timed choices are not used: {} {}; delete the file, or set IBCOLL_TUNING to another one",
        tuning_path_, known.status().text());
}

Status Context::share_tuning() {
  if (tuning_bytes_ == 0) return {};
  std::vector<std::byte> buffer;
  const Status room = or_fail(*world_, [&]() -> Status {
    buffer.resize(tuning_bytes_);
    return {};
  });
  if (!room.ok()) return room;
  if (rank() == 0)
    std::transform(tuning_text_.begin(), tuning_text_.end(), buffer.begin(),
                   [](char c) { return static_cast<std::byte>(c); });
  Args args;
  args.collective = IBCOLL_BCAST;
  args.bytes = buffer.size();
  args.recv = {buffer.data(), buffer.size(), nullptr, nullptr};
  std::unique_lock<std::mutex> guard = enter();
  if (Status sent = run_own(*world_, args, buffer, guard); !sent.ok()) return sent;
  tuning_text_.assign(reinterpret_cast<const char*>(buffer.data()), buffer.size());
  return or_fail(*world_, [&]() -> Status {
    Result<Tuning> known = Tuning::parse(tuning_text_, nullptr);
    if (!known.ok()) return known.status();
    tuning_ = std::move(known.value());
    tuning_text_.clear();
    return {};
  });
}

Context::Chosen Context::choose(const TeamHandle& team, const Args& args, ibcoll_scheme_t scheme, const Shape& shape,
                                const std::vector<Candidate>& all) const {
  const Chosen predicted{&all.front(), nullptr};
  const bool own_operation = args.reduction.op && args.reduction.op->user_defined();  // each program has its own
  if (all.size() < 2 || tuning_.size() == 0 || args.internal || own_operation || !has_class(args, shape))
    return predicted;
  const Tuning::Entry* const entry = tuning_.find(layout_of(team.shape), class_of(args, scheme, shape));
  if (!entry) return predicted;
  const auto timed = std::find_if(
      all.begin(), all.end(), [entry](const Candidate& one) { return one.choice.algorithm->name == entry->algorithm; });
  return timed == all.end() ? predicted : Chosen{&*timed, entry};
}

}  // namespace ibcoll
