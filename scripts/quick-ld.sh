#!/bin/sh
# Which linker is the quickest here, as an option of the compiler; none where there is only the usual one.
# Test programs, fuzzers and mutants are linked by it, what we deliver is not.
for ld in gold lld; do
	if command -v "ld.$ld" >/dev/null; then
		echo "-fuse-ld=$ld"
		exit
	fi
done
