# SPDX-License-Identifier: BSD-3-Clause
"""The page of ibcoll_trace, as a browser shows it."""

from .fault import BROWSER, Fault

PAGE = "tools/traces/time_line.cc"
FAULTS = [
    Fault("trace_page_that_needs_a_network", PAGE, '<meta charset="utf-8">',
          '<meta charset="utf-8"><link rel="stylesheet" href="https://example.org/a.css">', BROWSER, "TracePage"),
    Fault("trace_page_of_a_misspelt_function", PAGE, "  axis();\n  ctx.save();", "  axes();\n  ctx.save();", BROWSER, "TracePage"),
    Fault("trace_page_dark_on_dark", PAGE, "--paper: #16181c; --ink: #ddd;", "--paper: #16181c; --ink: #444;",
          BROWSER, "test_dark_mode_is_readable"),
    Fault("trace_page_colours_alike", PAGE, '"#cc2603", "#9d4f86"]', '"#cc2603", "#5d5fa6"]',
          BROWSER, "test_collectives_are_told_apart_without_colour_sight"),
    Fault("trace_page_without_names", PAGE, "if (b - a < style.width) return;", "return;",
          BROWSER, "test_collectives_are_told_apart_without_colour_sight"),
    Fault("trace_page_eighth_like_first", PAGE, "half: i >= colours.length", "half: false",
          BROWSER, "test_the_eighth_collective_is_not_the_first"),
    Fault("trace_page_edge_of_rank_0", PAGE, "call.rank[i] === call.late &&", "call.rank[i] === 0 &&",
          BROWSER, "test_the_time_line_is_drawn"),
    Fault("trace_page_zoom_around_the_left", PAGE, "show(at - (at - from) * k, at + (to - at) * k)",
          "show(from, from + (to - from) * k)", BROWSER, "test_zoom_by_keyboard_and_mouse"),
    Fault("trace_page_keys_swapped", PAGE, "ArrowRight: () => move(0.2)", "ArrowRight: () => move(-0.2)",
          BROWSER, "test_zoom_by_keyboard_and_mouse"),
]
