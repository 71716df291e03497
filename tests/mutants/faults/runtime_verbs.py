# SPDX-License-Identifier: BSD-3-Clause
"""What verbs keeps of its connections, puts and windows, over the device within the process."""

from .fault import FAKE_VERBS, Fault

PUTS, AGAIN, WINDOWS = "*RegionTest*:*DroppedPut*:*Payload*", "*FaultTest*:*ReconnectionTest*", "*verbs_windows*"

FAULTS = [
    Fault("rt_verbs_second_message_waits", "runtime/transport/event_outbox.h",
          "      if (peer.has_message()) ready(peer);\n", "",
          FAKE_VERBS, PUTS),
    Fault("rt_verbs_bounce_in_use", "runtime/verbs/put.cc",
          "    if (bounce != kBounces) queue.reads_bounce(bounce);\n", "",
          FAKE_VERBS, AGAIN),
    Fault("rt_verbs_sources_stay_pinned", "runtime/verbs/send.cc",
          "  if (out.source) local_.adapter.registrations().release(out.source);\n", "",
          FAKE_VERBS, PUTS + ":CountTest*"),
    Fault("rt_verbs_credit_is_told_twice", "runtime/verbs/send.cc",
          "sequence};\n  peer.receiving.notified();\n", "sequence};\n",
          FAKE_VERBS, "CountTest*:*CreditTest*"),
    Fault("rt_verbs_completions_of_the_connection_before", "runtime/verbs/completions.cc",
          "!connection.has_queue_pair() || id.epoch != (connection.epoch() & 0xff)", "!connection.has_queue_pair()",
          FAKE_VERBS, AGAIN),
    Fault("rt_verbs_concealed_twice", "runtime/verbs/exposures.cc",
          "  exposure->peer = -1;\n", "",
          FAKE_VERBS, PUTS),
    Fault("rt_verbs_windows_bound_later", "runtime/verbs/windows.cc",
          "queue.completed() < queue.posted() && now() < deadline)\n    completions_.poll();",
          "queue.completed() < queue.posted() && now() > deadline)\n    completions_.poll();",
          FAKE_VERBS, WINDOWS + ":FaultTest.Windows*"),
    Fault("rt_verbs_keys_of_the_connection_before", "runtime/verbs/windows.cc",
          "  keys.count = 0;\n", "",
          FAKE_VERBS, WINDOWS),
    Fault("rt_verbs_drained_queue_pairs_count", "runtime/verbs/recovery.cc",
          "  std::erase(local_.peers.with_queue_pair, &peer);\n", "",
          FAKE_VERBS, AGAIN),
    Fault("rt_verbs_last_words_unseen", "runtime/verbs/recovery.cc",
          "  if (peer.has_message()) local_.outbox.ready(peer);\n", "",
          FAKE_VERBS, AGAIN + ":*DeathTest*"),
    Fault("rt_verbs_credit_of_the_connection_before", "runtime/verbs/handshake.cc",
          "  peer.receiving.forget_notified();\n", "",
          FAKE_VERBS, AGAIN),
    Fault("rt_verbs_send_queue_of_the_connection_before", "runtime/verbs/connector.cc",
          "  peer.sending.queue = {};\n", "",
          FAKE_VERBS, AGAIN),
    Fault("rt_verbs_one_receive_short", "runtime/verbs/peer.h",
          "kReceives = kSlots + kReceiveBatch - 1;", "kReceives = kSlots - 1;",
          FAKE_VERBS, "CountTest*:*CreditTest*:*FaultTest*"),
]
