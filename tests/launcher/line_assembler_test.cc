// SPDX-License-Identifier: BSD-3-Clause
#include "tools/ibcoll_run/line_assembler.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace ibcoll::run {
namespace {

std::vector<std::string> parts(LineAssembler& lines, std::initializer_list<std::string_view> chunks) {
  std::vector<std::string> emitted;
  const auto emit = [&](std::string_view text) { emitted.emplace_back(text); };
  for (const std::string_view chunk : chunks) lines.feed(chunk, emit);
  lines.finish(emit);
  return emitted;
}

TEST(LineAssembler, HoldsALineUntilItsEnd) {
  LineAssembler lines("");
  EXPECT_EQ(parts(lines, {"ab", "c\nde\nf", "g"}), (std::vector<std::string>{"abc\nde\n", "fg"}));
}

TEST(LineAssembler, TagsEveryLineOnce) {
  LineAssembler lines("[3] ");
  EXPECT_EQ(parts(lines, {"a", "b\n\nc\n", "d"}), (std::vector<std::string>{"[3] ab\n[3] \n[3] c\n", "[3] d"}));
}

TEST(LineAssembler, LongLinesComeInParts) {
  LineAssembler lines("[0] ", false, 4);
  EXPECT_EQ(parts(lines, {"abc", "def", "gh", "i\nj\n"}), (std::vector<std::string>{"[0] abcdef", "ghi\n[0] j\n"}));
}

TEST(LineAssembler, APassingLineEndsOnATerminal) {
  using Parts = std::vector<std::string>;
  LineAssembler plain(""), terminal("", true), tagged("T", true);
  EXPECT_EQ(parts(plain, {"1 %\033[K\r", "2 %\033[K\rdone\n"}), (Parts{"1 %\033[K\r2 %\033[K\rdone\n"}));
  EXPECT_EQ(parts(terminal, {"1 %\033[K\r", "2 %\033[K\rdo", "ne\n"}), (Parts{"1 %\033[K\r", "2 %\033[K\r", "done\n"}));
  EXPECT_EQ(parts(tagged, {"1 %\033[K\r", "a\n2 %\033[K\r3 %\033[K\rdo", "ne\n"}),
            (Parts{"T1 %\033[K\r", "Ta\nT2 %\033[K\rT3 %\033[K\r", "Tdone\n"}));
}

TEST(LineAssembler, APassingLineIsFoundHoweverItIsCut) {
  const std::string_view text = "1 %\033[K\r2 \033[1m%\033[K\rdone\n";
  for (const char* tag : {"", "T"}) {
    for (size_t cut = 0; cut < text.size(); ++cut) {
      LineAssembler two(tag, true), three(tag, true);
      const std::string first = fmt::format("{}1 %\033[K\r", tag),
                        both = first + fmt::format("{}2 \033[1m%\033[K\r", tag);
      std::string emitted;
      two.feed(text.substr(0, cut), [&](std::string_view part) { emitted += part; });
      EXPECT_EQ(emitted, cut < 7 ? "" : cut < 18 ? first : both) << cut;
      two.feed(text.substr(cut), [&](std::string_view part) { emitted += part; });
      EXPECT_EQ(emitted, both + tag + "done\n") << cut;
      if (cut == 0) continue;
      std::string joined;
      for (const std::string& part : parts(three, {text.substr(0, cut - 1), text.substr(cut - 1, 1), text.substr(cut)}))
        joined += part;
      EXPECT_EQ(joined, emitted) << cut;
    }
  }
}

TEST(LineAssembler, AnyOtherCarriageReturnIsACharacter) {
  for (const bool terminal : {false, true}) {
    LineAssembler whole("T", terminal), cut("T", terminal), progress("T", terminal);
    EXPECT_EQ(parts(whole, {"a\r\nb\r\n"}), (std::vector<std::string>{"Ta\r\nTb\r\n"}));
    EXPECT_EQ(parts(cut, {"a\r", "\nb\r", "\n"}), (std::vector<std::string>{"Ta\r\n", "Tb\r\n"}));
    EXPECT_EQ(parts(progress, {"1 %\r", "2 %\033[0K\r", "\033[K", "x\r3\n"}),
              (std::vector<std::string>{"T1 %\r2 %\033[0K\r\033[Kx\r3\n"}));
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
      const auto emit = [&](std::string_view part) {
        EXPECT_FALSE(part.empty());
        joined += part;
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
