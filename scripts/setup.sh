#!/usr/bin/env bash
# Installs the Debian packages that building, testing and checking Fulgur needs. Safe to run again; asks nothing.
set -euo pipefail

build_packages=(
  g++ clang cmake ninja-build ccache git pkg-config
  libabsl-dev libboost1.81-dev libssl-dev
  libsimdjson-dev nlohmann-json3-dev libcli11-dev libspdlog-dev libfmt-dev libyaml-cpp-dev
  libcurl4-openssl-dev libpcre2-dev libicu-dev libxxhash-dev libzstd-dev libhwloc-dev
  libxlsxwriter-dev zlib1g-dev gnuplot-nox fonts-dejavu-core fonts-wqy-microhei
)
test_packages=(
  libgtest-dev libgmock-dev libbenchmark-dev librapidcheck-dev
  clang-format clang-tidy libclang-rt-14-dev valgrind shellcheck curl python3 python3-venv
  libreoffice-calc-nogui
)

missing=()
for package in "${build_packages[@]}" "${test_packages[@]}"; do
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

sudo=""
[ "$(id -u)" = 0 ] || sudo=sudo
echo "installing ${#missing[@]} Debian packages: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -qq
$sudo apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
