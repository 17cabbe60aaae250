/* missing.c: rank 1 does not come to a collective, which the others name after a second. */
#define _POSIX_C_SOURCE 200112L

#include "attn_mpi.h"

#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    attn_mpi mpi;
    MPI_Init(&argc, &argv);
    if (attn_mpi_begin(&mpi, MPI_COMM_WORLD, 3, 1)) return 2;
    char parts[3][8];
    memset(parts, mpi.rank, sizeof parts);
    if (attn_mpi_all_gather(&mpi, parts, sizeof *parts)) return 3;
    for (int r = 0; r < 3; r++)
        if (parts[r][0] != r || parts[r][7] != r) return 4;
    if (mpi.rank == 1) sleep(6);
    if (attn_mpi_all_gather(&mpi, parts, sizeof *parts)) MPI_Abort(MPI_COMM_WORLD, 1);
    attn_mpi_end(&mpi);
    MPI_Finalize();
    return 0;
}
