#!/usr/bin/env python3
"""tests/python/bench.py [FOLDER]: what forward costs beside the call in C, in processor time: for a small encoder and,
where FOLDER has the weights of MiniLM (scripts/fetch_minilm.py), for MiniLM with 128 tokens. Python and C run in turns;
the best of many runs counts."""
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from lib.attnc import ROOT, run  # noqa: E402
from support import Packages, suitable  # noqa: E402

ROUNDS = 5
C = """#include "%(p)s.h"
#include "attn_runtime.h"
#include <stdio.h>
#include <time.h>

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

int main(int argc, char **argv) {
    attn_file file;
    %(p)s_ctx ctx;
    if (argc != 2 || attn_map_file(argv[1], &file) || %(p)s_init(&ctx, file.data, file.size, NULL)) return 1;
    const size_t bytes = %(P)s_WORKSPACE_BYTES(1);
    void *workspace = attn_alloc(bytes);
    int32_t tokens[%(n)d];
    const int32_t length = %(n)d;
    for (int i = 0; i < length; i++) tokens[i] = 1 + i;
    %(p)s_input input = {.size = sizeof input, .batch = 1, .lengths = &length, .tokens = tokens};
    %(p)s_output output = {.size = sizeof output};
    %(results)s
    double best = 1e30;
    for (int r = 0; r < %(repeats)d; r++) {
        const double begin = now();
        for (int i = 0; i < %(calls)d; i++)
            if (%(p)s_forward(&ctx, &input, &output, workspace, bytes)) return 2;
        const double took = (now() - begin) / %(calls)d;
        best = took < best ? took : best;
    }
    printf("%%f\\n", best);
}
"""


def in_python(model, tokens, calls, repeats):
    forward, best = model.forward, 1e30
    for _ in range(repeats):
        begin = time.process_time()
        for _ in range(calls):
            forward(tokens=tokens)
        best = min(best, (time.process_time() - begin) / calls)
    return best * 1e6


def compare(packages, spec, n, calls, repeats, weights="random:1"):
    """Microseconds of a call in Python and in C."""
    import numpy
    module = packages.get(os.path.join(ROOT, "specs", spec + ".attn"), target="scalar,avx2,avx512", weights=weights,
                          cflags=None)
    folder = os.path.dirname(module.__file__)
    results = module.load().forward(tokens=[1] * n)
    arrays = "".join("static float %s[%d];\n    output.%s = %s;\n    " % (name, value.size, name, name)
                     for name, value in results.items())
    program = packages.path(spec + ".bench")
    with open(program + ".c", "w", encoding="utf-8") as file:
        file.write(C % {"p": spec, "P": spec.upper(), "n": n, "calls": calls, "repeats": repeats, "results": arrays})
    run("cc", "-std=c11", "-D_GNU_SOURCE", "-O2", "-I", folder, program + ".c", os.path.join(folder, spec + ".c"),
        os.path.join(folder, "attn_runtime.c"), "-o", program, "-lpthread", status=0)
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(in_python(module.load(), numpy.arange(1, n + 1, dtype="int32"), calls, repeats))
        theirs.append(float(run(program, os.path.join(folder, spec + ".attnw"), status=0).stdout))
    return min(ours), min(theirs)


def main():
    python, missing = suitable()
    if not python:
        sys.exit("missing: " + ", ".join(missing))
    if python != sys.executable and "ATTNC_AGAIN" not in os.environ:
        return subprocess.run([python, *sys.argv], env={**os.environ, "ATTNC_AGAIN": "1"}, check=False).returncode
    with tempfile.TemporaryDirectory() as folder:
        packages = Packages(folder)
        ours, theirs = compare(packages, "small_encoder", 3, 2000, 100)
        print("small_encoder, 3 tokens: %.2f us in Python, %.2f us in C, %.2f us more" % (ours, theirs, ours - theirs))
        if len(sys.argv) > 1:
            ours, theirs = compare(packages, "minilm", 128, 1, 20, sys.argv[1])
            print("minilm, 128 tokens: %.2f ms in Python, %.2f ms in C, %.2f %% more"
                  % (ours / 1e3, theirs / 1e3, 100 * (ours / theirs - 1)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
