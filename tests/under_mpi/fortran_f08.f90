! SPDX-License-Identifier: BSD-3-Clause
! A Fortran program by the module mpi_f08: in place, logical, a derived type, a nonblocking collective.
program fortran_f08
  use mpi_f08
  implicit none
  integer :: rank, ranks, error, wrong, i
  integer :: numbers(3), total(3), pairs(4)
  double precision :: mine, highest
  logical :: yes, all_yes
  type(MPI_Request) :: request
  type(MPI_Datatype) :: pair
  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  wrong = 0
  do i = 1, 10
    call MPI_Barrier(MPI_COMM_WORLD, error)
    numbers = rank
    call MPI_Allreduce(MPI_IN_PLACE, numbers, 3, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    if (any(numbers /= ranks * (ranks - 1) / 2)) wrong = wrong + 1
    mine = rank
    call MPI_Reduce(mine, highest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, 0, MPI_COMM_WORLD, error)
    if (rank == 0 .and. highest /= ranks - 1) wrong = wrong + 1
    yes = rank /= 1
    call MPI_Allreduce(yes, all_yes, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, error)
    if (all_yes .neqv. (ranks < 2)) wrong = wrong + 1
    call MPI_Type_vector(2, 1, 2, MPI_INTEGER, pair, error)
    call MPI_Type_commit(pair, error)
    pairs = -1
    if (rank == 0) pairs = [5, 6, 7, 8]
    call MPI_Bcast(pairs, 1, pair, 0, MPI_COMM_WORLD, error)
    if (pairs(1) /= 5 .or. pairs(3) /= 7 .or. (rank /= 0 .and. pairs(2) /= -1)) wrong = wrong + 1
    call MPI_Type_free(pair, error)
    numbers = rank
    call MPI_Iallreduce(numbers, total, 3, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, request, error)
    call MPI_Wait(request, MPI_STATUS_IGNORE, error)
    if (any(total /= ranks - 1)) wrong = wrong + 1
  end do
  print '(a,i0,a,i0,a)', 'rank ', rank, ': ', wrong, ' wrong'
  call MPI_Finalize(error)
end program
