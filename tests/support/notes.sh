# notes.sh: for checks that find several things wrong before they are judged. To be sourced.
bad=
# Fails if anything was noted since the last one.
result() { # name
	if [ -z "$bad" ]; then echo "ok $1"; else
		echo "not ok $1"
		printf '%s\n' "$bad"
	fi
	bad=
}
note() {
	bad="$bad$1
"
}
