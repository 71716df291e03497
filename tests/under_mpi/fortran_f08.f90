! SPDX-License-Identifier: BSD-3-Clause
! A Fortran program by the module mpi_f08.
program fortran_f08
  use mpi_f08
  implicit none
  integer :: rank, ranks, error, wrong, i
  integer :: numbers(3), total(3), pairs(4)
  double precision :: mine, highest
  logical :: yes, all_yes
  type(MPI_Request) :: request
  type(MPI_Datatype) :: pair
#include "fortran_calls.inc"
end program
