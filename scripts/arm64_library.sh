#!/bin/bash
# scripts/arm64_library.sh DIR: unpacks the arm64 packages of libcjson, zlib and libzstd into DIR, for `make aarch64` on
# another machine.
#
# apt-get fetches them by lists of its own: the packages and architectures of this machine stay as they are, and
# neither root nor a foreign architecture is needed. Where the machine's sources have no arm64, the exit status is 1.
set -eu

if [ $# != 1 ]; then
    echo "usage: scripts/arm64_library.sh DIR" >&2
    exit 2
fi
for program in apt-get dpkg-deb; do
    command -v $program >/dev/null || { echo "libraries for arm64: there is no $program here" >&2; exit 1; }
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/lists/partial" "$scratch/cache/archives/partial" "$scratch/root"
apt=(apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=root
    -o Dir::State::Lists="$scratch/lists" -o Dir::State::status=/dev/null -o Dir::Cache="$scratch/cache")
cd "$scratch"
"${apt[@]}" update >log 2>&1 || true # a source without arm64 is no reason yet
if ! "${apt[@]}" download libcjson1 libcjson-dev zlib1g zlib1g-dev libzstd1 libzstd-dev >>log 2>&1; then
    echo "libraries for arm64 cannot be fetched: $(tail -n 1 log)" >&2
    exit 1
fi
for package in *.deb; do dpkg-deb -x "$package" root; done
# Where a package puts a library into /lib, its link in /usr/lib names the place on the machine that it is for.
library=root/usr/lib/aarch64-linux-gnu
if [ -d root/lib/aarch64-linux-gnu ]; then cp -a root/lib/aarch64-linux-gnu/. $library/; fi
for link in $library/*.so; do
    if [ -L "$link" ]; then ln -sf "$(basename "$(readlink "$link")")" "$link"; fi
done
cd "$OLDPWD"
mkdir -p "$1"
cp -a "$scratch/root/." "$1/"
