// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ibcoll::run {

// How a line ends on a terminal that the next one is to overwrite, progress for instance: erase to the end of the line,
// carriage return. Any other carriage return is a character like others.
inline constexpr std::string_view kPassingEnd = "\033[K\r";

// Joins the chunks that a pipe yields to whole lines, so that the lines of several ranks can be written to one file
// without being mixed. Memory is bounded: a line longer than the limit is passed on in parts. A line ends with a
// newline, for a terminal with kPassingEnd as well.
class LineAssembler {
 public:
  static constexpr size_t kLimit = size_t{1} << 20;

  // `tag` is put before each line; "" for none.
  explicit LineAssembler(std::string tag, bool terminal = false, size_t limit = kLimit)
      : tag_(std::move(tag)), terminal_(terminal), limit_(limit) {}

  // Calls emit(std::string_view) zero or more times with text that ends at a line's end, or, for a line above the
  // limit, with a part of it. The view is valid during the call.
  template <typename Emit>
  void feed(std::string_view data, Emit&& emit) {
    const std::string joined = with_cut_end(data);
    if (!joined.empty()) data = joined;
    if (const size_t end = end_of_last_line(data); end > 0) {
      emit_lines(data.substr(0, end), emit);
      data.remove_prefix(end);
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

  // Passes on the beginning of an unfinished line.
  template <typename Emit>
  void flush(Emit&& emit) {
    if (!tag_.empty() && !inside_line_) rest_.insert(0, tag_);
    emit(std::string_view(rest_));
    rest_.clear();
    inside_line_ = true;
  }

  // The end of rest_ that may begin a kPassingEnd, removed from rest_, and `data` after it; "": there is none.
  std::string with_cut_end(std::string_view data);
  // The position after the last line's end; 0: none is in `text`.
  size_t end_of_last_line(std::string_view text) const;
  // Completes the line in rest_ with the first of `lines` and appends the others, each with its tag.
  void add_tagged(std::string_view lines);

  std::string tag_;
  bool terminal_;
  size_t limit_;
  std::string rest_;          // a line's beginning, without its tag; shorter than the limit
  bool inside_line_ = false;  // a part of the current line was passed on already, with the tag
};

}  // namespace ibcoll::run
