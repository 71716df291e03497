// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/base/config.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/base/config_values.h"
#include "runtime/base/json.h"
#include "runtime/base/start_folder.h"

namespace ibcoll {
namespace {

Result<Config> load(std::initializer_list<const char*> variables) {
  std::vector<const char*> environment(variables);
  environment.push_back(nullptr);
  return Config::load_from(environment.data());
}

class ConfigFile : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/ibcoll_config_test.XXXXXX";
    const int fd = ::mkstemp(name);
    ASSERT_GE(fd, 0);
    ::close(fd);
    path_ = name;
  }
  void TearDown() override { std::filesystem::remove(path_); }

  Result<Config> load_file(const std::string& content, const char* variable = "UNRELATED=1") {
    std::ofstream(path_) << content;
    const std::string file = "IBCOLL_CONFIG_FILE=" + path_;
    return load({file.c_str(), variable});
  }
  std::string path_;
};

TEST(Settings, DefaultsAreAcceptedAndNamesAreUnique) {
  std::set<std::string> names;
  for (const Setting& setting : Config::settings()) {
    EXPECT_TRUE(setting.fallback[0] == '\0' || accepts(setting, setting.fallback)) << setting.name;
    EXPECT_TRUE(names.insert(setting.name).second) << setting.name;
    EXPECT_TRUE(std::string_view(setting.name).starts_with("IBCOLL_")) << setting.name;
    EXPECT_FALSE(std::string_view(setting.name).starts_with("IBCOLL_RUN_")) << setting.name;
    EXPECT_STRNE(setting.meaning, "") << setting.name;
  }
}

TEST(Settings, EveryCollectiveHasOne) {
  Config config;
  for (const char* name : {"BARRIER", "BCAST", "ALLGATHER", "ALLGATHERV", "ALLTOALL", "ALLTOALLV", "ALLREDUCE"}) {
    EXPECT_EQ(config.text(std::string("IBCOLL_") + name), "auto");
  }
}

TEST(Environment, OverridesTheDefaultAndIsNamedAsOrigin) {
  Result<Config> config = load({"IBCOLL_TIMEOUT=1.5", "IBCOLL_SHM_SLOT_BYTES=128K", "IBCOLL_ALLOW_PUBLIC=on"});
  ASSERT_TRUE(config.ok()) << config.status().text();
  EXPECT_EQ(config->seconds("IBCOLL_TIMEOUT"), 1.5);
  EXPECT_EQ(config->bytes("IBCOLL_SHM_SLOT_BYTES"), 131072u);
  EXPECT_TRUE(config->boolean("IBCOLL_ALLOW_PUBLIC"));
  EXPECT_EQ(config->value("IBCOLL_TIMEOUT").origin, "environment");
  EXPECT_EQ(config->value("IBCOLL_NET").origin, "default");
}

TEST(Environment, EmptyCountsAsNotSet) {
  Result<Config> config = load({"IBCOLL_TIMEOUT="});
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->value("IBCOLL_TIMEOUT").origin, "default");
}

TEST(Environment, MalformedValueIsAnErrorThatNamesItAndWhatIsAllowed) {
  const char* malformed[] = {
      "IBCOLL_TIMEOUT=soon",        "IBCOLL_TIMEOUT=-1",           "IBCOLL_TIMEOUT=nan",
      "IBCOLL_TIMEOUT=10s",         "IBCOLL_NET=infiniband",       "IBCOLL_NET=UCX",
      "IBCOLL_SHM_SLOT_BYTES=1",    "IBCOLL_SHM_SLOT_BYTES=8G",    "IBCOLL_SHM_SLOT_BYTES=64KB",
      "IBCOLL_ALLOW_PUBLIC=maybe",  "IBCOLL_ALLTOALL=pap direct",  "IBCOLL_SCHEME=auto|copy",
      "IBCOLL_VERBS_GID=first",     "IBCOLL_VERBS_GID=-1",         "IBCOLL_VERBS_GID=10.1.0.0/33",
      "IBCOLL_VERBS_GID=10.1.0/16", "IBCOLL_VERBS_GID=fd00::/129", "IBCOLL_VERBS_GID=10.1.0.0/",
      "IBCOLL_UCX_TLS=tcp sm",      "IBCOLL_UCX_TLS=tcp,,sm",      "IBCOLL_UCX_TLS=TCP",
      "IBCOLL_VERBS_GID=256"};
  for (const char* variable : malformed) {
    const Result<Config> config = load({variable});
    ASSERT_FALSE(config.ok()) << variable;
    EXPECT_EQ(config.status().code(), IBCOLL_ERR_CONFIG);
    const std::string& text = config.status().text();
    EXPECT_NE(text.find(variable), std::string::npos) << text;
    EXPECT_NE(text.find("environment"), std::string::npos) << text;
    EXPECT_NE(text.find("allowed: "), std::string::npos) << text;
  }
  EXPECT_NE(load({"IBCOLL_VERBS_GID=256"}).status().text().find("an index from 0 to 255"), std::string::npos);
  EXPECT_NE(load({"IBCOLL_ARRIVAL=early"}).status().text().find("one of together, mixed, late"), std::string::npos);
  EXPECT_NE(load({"IBCOLL_NET=x"}).status().text().find("one of auto, verbs, ucx, shm"), std::string::npos);
}

TEST(Environment, BothEndsOfARangeAreTaken) {
  for (const char* variable :
       {"IBCOLL_TIMEOUT=0.1", "IBCOLL_TIMEOUT=inf", "IBCOLL_PEER_TIMEOUT=1", "IBCOLL_PEER_TIMEOUT=86400"})
    EXPECT_TRUE(load({variable}).ok()) << variable;
}

TEST(Environment, GidsSubnetsAndTransportsAreTaken) {
  for (const char* variable :
       {"IBCOLL_VERBS_GID=auto", "IBCOLL_VERBS_GID=3", "IBCOLL_VERBS_GID=255", "IBCOLL_VERBS_GID=10.1.0.0/16",
        "IBCOLL_VERBS_GID=fd00::/8", "IBCOLL_VERBS_GID=0.0.0.0/0", "IBCOLL_UCX_TLS=tcp,sm", "IBCOLL_UCX_TLS=^rc_x",
        "IBCOLL_UCX_TLS=\\rc,ud:aux"})
    EXPECT_TRUE(load({variable}).ok()) << variable;
}

TEST(Settings, EqualValuesHaveOneNormalForm) {
  const auto same = [](std::string_view name, std::initializer_list<std::string_view> texts) {
    for (const Setting& setting : Config::settings()) {
      if (setting.name != name) continue;
      for (const std::string_view text : texts)
        EXPECT_EQ(normal_form(setting, text), normal_form(setting, *texts.begin())) << text;
    }
  };
  same("IBCOLL_EAGER_BYTES", {"8K", "8192", "8k", "08192"});
  same("IBCOLL_ALLOW_PUBLIC", {"no", "off", "false", "0"});
  same("IBCOLL_ALLOW_PUBLIC", {"yes", "on", "true", "1"});
  same("IBCOLL_VERBS_RETRIES", {"6", "06"});
  same("IBCOLL_TIMEOUT", {"600", "600.0", "6e2"});
  for (const Setting& setting : Config::settings()) {
    if (setting.fallback[0] == '\0') continue;
    const std::string form = normal_form(setting, setting.fallback);
    EXPECT_TRUE(accepts(setting, form)) << setting.name << "=" << form;
  }
}

TEST(Environment, UnknownVariableIsAWarningWithTheNearestName) {
  const Result<Config> config = load({"IBCOLL_TIMOUT=5", "IBCOLL_RUN_RANK=3", "IBCOLLX=1", "PATH=/bin"});
  ASSERT_TRUE(config.ok());
  ASSERT_EQ(config.value().warnings().size(), 1u);
  EXPECT_NE(config.value().warnings()[0].find("IBCOLL_TIMOUT"), std::string::npos);
  EXPECT_NE(config.value().warnings()[0].find("IBCOLL_TIMEOUT"), std::string::npos);
}

TEST(Environment, ANameIsNotTheBeginningOfAnother) {
  const Result<Config> config = load({"IBCOLL_CONFIG_FILES=/nonexistent/ibcoll.conf"});
  ASSERT_TRUE(config.ok()) << config.status().text();
  EXPECT_EQ(config.value().warnings().size(), 1u);
}

TEST_F(ConfigFile, IsReadWithCommentsAndBlanksAndNamedWithTheLine) {
  Result<Config> config = load_file("# cluster\n\n  IBCOLL_NET = ucx   # no InfiniBand\r\nIBCOLL_TIMEOUT=inf");
  ASSERT_TRUE(config.ok()) << config.status().text();
  EXPECT_EQ(config->text("IBCOLL_NET"), "ucx");
  EXPECT_EQ(config->value("IBCOLL_NET").origin, path_ + ":3");
  EXPECT_TRUE(std::isinf(config->seconds("IBCOLL_TIMEOUT")));
}

TEST_F(ConfigFile, EnvironmentWins) {
  Result<Config> config = load_file("IBCOLL_NET = ucx\n", "IBCOLL_NET=shm");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->text("IBCOLL_NET"), "shm");
}

TEST_F(ConfigFile, MayBeginWithAByteOrderMark) {
  Result<Config> config = load_file("\xEF\xBB\xBFIBCOLL_NET = ucx\n");
  ASSERT_TRUE(config.ok());
  EXPECT_EQ(config->text("IBCOLL_NET"), "ucx");
  EXPECT_TRUE(config->warnings().empty());
}

TEST_F(ConfigFile, MalformedLinesAreNamed) {
  for (const char* content : {"\nIBCOLL_NET ucx\n", "\nIBCOLL_NET = eth\n", "\nIBCOLL_CONFIG_FILE = /x\n"}) {
    const Result<Config> config = load_file(content);
    ASSERT_FALSE(config.ok()) << content;
    EXPECT_EQ(config.status().code(), IBCOLL_ERR_CONFIG);
    EXPECT_NE(config.status().text().find(path_ + ":2"), std::string::npos) << config.status().text();
  }
}

TEST_F(ConfigFile, UnknownNameIsAWarning) {
  const Result<Config> config = load_file("IBCOLL_SCHEMA = copy\n");
  ASSERT_TRUE(config.ok());
  ASSERT_EQ(config.value().warnings().size(), 1u);
  EXPECT_NE(config.value().warnings()[0].find(path_ + ":1"), std::string::npos);
  EXPECT_NE(config.value().warnings()[0].find("IBCOLL_SCHEME"), std::string::npos);
}

TEST(ConfigFilePath, IsInTheFolderOfTheUserWhereNoneIsNamed) {
  std::string home = "/tmp/ibcoll_config_test.XXXXXX";
  ASSERT_NE(::mkdtemp(home.data()), nullptr);
  std::filesystem::create_directory(home + "/.config");
  std::ofstream(home + "/.config/ibcoll.conf") << "IBCOLL_NET = ucx\n";
  const std::string variable = "HOME=" + home;
  Result<Config> config = load({variable.c_str()});
  std::filesystem::remove_all(home);
  ASSERT_TRUE(config.ok()) << config.status().text();
  EXPECT_EQ(config->text("IBCOLL_NET"), "ucx");
  EXPECT_EQ(config->value("IBCOLL_NET").origin, home + "/.config/ibcoll.conf:1");
}

TEST(StartFolder, IsWhereTheProgramStarted) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path("/");
  const std::string path = from_start_folder("traces");
  std::filesystem::current_path(before);
  EXPECT_EQ(path, before / "traces");
  EXPECT_EQ(from_start_folder("/tmp/traces"), "/tmp/traces");
}

TEST(Json, ACopyChangesAlone) {
  const Json original = {{"ranks", 3}};
  Json copy = original;
  copy.set("nodes", 2);
  EXPECT_FALSE(original.contains("nodes"));
  EXPECT_TRUE(copy.contains("ranks"));
}

TEST(ConfigFilePath, NamedButMissingOrADirectoryIsAnError) {
  for (const char* variable : {"IBCOLL_CONFIG_FILE=/nonexistent/ibcoll.conf", "IBCOLL_CONFIG_FILE=/tmp"}) {
    const Result<Config> config = load({variable});
    ASSERT_FALSE(config.ok()) << variable;
    EXPECT_EQ(config.status().code(), IBCOLL_ERR_CONFIG);
  }
}

TEST(ParseBytes, SuffixesAndLimits) {
  EXPECT_EQ(parse_bytes("0").value(), 0u);
  EXPECT_EQ(parse_bytes("64K").value(), 65536u);
  EXPECT_EQ(parse_bytes("2m").value(), 2097152u);
  EXPECT_EQ(parse_bytes("1G").value(), 1073741824u);
  EXPECT_EQ(parse_bytes("18446744073709551615").value(), UINT64_MAX);
  for (const char* text : {"", "K", "-1", "1.5K", "64KB", " 1", "1 ", "0x10", "18446744073709551616", "17179869184G"}) {
    EXPECT_FALSE(parse_bytes(text).ok()) << text;
  }
}

TEST(SettingsJson, ListsEverySettingAndSurvivesForeignBytes) {
  const Result<Config> config = load({"IBCOLL_VERBS_DEVICE=\xff\xfe", "IBCOLL_NET=shm"});
  ASSERT_TRUE(config.ok());
  const nlohmann::json settings = nlohmann::json::parse(settings_json(config.value()).dump());
  ASSERT_EQ(settings.size(), Config::settings().size());
  for (const auto& setting : settings) {
    if (setting["name"] != "IBCOLL_NET") continue;
    EXPECT_EQ(setting["value"], "shm");
    EXPECT_EQ(setting["origin"], "environment");
    EXPECT_EQ(setting["default"], "auto");
  }
}

TEST(ConfigDeathTest, LookupOfNoSettingAborts) {
  Config config;
  EXPECT_DEATH((void)config.text("IBCOLL_NOTHING"), "IBCOLL_NOTHING");
}

}  // namespace
}  // namespace ibcoll
