// SPDX-License-Identifier: BSD-3-Clause
// ompi/op/op.h includes this header of Open MPI, which is not installed. MPI_Fint is an int everywhere that ibcoll runs.
#pragma once

#define OMPI_FINT_2_INT(a) (a)
#define OMPI_INT_2_FINT(a) (a)
