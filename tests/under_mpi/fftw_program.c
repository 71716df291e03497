// SPDX-License-Identifier: BSD-3-Clause
// Transforms of FFTW over MPI, checked: of a plane wave, of data with a known inverse, and of a matrix that is
// transposed.
//   fftw_program N [TIMES]     cubes of N points a side, matrices of 2 N; prints "rank R: W wrong" and, on rank 0, the
//                              seconds of TIMES transforms there and back
// Only out of place, and where it may destroy its input, does FFTW consider MPI_Alltoall: it takes what it measures as
// fastest.
#include <fftw3-mpi.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static long wrong;

static void expect(double seen, double expected, double scale) {
  if (!(fabs(seen - expected) <= 1e-12 * scale)) ++wrong;
}

// A number in [0, 1) that depends on the point alone.
static double value(ptrdiff_t point) { return (double)(point * 2654435761u % 100003) / 100003; }

// A plane wave of the wave vector (1, 2, 3) becomes N^3 at that point, and 0 elsewhere.
static void plane_wave(ptrdiff_t n) {
  ptrdiff_t planes, first;
  const ptrdiff_t points = fftw_mpi_local_size_3d(n, n, n, MPI_COMM_WORLD, &planes, &first);
  fftw_complex* data = fftw_alloc_complex((size_t)points);
  fftw_plan plan = fftw_mpi_plan_dft_3d(n, n, n, data, data, MPI_COMM_WORLD, FFTW_FORWARD, FFTW_MEASURE);
  for (ptrdiff_t point = 0; point < planes * n * n; ++point) {
    const ptrdiff_t x = first + point / (n * n), y = point / n % n, z = point % n;
    const double angle = 2 * M_PI * (double)(x + 2 * y + 3 * z) / (double)n;
    data[point][0] = cos(angle);
    data[point][1] = sin(angle);
  }
  fftw_execute(plan);
  const double all = (double)n * (double)n * (double)n;
  for (ptrdiff_t point = 0; point < planes * n * n; ++point) {
    const ptrdiff_t x = first + point / (n * n), y = point / n % n, z = point % n;
    expect(data[point][0], x == 1 && y == 2 && z == 3 ? all : 0, all);
    expect(data[point][1], 0, all);
  }
  fftw_destroy_plan(plan);
  fftw_free(data);
}

// Transforms real data there (with a transposed result) and back, `times` times. Returns the seconds.
static double there_and_back(ptrdiff_t n, int times) {
  ptrdiff_t planes, first, rows, first_row;
  const ptrdiff_t padded = 2 * (n / 2 + 1);
  const ptrdiff_t points =
      fftw_mpi_local_size_3d_transposed(n, n, n / 2 + 1, MPI_COMM_WORLD, &planes, &first, &rows, &first_row);
  double* data = fftw_alloc_real(2 * (size_t)points);
  fftw_complex* result = fftw_alloc_complex((size_t)points);
  fftw_plan there = fftw_mpi_plan_dft_r2c_3d(n, n, n, data, result, MPI_COMM_WORLD,
                                             FFTW_MEASURE | FFTW_DESTROY_INPUT | FFTW_MPI_TRANSPOSED_OUT);
  fftw_plan back = fftw_mpi_plan_dft_c2r_3d(n, n, n, result, data, MPI_COMM_WORLD,
                                            FFTW_MEASURE | FFTW_DESTROY_INPUT | FFTW_MPI_TRANSPOSED_IN);
  for (ptrdiff_t row = 0; row < planes * n; ++row)
    for (ptrdiff_t z = 0; z < n; ++z) data[row * padded + z] = value((first * n + row) * n + z);
  const double scale = 1 / ((double)n * (double)n * (double)n);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begun = MPI_Wtime();
  for (int time = 0; time < times; ++time) {
    fftw_execute(there);
    fftw_execute(back);
    for (ptrdiff_t point = 0; point < planes * n * padded; ++point) data[point] *= scale;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const double seconds = MPI_Wtime() - begun;
  for (ptrdiff_t row = 0; row < planes * n; ++row)
    for (ptrdiff_t z = 0; z < n; ++z) expect(data[row * padded + z], value((first * n + row) * n + z), 1);
  fftw_destroy_plan(there);
  fftw_destroy_plan(back);
  fftw_free(data);
  fftw_free(result);
  return seconds;
}

// Rows do not divide evenly: blocks of different sizes.
static void transpose(ptrdiff_t rows, ptrdiff_t columns) {
  ptrdiff_t local, first, local_after, first_after;
  const ptrdiff_t points =
      fftw_mpi_local_size_2d_transposed(rows, columns, MPI_COMM_WORLD, &local, &first, &local_after, &first_after);
  double* before = fftw_alloc_real((size_t)points);
  double* after = fftw_alloc_real((size_t)points);
  fftw_plan plan =
      fftw_mpi_plan_transpose(rows, columns, before, after, MPI_COMM_WORLD, FFTW_MEASURE | FFTW_DESTROY_INPUT);
  for (ptrdiff_t point = 0; point < local * columns; ++point) before[point] = value(first * columns + point);
  fftw_execute(plan);
  for (ptrdiff_t row = 0; row < local_after; ++row)
    for (ptrdiff_t column = 0; column < rows; ++column)
      expect(after[row * rows + column], value(column * columns + first_after + row), 1);
  fftw_destroy_plan(plan);
  fftw_free(before);
  fftw_free(after);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  fftw_mpi_init();
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const ptrdiff_t n = argc > 1 ? atoi(argv[1]) : 16;
  plane_wave(n);
  const double seconds = there_and_back(n, argc > 2 ? atoi(argv[2]) : 1);
  transpose(2 * n, 2 * n + 3);
  transpose(2 * n + 3, n);
  printf("rank %d: %ld wrong\n", rank, wrong);
  if (rank == 0) printf("seconds: %.6f\n", seconds);
  fftw_mpi_cleanup();
  MPI_Finalize();
  return wrong != 0;
}
