/* The collective of a model that several processes share (`attnc compile --ranks N`), over MPI 3 or later. C11 and
 * C++17; a program that compiles attn_mpi.c links MPI, by mpicc for instance. */
#ifndef ATTN_MPI_H
#define ATTN_MPI_H

#include <mpi.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ATTN_MPI_MOST_RANKS = 1024 };

/* Set by attn_mpi_begin and then only read; NAME_options takes `rank`, and this struct as the `group`. */
typedef struct attn_mpi {
    MPI_Comm comm, notes; /* of collectives, and of what ranks tell each other after a time-out */
    int rank, ranks;
    double seconds;
} attn_mpi;

/* Joins the processes of a communicator, of which there must be `ranks`, NAME_RANKS; all of them call it. A collective
 * that takes longer than `seconds` has failed: the ranks that have come then name, on standard error, those that have
 * not; 0 waits for ever, with less latency. Returns 0, or 1 with a message on standard error. */
int attn_mpi_begin(attn_mpi *mpi, MPI_Comm comm, int ranks, double seconds);

/* NAME_options.all_gather: `group` is an attn_mpi *. Returns 0, or 1 with a message on standard error, after which the
 * program should end the job by MPI_Abort. Callable from the thread that has initialized MPI. */
int attn_mpi_all_gather(void *group, void *parts, size_t bytes);

/* Frees the communicators; all ranks call it, before MPI_Finalize. */
void attn_mpi_end(attn_mpi *mpi);

#ifdef __cplusplus
}
#endif

#endif
