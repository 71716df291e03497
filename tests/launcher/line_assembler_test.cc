// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/line_assembler.h"

#include <gtest/gtest.h>

#include <random>

namespace ibcoll::run {
namespace {

std::vector<std::string> pieces(LineAssembler& lines, std::initializer_list<std::string_view> chunks) {
  std::vector<std::string> emitted;
  const auto emit = [&](std::string_view text) { emitted.emplace_back(text); };
  for (const std::string_view chunk : chunks) lines.feed(chunk, emit);
  lines.finish(emit);
  return emitted;
}

TEST(LineAssembler, HoldsALineUntilItsEnd) {
  LineAssembler lines("");
  EXPECT_EQ(pieces(lines, {"ab", "c\nde\nf", "g"}), (std::vector<std::string>{"abc\nde\n", "fg"}));
}

TEST(LineAssembler, TagsEveryLineOnce) {
  LineAssembler lines("[3] ");
  EXPECT_EQ(pieces(lines, {"a", "b\n\nc\n", "d"}), (std::vector<std::string>{"[3] ab\n[3] \n[3] c\n", "[3] d"}));
}

TEST(LineAssembler, LongLinesComeInPieces) {
  LineAssembler lines("[0] ", false, 4);
  EXPECT_EQ(pieces(lines, {"abc", "def", "gh", "i\nj\n"}), (std::vector<std::string>{"[0] abcdef", "ghi\n[0] j\n"}));
}

TEST(LineAssembler, ACarriageReturnEndsALineOnATerminal) {
  using Pieces = std::vector<std::string>;
  LineAssembler plain(""), terminal("", true), tagged("T", true);
  EXPECT_EQ(pieces(plain, {"1 %\r", "2 %\rdone\n"}), (Pieces{"1 %\r2 %\rdone\n"}));
  EXPECT_EQ(pieces(terminal, {"1 %\r", "2 %\rdo", "ne\n"}), (Pieces{"1 %\r", "2 %\r", "done\n"}));
  EXPECT_EQ(pieces(tagged, {"1 %\r", "2 %\rdo", "ne\n"}), (Pieces{"T1 %\r", "T2 %\r", "Tdone\n"}));
}

TEST(LineAssembler, ACarriageReturnAndANewlineAreOneEnd) {
  for (const bool terminal : {false, true}) {
    LineAssembler whole("T", terminal), cut("T", terminal);
    EXPECT_EQ(pieces(whole, {"a\r\nb\r\n"}), (std::vector<std::string>{"Ta\r\nTb\r\n"}));
    std::string joined;
    for (const std::string& piece : pieces(cut, {"a\r", "\nb\r", "\n"})) joined += piece;
    EXPECT_EQ(joined, "Ta\r\nTb\r\n");
  }
}

TEST(LineAssembler, AnyCutGivesTheSameBytes) {
  std::mt19937 random(7);
  for (int run = 0; run < 500; ++run) {
    std::string text;
    for (int i = 0; i < 200; ++i) text += random() % 6 == 0 ? '\n' : static_cast<char>('a' + random() % 26);
    std::string expected;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
      expected += 'T';
      expected += text.substr(begin, end - begin);
      begin = end;
    }
    for (const bool tagged : {true, false}) {
      LineAssembler lines(tagged ? "T" : "", false, 16);
      std::string joined;
      const auto emit = [&](std::string_view piece) {
        EXPECT_FALSE(piece.empty());
        joined += piece;
      };
      for (size_t begin = 0; begin < text.size();) {
        const size_t length = 1 + random() % 30;
        lines.feed(std::string_view(text).substr(begin, length), emit);
        begin += length;
      }
      lines.finish(emit);
      EXPECT_EQ(joined, tagged ? expected : text);
    }
  }
}

}  // namespace
}  // namespace ibcoll::run
