/* SPDX-License-Identifier: BSD-3-Clause
 * What late_program.c exports to the plugins that it loads. */
#pragma once

#include <stdatomic.h>

enum { LATE_HOLD_NEXT = 1, LATE_HELD = 2 };

/* LATE_HOLD_NEXT: the next thread that makes UCX progress stays there for a tenth of a second. LATE_HELD: it does. */
extern atomic_int late_inside;
/* Not 0: UCX has ended. A thread that still calls it ends the process with status 5. */
extern atomic_int late_over;

unsigned ucp_worker_progress(void* worker);
