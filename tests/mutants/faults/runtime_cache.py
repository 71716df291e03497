# SPDX-License-Identifier: BSD-3-Clause
"""The registration cache: what stays pinned, and for how long."""

from .fault import UNIT, Fault

CACHE, WATCHED = "RegistrationCache*", "WatchedCache*"

FAULTS = [
    Fault("rt_cache_one_page_more", "runtime/registration_cache/registration_cache.cc",
          "(range.end + mask) & ~mask", "(range.end + mask + 1) & ~mask",
          UNIT, CACHE),
    Fault("rt_cache_half_as_large_is_too_large", "runtime/registration_cache/registration_cache.cc",
          "if (both.size() > wanted.size() + wanted.size() / 2)",
          "if (both.size() >= wanted.size() + wanted.size() / 2)",
          UNIT, CACHE),
    Fault("rt_cache_any_error_evicts", "runtime/registration_cache/registration_cache.cc",
          "  if (status.code() != IBCOLL_ERR_NO_MEMORY) return status;\n", "  if (status.ok()) return status;\n",
          UNIT, CACHE),
    Fault("rt_cache_the_limit_itself_is_too_much", "runtime/registration_cache/registration_cache.cc",
          "counters_.pinned_bytes <= options_.limit_bytes - bytes",
          "counters_.pinned_bytes < options_.limit_bytes - bytes",
          UNIT, CACHE),
    Fault("rt_cache_limits_hold_for_new_ones_only", "runtime/registration_cache/registration_cache.cc",
          "  make_room(0, 0);\n", "",
          UNIT, CACHE),
    Fault("rt_cache_static_memory_of_the_program", "runtime/registration_cache/watched_cache.cc",
          "object.dlfo_link_map != nullptr && object.dlfo_link_map->l_name[0] != '\\0'",
          "object.dlfo_link_map != nullptr",
          UNIT, WATCHED),
    Fault("rt_cache_distrusted_ones_stay", "runtime/registration_cache/watched_cache.cc",
          "  cache_.invalidate_all();\n", "",
          UNIT, WATCHED),
    Fault("rt_cache_ucx_hooks_as_it_is_loaded", "runtime/ucx/workarounds/memory_hooks.cc",
          "std::exchange(settings->enable_events, 0)", "std::exchange(settings->enable_events, 1)",
          UNIT, "MemoryHooks*"),
    Fault("rt_cache_mremap_loses_an_argument", "runtime/registration_cache/memory_events.cc",
          "!ucx::is_needed(ucx::Fault::kMremap)) return {};", "ucx::is_needed(ucx::Fault::kMremap)) return {};",
          UNIT, "MemoryHooks*"),
    Fault("rt_cache_regions_of_one_more", "runtime/registration_cache/registration_cache.cc",
          "counters_.regions + regions <= options_.limit_regions",
          "counters_.regions + regions <= options_.limit_regions + regions",
          UNIT, CACHE),
]
