#!/bin/bash
# scripts/install_packages.sh USE…: installs what these uses lack, with apt-get, on Debian and its kin.
#
#     build      attnc alone                              python     packages of models for Python
#     demo       the examples too                         rust       crates of models
#     fetch      fetching weights                         page       pages of models, and a browser
#     coverage   make coverage                            aarch64    make aarch64, and running it on another machine
#     wasm       running what is compiled for browsers    systems    running what is compiled for other systems
#     boards     emulated microcontrollers                riscv      running C with the vectors of RISC-V
#     mpi        models that several processes share
#     test       make check, with what stands on the right and `wasm`, without which tests are skipped
#
# What is present is left alone, whoever installed it. As root, or where sudo asks no password, the rest is installed;
# else the packages are named and the exit status is 1.
# Environment: CC, the compiler that will be used (clang).
set -eu

extra="aarch64 wasm python rust page systems boards riscv mpi" # uses without which tests are skipped
compiler=${CC:-clang}
missing=()

# need PACKAGE TEST…: notes the package if the test fails.
need() {
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || missing+=("$package")
}

have_program() { command -v "$1"; }
have_python_headers() { [ -e "$("$1" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')/Python.h" ]; }
have_pip() { python3 -m pip --version || python3 -c "import ensurepip, venv"; }

# A header that the compiler finds; before there is a compiler, one where packages put it.
have_header() {
    if command -v "${compiler%% *}"; then
        $compiler -E -include "$1" -x c /dev/null
    else
        [ -e "/usr/include/$1" ]
    fi
}

clang_major() { clang -dumpversion 2>/dev/null | cut -d. -f1; }

# Clang recommends its sanitizers' libraries, no more; which package holds them is known when clang is there.
have_sanitizers() {
    command -v clang || return 0
    echo 'int main(void) { return 0; }' | clang -fsanitize=thread -x c - -o /dev/null
}

need_build() {
    need make have_program make
    need "${compiler%% *}" have_program "${compiler%% *}"
    need binutils have_program ar
    need libc6-dev have_header stdlib.h
    need flex have_program flex
    need bison have_program bison
    need libcjson-dev have_header cjson/cJSON.h
    need zlib1g-dev have_header zlib.h
    need libzstd-dev have_header zstd.h
}

need_demo() {
    need_build
    need libutf8proc-dev have_header utf8proc.h
    need libonig-dev have_header oniguruma.h
    need libsndfile1-dev have_header sndfile.h
    need libsamplerate0-dev have_header samplerate.h
}

need_fetch() {
    need python3 have_program python3
    need python3-pip have_pip
    need ca-certificates [ -e /etc/ssl/certs/ca-certificates.crt ]
}

need_test() {
    need_demo
    need python3 have_program python3
    need clang have_program clang
    need gcc have_program gcc
    need g++ have_program g++
    need libcmocka-dev have_header cmocka.h
    need clang-tidy have_program clang-tidy
    need valgrind have_program valgrind
    need "libclang-rt-$(clang_major)-dev" have_sanitizers
    need gawk have_program awk
    need git have_program git
    need pkgconf have_program pkg-config
    need cmake have_program cmake
}

need_coverage() {
    need_test
    need llvm have_program llvm-profdata
    need llvm have_program llvm-cov
}

need_aarch64() {
    [ "$(uname -m)" = aarch64 ] && return
    need gcc-aarch64-linux-gnu have_program aarch64-linux-gnu-gcc
    need libc6-dev-arm64-cross [ -e /usr/aarch64-linux-gnu/include/stdlib.h ]
    need qemu-user have_program qemu-aarch64
}

# The first version with version 0.11 of the intrinsics.
have_riscv_vectors() {
    local cc
    for cc in clang clang-16; do
        [ "$("$cc" -dumpversion 2>/dev/null | cut -d. -f1)" -ge 16 ] 2>/dev/null && return
    done
    return 1
}

need_riscv() {
    need clang-16 have_riscv_vectors
    need gcc-riscv64-linux-gnu have_program riscv64-linux-gnu-gcc
    need libc6-dev-riscv64-cross [ -e /usr/riscv64-linux-gnu/include/stdlib.h ]
    need qemu-user have_program qemu-riscv64
}

need_wasm() {
    need clang have_program clang
    need lld have_program wasm-ld
    need nodejs have_program node
    need wasi-libc [ -e /usr/lib/wasm32-wasi/libc.a ]
}

# tests/python takes Debian's Python where that on the path lacks any of these.
need_python() {
    local python=/usr/bin/python3
    [ -x $python ] || python=python3
    need python3-numpy $python -c 'import numpy'
    need python3-setuptools $python -c 'import setuptools'
    need python3-wheel $python -c 'import wheel'
    need python3-pip $python -c 'import pip'
    need python3-dev have_python_headers $python
}

need_rust() {
    need_build
    need rustc have_program rustc
    need cargo have_program cargo
    need rustfmt have_program rustfmt
}

have_browser() { command -v chromium || command -v chromium-browser || command -v google-chrome; }

need_page() {
    need clang have_program clang
    need lld have_program wasm-ld
    need nodejs have_program node
    need chromium have_browser
}

need_systems() {
    need gcc-mingw-w64-x86-64 have_program x86_64-w64-mingw32-gcc
    need wine have_program wine
    need wine64 [ -e /usr/lib/wine/wine64 ]
    need gcc-s390x-linux-gnu have_program s390x-linux-gnu-gcc
    need libc6-dev-s390x-cross [ -e /usr/s390x-linux-gnu/include/stdint.h ]
    need qemu-user have_program qemu-s390x
}

need_boards() {
    need gcc-arm-none-eabi have_program arm-none-eabi-gcc
    need libnewlib-arm-none-eabi [ -e /usr/lib/arm-none-eabi/newlib/librdimon.a ]
    need qemu-system-arm have_program qemu-system-arm
    need gcc-riscv64-unknown-elf have_program riscv64-unknown-elf-gcc
    need qemu-system-misc have_program qemu-system-riscv32
}

need_mpi() {
    need libopenmpi-dev have_program mpicc
    need openmpi-bin have_program mpirun
}

find_missing() {
    missing=()
    for use in "$@"; do
        if ! declare -F "need_$use" >/dev/null; then
            echo "usage: scripts/install_packages.sh build|demo|fetch|test|coverage|${extra// /|}…" >&2
            exit 2
        fi
        "need_$use"
    done
    ((${#missing[@]})) || return 0
    mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)
}

give_up() {
    echo "$1; missing packages (by their Debian names): ${missing[*]}" >&2
    exit 1
}

install_missing() {
    command -v apt-get >/dev/null || give_up "there is no apt-get here"
    local as_root=()
    if [ "$(id -u)" != 0 ]; then
        sudo -n true 2>/dev/null || give_up "installing needs root, or sudo without a password"
        as_root=(sudo -n)
    fi
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    echo "installing ${missing[*]}"
    local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=120)
    "${apt[@]}" update >"$log" 2>&1 || true # a stale list may do
    if ! "${apt[@]}" install -y --no-install-recommends "${missing[@]}" >>"$log" 2>&1; then
        tail -n 10 "$log" >&2
        give_up "apt-get failed"
    fi
}

for round in 1 2 3; do # what is found missing may depend on what has been installed
    find_missing "$@"
    ((${#missing[@]})) || break
    ((round < 3)) || give_up "still not found after apt-get"
    install_missing
done

# Not packages of this machine: `make aarch64` would fetch them, and may later find no network.
get_arm64_libraries() {
    local root=$here/../build/aarch64/root
    [ "$(uname -m)" = aarch64 ] || [ -e "$root/usr/lib/aarch64-linux-gnu/libzstd.so" ] ||
        "$here/arm64_library.sh" "$root"
}

[[ $0 == */* ]] && here=${0%/*} || here=.
for use in "$@"; do
    case $use in
    test)
        for more in $extra; do
            "$here/install_packages.sh" "$more" || echo "the tests of $more will be skipped" >&2
        done
        ;;
    aarch64) get_arm64_libraries ;;
    esac
done
