// SPDX-License-Identifier: BSD-3-Clause
#include "tools/options/help.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace ibcoll {
namespace {

constexpr size_t kColumns = 80, kAbout = 28;  // of a line; where the text about an option begins

class Help : public CLI::Formatter {
 public:
  explicit Help(std::string examples) : examples_(std::move(examples)) {}

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    std::string text = fill(make_description(app)) + "\nExamples:\n" + examples_ + "\n" + make_usage(app, name);
    text += make_positionals(app) + make_groups(app, mode);
    const std::string footer = make_footer(app);
    return footer.empty() ? text : text + "\n" + footer;
  }

  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    const std::string blanks(kAbout, ' ');
    std::string text = fill("  " + make_option_name(option, is_positional) + make_option_opts(option), 6);
    const size_t last = text.size() - (text.rfind('\n') + 1);  // npos + 1 is 0
    const std::string about = fill(blanks + make_option_desc(option), kAbout);
    if (last + 2 > kAbout || text.find('\n') != std::string::npos) return text + "\n" + about + "\n";
    return text + about.substr(last) + "\n";
  }

 private:
  std::string examples_;
};

// How many letters are inserted, left out, changed, or swapped with their neighbour.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> before, row(b.size() + 1), next(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        next[j] = std::min(next[j], before[j - 2] + 1);
    }
    before = std::exchange(row, next);
  }
  return row.back();
}

}  // namespace

void give_help(CLI::App& app, std::string examples) { app.formatter(std::make_shared<Help>(std::move(examples))); }

std::string fill(std::string_view text, size_t indent) {
  std::string filled;
  size_t column = 0;
  while (!text.empty()) {
    // A word, with the blanks before it; a list without blanks may end after a comma.
    const size_t begin = text.find_first_not_of(' ');
    if (begin == std::string_view::npos) break;
    const size_t end = std::min(text.find_first_of(" \n,", begin + 1), text.size() - 1);
    const size_t length = text[end] == ' ' || text[end] == '\n' ? end : end + 1;
    if (text[begin] == '\n') {
      filled += '\n';
      column = 0;
      text.remove_prefix(begin + 1);
      continue;
    }
    if (column > indent && column + length > kColumns) {
      filled += '\n' + std::string(indent, ' ') + std::string(text.substr(begin, length - begin));
      column = indent + length - begin;
    } else {
      filled += text.substr(0, length);
      column += length;
    }
    text.remove_prefix(length);
  }
  return filled;
}

std::string did_you_mean(const CLI::App& app, std::string_view word) {
  word = word.substr(0, word.find('='));
  if (!word.starts_with("--") || word.size() < 4) return {};
  std::string nearest;
  size_t least = 3;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // not in --help either
    for (const std::string& name : option->get_lnames()) {
      const std::string full = "--" + name;
      const size_t away = full.starts_with(word) ? 1 : distance(word, full);
      if (away < least) least = away, nearest = full;
    }
  }
  return nearest.empty() ? std::string() : "; did you mean " + nearest + "?";
}

}  // namespace ibcoll
