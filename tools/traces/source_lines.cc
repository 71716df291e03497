// SPDX-License-Identifier: BSD-3-Clause
#include "tools/traces/source_lines.h"

#include <cxxabi.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "tools/traces/printable.h"

namespace ibcoll::tracing {
namespace {

std::string build_id_of(Dwfl_Module* module) {
  const unsigned char* bytes = nullptr;
  GElf_Addr ignored = 0;
  const int size = ::dwfl_module_build_id(module, &bytes, &ignored);
  std::string text;
  for (int i = 0; i < size; ++i) text += fmt::format("{:02x}", bytes[i]);
  return text;
}

// Some compilers write no table of the addresses of their units (.debug_aranges), so that all are asked.
Dwarf_Die* unit_of(Dwfl_Module* module, Dwarf_Addr address, Dwarf_Addr& bias) {
  if (Dwarf_Die* const unit = ::dwfl_module_addrdie(module, address, &bias)) return unit;
  for (Dwarf_Die* unit = nullptr; (unit = ::dwfl_module_nextcu(module, unit, &bias)) != nullptr;)
    if (::dwarf_haspc(unit, address - bias) > 0) return unit;
  return nullptr;
}

// The innermost one, inlined or not.
std::string function_in(Dwarf_Die* unit, Dwarf_Addr address) {
  Dwarf_Die* found = nullptr;
  const int scopes = ::dwarf_getscopes(unit, address, &found);
  const std::unique_ptr<Dwarf_Die, decltype(&std::free)> owner(found, std::free);
  for (int i = 0; i < scopes; ++i) {
    const int tag = ::dwarf_tag(&found[i]);
    if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine) continue;
    const char* const name = ::dwarf_diename(&found[i]);
    return name ? name : "";
  }
  return "";
}

// Adds the symbol where there is no debug information.
void add_symbol(Dwfl_Module* module, Dwarf_Addr address, SourceLine& line) {
  GElf_Off distance = 0;
  GElf_Sym ignored;
  const char* const name = ::dwfl_module_addrinfo(module, address, &distance, &ignored, nullptr, nullptr, nullptr);
  if (!name) return;
  line.function = plain_name(name);
  line.in_function = distance;
}

}  // namespace

std::string plain_name(const std::string& symbol) {
  int failed = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &failed), std::free);
  return plain ? plain.get() : symbol;
}

SourceLines::~SourceLines() {
  for (const auto& [key, module] : modules_)
    if (module.session) ::dwfl_end(module.session);
}

SourceLines::Module SourceLines::open(const std::string& path, const std::string& build_id) {
  static constexpr Dwfl_Callbacks kCallbacks = {.find_elf = ::dwfl_build_id_find_elf,
                                                .find_debuginfo = ::dwfl_standard_find_debuginfo,
                                                .section_address = ::dwfl_offline_section_address,
                                                .debuginfo_path = nullptr};
  Module opened{::dwfl_begin(&kCallbacks)};
  if (!opened.session) return opened;
  opened.module = ::dwfl_report_elf(opened.session, path.c_str(), path.c_str(), -1, 0, true);
  ::dwfl_report_end(opened.session, nullptr, nullptr);
  std::string why;
  if (!opened.module)
    why = ::access(path.c_str(), R_OK) != 0 ? std::strerror(errno) : ::dwfl_errmsg(-1);
  else if (build_id_of(opened.module) != build_id)
    why = "this file is of another build than the one that ran";
  if (why.empty()) return opened;
  opened.module = nullptr;
  problems_.push_back(fmt::format("call sites in {} are shown as addresses: {}", printable(path), why));
  return opened;
}

SourceLine SourceLines::find(const std::string& module, const std::string& build_id, uint64_t offset) {
  const auto [at, is_new] = modules_.try_emplace({module, build_id});
  if (is_new) at->second = open(module, build_id);
  SourceLine line;
  Dwfl_Module* const file = at->second.module;
  if (!file || offset == 0) return line;
  const Dwarf_Addr call = offset - 1;  // the next instruction may be of another line, or function
  Dwarf_Addr bias = 0;
  Dwarf_Die* const unit = unit_of(file, call, bias);
  Dwarf_Line* const row = unit ? ::dwarf_getsrc_die(unit, call - bias) : nullptr;
  const char* const source = row ? ::dwarf_linesrc(row, nullptr, nullptr) : nullptr;
  if (source && ::dwarf_lineno(row, &line.line) == 0) {
    line.file = source;
    line.function = function_in(unit, call - bias);
  } else {
    line.line = 0;
    add_symbol(file, call, line);
    ++line.in_function;
  }
  return line;
}

}  // namespace ibcoll::tracing
