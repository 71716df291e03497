// SPDX-License-Identifier: BSD-3-Clause
#include "runtime/collectives/framework/one_step.h"

namespace ibcoll {

Task run_one_step(Comm& c, Args args, OneStep step, bool published) {
  if (step.kind == OneStep::Kind::kNothing) co_return;
  if (!published) {
    if (step.kind == OneStep::Kind::kAll)
      co_await c.next_step(step.bytes);
    else if (step.kind == OneStep::Kind::kSole)
      co_await c.next_sole_step(step.bytes);
    else
      co_await c.next_own_step(step.bytes);
    if (step.write) step.write(c.node(), args);
    if (step.publishes_last)
      c.publish_part();  // the digest of the call, to which those of the others are compared
    else
      c.publish();
  }
  if (step.awaits_all(c.node()))
    co_await c.all_published();
  else
    for (int i = step.first; i < step.end; ++i)
      if (i != c.node().rank()) co_await c.published(i);
  if (!step.finish) co_return;
  if (const Difference d = step.finish(c.node(), args)) c.mismatch(d.rank, d.theirs, d.mine, "bytes of its block");
  if (step.publishes_last) c.publish();
}

}  // namespace ibcoll
