// SPDX-License-Identifier: BSD-3-Clause
// SIGUSR1: every rank prints what each collective in flight waits for.
#pragma once

namespace ibcoll {

class Progress;

// Installs the handler, unless the host program has one of its own. The report is written by a thread that waits in
// ibcoll, or by the next call; a rank that does not wait prints that at once.
void report_on_signal(Progress* progress);
void report_on_signal_no_more(Progress* progress);
// Called inside of progress: writes the report that a signal has asked for.
void report_if_asked(Progress& progress) noexcept;
bool report_asked() noexcept;

}  // namespace ibcoll
