# SPDX-License-Identifier: BSD-3-Clause
"""Every collective from Python: on objects, which mpi4py pickles, and on buffers. Prints "rank R: W wrong"."""

import array
import sys

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size
wrong = 0


def expect(name, seen, expected):
    global wrong
    if seen != expected:
        wrong += 1
        print(f"rank {rank}: {name}: {seen!r} instead of {expected!r}", file=sys.stderr)


def ints(*values):
    return array.array("i", values)


def of(rank_):
    """An object whose pickle has another length on each rank."""
    return {"rank": rank_, "text": "x" * (7 * rank_)}


def objects(over):
    me, everyone = over.rank, [of(one) for one in range(over.size)]
    for root in range(over.size):
        expect("bcast", over.bcast(of(root) if me == root else None, root), of(root))
        expect("gather", over.gather(of(me), root), everyone if me == root else None)
        expect("scatter", over.scatter(everyone if me == root else None, root), of(me))
        expect("reduce", over.reduce([me], MPI.SUM, root), list(range(over.size)) if me == root else None)
    expect("allgather", over.allgather(of(me)), everyone)
    expect("alltoall", over.alltoall([(me, other) for other in range(over.size)]), [(other, me) for other in range(over.size)])
    expect("allreduce", over.allreduce(me, MPI.SUM), sum(range(over.size)))
    expect("scan", over.scan([me]), list(range(me + 1)))
    expect("exscan", over.exscan([me]), list(range(me)) if me > 0 else None)


def buffers(over):
    me, n = over.rank, over.size
    total = sum(range(n))
    counts = [one + 1 for one in range(n)]
    at = [sum(counts[:one]) for one in range(n)]
    own, joined = ints(*[me] * counts[me]), ints(*[one for one in range(n) for _ in range(counts[one])])
    over.Barrier()
    for root in range(n):
        data = ints(root, 7) if me == root else ints(0, 0)
        over.Bcast(data, root)
        expect("Bcast", data, ints(root, 7))
        data = ints(*[-1] * n)
        over.Gather(ints(me), data, root)
        expect("Gather", data, ints(*range(n)) if me == root else ints(*[-1] * n))
        data = ints(-1)
        over.Scatter(ints(*range(n)), data, root)
        expect("Scatter", data, ints(me))
        data = ints(*[-1] * len(joined))
        over.Gatherv(own, [data, counts, at, MPI.INT], root)
        expect("Gatherv", data, joined if me == root else ints(*[-1] * len(joined)))
        data = ints(*[-1] * counts[me])
        over.Scatterv([joined, counts, at, MPI.INT], data, root)
        expect("Scatterv", data, own)
        data = ints(-1)
        over.Reduce(ints(me), data, MPI.SUM, root)
        expect("Reduce", data, ints(total if me == root else -1))
    data = ints(*[-1] * n)
    over.Allgather(ints(me), data)
    expect("Allgather", data, ints(*range(n)))
    data = ints(*[-1] * len(joined))
    over.Allgatherv(own, [data, counts, at, MPI.INT])
    expect("Allgatherv", data, joined)
    data = ints(*[-1] * n)
    over.Alltoall(ints(*[10 * me + other for other in range(n)]), data)
    expect("Alltoall", data, ints(*[10 * other + me for other in range(n)]))
    # To each rank as many as its own number and one: from each rank me + 1 of them.
    data = ints(*[-1] * (n * counts[me]))
    mine = [[counts[me]] * n, [one * counts[me] for one in range(n)]]
    over.Alltoallv([ints(*[me] * len(joined)), counts, at, MPI.INT], [data, *mine, MPI.INT])
    expect("Alltoallv", data, ints(*[one for one in range(n) for _ in range(counts[me])]))
    data = ints(*[-1] * (n * counts[me]))
    bytes_at = [[4 * one for one in places] for places in (at, mine[1])]
    over.Alltoallw([ints(*[me] * len(joined)), counts, bytes_at[0], [MPI.INT] * n],
                   [data, mine[0], bytes_at[1], [MPI.INT] * n])
    expect("Alltoallw", data, ints(*[one for one in range(n) for _ in range(counts[me])]))
    for op, expected in ((MPI.SUM, total), (MPI.MAX, n - 1), (MPI.MIN, 0), (MPI.BXOR, 0)):
        data = ints(me)
        over.Allreduce(MPI.IN_PLACE, data, op)
        if op == MPI.BXOR:
            for one in range(n):
                expected ^= one
        expect("Allreduce", data, ints(expected))
    data = ints(-1)
    over.Reduce_scatter_block(ints(*[me + other for other in range(n)]), data)
    expect("Reduce_scatter_block", data, ints(total + n * me))
    data = ints(*[-1] * counts[me])
    over.Reduce_scatter(joined, data, counts)
    expect("Reduce_scatter", data, ints(*[n * me] * counts[me]))
    data = ints(-1)
    over.Scan(ints(me), data)
    expect("Scan", data, ints(sum(range(me + 1))))
    data = ints(-1)
    over.Exscan(ints(me), data)
    expect("Exscan", data, ints(sum(range(me)) if me > 0 else -1))


def nonblocking(over):
    """Many in flight, waited for in another order; and an operation of the program."""
    me, n = over.rank, over.size

    def least(given, kept, _type):
        for index, value in enumerate(memoryview(given).cast("i")):
            memoryview(kept).cast("i")[index] = min(value, memoryview(kept).cast("i")[index])
    op = MPI.Op.Create(least, commute=True)
    given, sums = [ints(me + index) for index in range(20)], [ints(-1) for _ in range(20)]
    requests = [over.Iallreduce(one, other, MPI.SUM) for one, other in zip(given, sums)]
    MPI.Request.Waitall(requests[::-1])
    expect("Iallreduce", sums, [ints(sum(range(n)) + n * index) for index in range(20)])
    least_of = ints(-1)
    over.Allreduce(ints(me + 3), least_of, op)
    expect("an operation in Python", least_of, ints(3))
    over.Ibarrier().Wait()
    op.Free()


def between():
    """Collectives of an intercommunicator: the MPI's own."""
    half = comm.Split(rank % 2, rank)
    both = half.Create_intercomm(0, comm, 1 - rank % 2)
    expect("between two groups", both.allgather(rank), list(range(1 - rank % 2, size, 2)))
    both.Free()
    half.Free()


for kind in (comm, comm.Dup(), comm.Split(0, -rank), comm.Create_cart([size], periods=[True])):
    objects(kind)
    buffers(kind)
    nonblocking(kind)
    if kind != comm:
        kind.Free()
between()
print(f"rank {rank}: {wrong} wrong")
