// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/command_words.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace ibcoll::run {
namespace {

using Words = std::vector<std::string>;

// Spellings of Open MPI, MPICH (Hydra), srun and older versions of them. Those with one dash are found by their names
// with two.
const std::map<std::string, Words, std::less<>> kSpellings = {
    {"--np", {"-n"}},
    {"--ntasks", {"-n"}},
    {"-w", {"--host"}},
    {"--hosts", {"--host"}},
    {"--nodelist", {"--host"}},
    {"-f", {"--hostfile"}},
    {"--machinefile", {"--hostfile"}},
    {"--ppn", {"-N"}},
    {"--perhost", {"-N"}},
    {"--npernode", {"-N"}},
    {"--ntasks-per-node", {"-N"}},
    {"--wd", {"--wdir"}},
    {"-D", {"--wdir"}},
    {"--chdir", {"--wdir"}},
    {"-O", {"--oversubscribe"}},
    {"--overcommit", {"--oversubscribe"}},
    {"--bynode", {"--map-by", "node"}},
    {"--byslot", {"--map-by", "slot"}},
    {"--cpus-per-proc", {"--cpus-per-rank"}},
    {"--cpus-per-task", {"--cpus-per-rank"}},
    {"-l", {"--tag-output"}},
    {"--label", {"--tag-output"}},
};

// `name` as ibcoll_run spells it; unchanged where it is none of these.
Words spelled(const std::string& name, const KindOf& kind_of) {
  if (kind_of(name) != OptionKind::kUnknown) return {name};
  if (const auto found = kSpellings.find(name); found != kSpellings.end()) return found->second;
  if (name.starts_with("--") || name.size() < 3) return {name};
  // "-np": before "-n" with "p" attached to it.
  const std::string two_dashes = "-" + name;
  if (kind_of(two_dashes) != OptionKind::kUnknown) return {two_dashes};
  if (const auto found = kSpellings.find(two_dashes); found != kSpellings.end()) return found->second;
  return {name};
}

// Takes the options off `words`.
Words take_options(std::span<const char* const>& words, const KindOf& kind_of) {
  Words options;
  const auto next = [&words] {
    const std::string word = words.front();
    words = words.subspan(1);
    return word;
  };
  while (!words.empty() && std::string_view(words.front()).starts_with('-') &&
         words.front() != std::string_view("--")) {
    const std::string word = next();
    const size_t equals = word.find('=');
    Words known = spelled(word.substr(0, equals), kind_of);
    const bool takes_value = kind_of(known.back()) == OptionKind::kValue;
    if (equals != std::string::npos && takes_value && equals + 1 < word.size()) {
      known.push_back(word.substr(equals + 1));
    } else if (equals != std::string::npos) {
      known.back() += word.substr(equals);  // a mistake
    }
    options.insert(options.end(), known.begin(), known.end());
    if (equals == std::string::npos && takes_value && !words.empty()) options.push_back(next());
  }
  return options;
}

}  // namespace

Result<std::vector<CommandPart>> split_command(std::span<const char* const> words, const KindOf& kind_of) {
  std::vector<CommandPart> parts;
  for (;;) {
    CommandPart& part = parts.emplace_back();
    part.options = take_options(words, kind_of);
    const bool takes_all = !words.empty() && words.front() == std::string_view("--");
    if (takes_all) words = words.subspan(1);
    const auto end = takes_all ? words.end() : std::find(words.begin(), words.end(), std::string_view(":"));
    part.program.assign(words.begin(), end);
    if (end == words.end()) return parts;
    words = words.subspan(static_cast<size_t>(end - words.begin()) + 1);
    if (words.empty() || part.program.empty()) {
      return error(IBCOLL_ERR_INVALID_ARGUMENT,
                   "':' separates programs, as in -n 1 ./a : -n 2 ./b; behind -- it is an argument");
    }
  }
}

}  // namespace ibcoll::run
