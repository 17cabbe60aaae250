/* Programs that compile all files of the runtime do without MPI: this one is empty where mpicc does not compile it. */
#if defined(__has_include)
#if __has_include(<mpi.h>)
#include "attn_mpi.h"

#include <limits.h>
#include <stdio.h>

enum { HERE = 1, TESTS_A_LOOK = 256 }; /* the tag of a note; tests between two looks at the clock */
static const double NOTE_SECONDS = 2;  /* for the notes of the ranks that wait, too */

/* Says what MPI says of an error; returns 1. */
static int failed(const attn_mpi *mpi, const char *what, int error) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(error, text, &length);
    fprintf(stderr, "rank %d: %s: %s\n", mpi->rank, what, text);
    return 1;
}

int attn_mpi_begin(attn_mpi *mpi, MPI_Comm comm, int ranks, double seconds) {
    int size = 0, error = MPI_Comm_size(comm, &size);
    mpi->seconds = seconds;
    mpi->rank = mpi->ranks = 0;
    if (!error) error = MPI_Comm_rank(comm, &mpi->rank);
    if (error) return failed(mpi, "the ranks cannot be counted", error);
    mpi->ranks = size;
    if (size != ranks || size > ATTN_MPI_MOST_RANKS) {
        if (mpi->rank == 0)
            fprintf(stderr, "the model is divided among %d ranks, and %d processes have been started\n", ranks, size);
        return 1;
    }
    error = MPI_Comm_dup(comm, &mpi->comm);
    if (!error) error = MPI_Comm_dup(comm, &mpi->notes);
    if (!error) error = MPI_Comm_set_errhandler(mpi->comm, MPI_ERRORS_RETURN);
    if (!error) error = MPI_Comm_set_errhandler(mpi->notes, MPI_ERRORS_RETURN);
    return error ? failed(mpi, "the ranks cannot join", error) : 0;
}

/* Tells all ranks that this one waits, listens to those that wait as well, and names the others. */
static void name_missing(const attn_mpi *mpi, double waited) {
    static char heard[ATTN_MPI_MOST_RANKS];
    static MPI_Request sent[ATTN_MPI_MOST_RANKS];
    for (int r = 0; r < mpi->ranks; r++) {
        heard[r] = r == mpi->rank;
        if (r != mpi->rank) MPI_Isend(NULL, 0, MPI_BYTE, r, HERE, mpi->notes, &sent[r]);
    }
    const double end = MPI_Wtime() + NOTE_SECONDS;
    while (MPI_Wtime() < end) {
        int any = 0;
        MPI_Status status;
        if (MPI_Iprobe(MPI_ANY_SOURCE, HERE, mpi->notes, &any, &status) || !any) continue;
        MPI_Recv(NULL, 0, MPI_BYTE, status.MPI_SOURCE, HERE, mpi->notes, MPI_STATUS_IGNORE);
        heard[status.MPI_SOURCE] = 1;
    }
    for (int r = 0; r < mpi->ranks; r++)
        if (!heard[r])
            fprintf(stderr, "rank %d: rank %d of %d is missing: it has not come to the others for %.0f s\n", mpi->rank,
                    r, mpi->ranks, waited);
    fflush(stderr);
}

int attn_mpi_all_gather(void *group, void *parts, size_t bytes) {
    const attn_mpi *mpi = (const attn_mpi *)group;
    if (bytes > INT_MAX) {
        fprintf(stderr, "rank %d: %zu bytes are more than a message of MPI has\n", mpi->rank, bytes);
        return 1;
    }
    const int count = (int)bytes;
    if (!(mpi->seconds > 0)) {
        const int error = MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, parts, count, MPI_BYTE, mpi->comm);
        return error ? failed(mpi, "a collective has failed", error) : 0;
    }
    MPI_Request request;
    int error =
        MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, parts, count, MPI_BYTE, mpi->comm, &request);
    const double begin = MPI_Wtime();
    for (int done = 0; !error;) {
        for (int i = 0; !error && !done && i < TESTS_A_LOOK; i++) error = MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (done) return 0;
        const double waited = MPI_Wtime() - begin;
        if (error || waited < mpi->seconds) continue;
        name_missing(mpi, waited);
        return 1;
    }
    return failed(mpi, "a collective has failed", error);
}

void attn_mpi_end(attn_mpi *mpi) {
    MPI_Comm_free(&mpi->comm);
    MPI_Comm_free(&mpi->notes);
}
#define ATTN_MPI_COMPILED 1
#endif
#endif

#ifndef ATTN_MPI_COMPILED
typedef int attn_mpi_is_left_out;
#endif
