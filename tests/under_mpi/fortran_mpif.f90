! SPDX-License-Identifier: BSD-3-Clause
! A Fortran program by mpif.h.
program fortran_mpif
  implicit none
  include 'mpif.h'
  integer :: rank, ranks, error, wrong, i
  integer :: numbers(3), total(3), pairs(4)
  double precision :: mine, highest
  logical :: yes, all_yes
  integer :: request
  integer :: pair
#include "fortran_calls.inc"
end program
