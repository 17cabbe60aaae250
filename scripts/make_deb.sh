#!/bin/bash
# scripts/make_deb.sh VERSION DIR: DIR/attnc_VERSION_ARCH.deb from what `make install` leaves, with dpkg-deb. The time
# of all files is that of the last commit, so that the same build gives the same bytes.
set -eu
cd "$(dirname "$0")/.."

version=$1 build=$(realpath "$2")
arch=$(dpkg --print-architecture)
multiarch=$(cc -dumpmachine 2>/dev/null || clang -dumpmachine)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
chmod 755 "$tree"

make -s install B="$build" DESTDIR="$tree" PREFIX=/usr LIB="lib/${multiarch/-pc-/-}"
strip "$tree/usr/bin/attnc"
gzip -9n "$tree/usr/share/man/man1/attnc.1"
mv "$tree/usr/share/doc/attnc/LICENSE" "$tree/usr/share/doc/attnc/copyright"

# The packages of the libraries that the program is linked with.
needs() {
    local library path
    objdump -p "$tree/usr/bin/attnc" | awk '/NEEDED/ { print $2 }' | while read -r library; do
        path=$(ldd "$tree/usr/bin/attnc" | awk -v name="$library" '$1 == name { print $3 }')
        dpkg-query -S "$(realpath "$path")" "$path" 2>/dev/null | head -n 1 | cut -d: -f1
    done | sort -u | paste -sd, | sed 's/,/, /g'
}

mkdir "$tree/DEBIAN"
cat >"$tree/DEBIAN/control" <<EOF
Package: attnc
Version: $version
Architecture: $arch
Maintainer: The attnc developers <attnc@localhost>
Installed-Size: $(du -sk --exclude=DEBIAN "$tree" | cut -f1)
Depends: $(needs)
Recommends: clang | gcc
Suggests: libonig-dev, libcjson-dev, libutf8proc-dev
Section: devel
Priority: optional
Description: compiler from the spec of a transformer to C with SIMD intrinsics
 attnc reads the spec of a transformer, or imports a public model, and writes
 self-contained C for it, specialized to every constant and checked against an
 interpreter of the same spec.
EOF
(cd "$tree" && find usr -type f -print0 | sort -z | xargs -0 md5sum >DEBIAN/md5sums)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 0)
export SOURCE_DATE_EPOCH
find "$tree" -newermt "@$SOURCE_DATE_EPOCH" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zxz --build "$tree" "$build/attnc_${version}_$arch.deb" >/dev/null
echo "$build/attnc_${version}_$arch.deb"
