// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ibcoll::run {

// Turns the chunks that a pipe yields into whole lines, so that lines of several ranks can be written to one place
// without being torn. Memory is bounded: a line longer than the limit is handed on in pieces. For a terminal a carriage
// return ends a line as well: progress that is overwritten again and again.
class LineAssembler {
 public:
  static constexpr size_t kLimit = size_t{1} << 20;

  // `tag` is put before each line; "" for none.
  explicit LineAssembler(std::string tag, bool terminal = false, size_t limit = kLimit)
      : tag_(std::move(tag)), ends_(terminal ? "\n\r" : "\n"), limit_(limit) {}

  // Calls emit(std::string_view) zero or more times with text that ends at a line's end, or, for a line above the
  // limit, with a piece of it. The view is valid during the call.
  template <typename Emit>
  void feed(std::string_view data, Emit&& emit) {
    // "\r\n" in two chunks is one end.
    if (after_return_ && data.starts_with('\n')) inside_line_ = true;
    if (!data.empty()) after_return_ = ends_.size() > 1 && data.back() == '\r';
    const size_t last = data.find_last_of(ends_);
    if (last != std::string_view::npos) {
      emit_lines(data.substr(0, last + 1), emit);
      data.remove_prefix(last + 1);
    }
    rest_ += data;
    if (rest_.size() > limit_) flush(emit);
  }

  // The end of the stream: what is left of a last line without a newline.
  template <typename Emit>
  void finish(Emit&& emit) {
    if (!rest_.empty()) flush(emit);
  }

 private:
  // `lines` ends with a line's end.
  template <typename Emit>
  void emit_lines(std::string_view lines, Emit&& emit) {
    if (tag_.empty() && rest_.empty()) {  // the fast path: no copy
      inside_line_ = false;
      emit(lines);
      return;
    }
    if (tag_.empty()) {
      rest_ += lines;
    } else {
      add_tagged(lines);
    }
    emit(std::string_view(rest_));
    rest_.clear();
    inside_line_ = false;
  }

  // Hands on what there is of an unfinished line.
  template <typename Emit>
  void flush(Emit&& emit) {
    if (!tag_.empty() && !inside_line_) rest_.insert(0, tag_);
    emit(std::string_view(rest_));
    rest_.clear();
    inside_line_ = true;
  }

  // Completes the line in rest_ with the first of `lines` and appends the others, each with its tag.
  void add_tagged(std::string_view lines);

  std::string tag_;
  std::string_view ends_;  // the characters that end a line
  size_t limit_;
  std::string rest_;           // a line's beginning, without its tag; shorter than the limit
  bool inside_line_ = false;   // a piece of the current line was handed on already, with the tag
  bool after_return_ = false;  // the last chunk ended with a carriage return that ended a line
};

}  // namespace ibcoll::run
