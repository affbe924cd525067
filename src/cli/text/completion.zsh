#compdef hapax
# Completion of hapax for zsh, made by `hapax completion zsh`: for a folder of $fpath, under the name _hapax.

_hapax_json() { compset -P @ && _files }

_hapax_command() { # noun, verb. _arguments is to see what stands behind these words
	case "$1 $2" in
@COMMANDS@
	*) return 1 ;;
	esac
}

_hapax_verbs() { # noun
	verbs=()
	case $1 in
@VERBS@
	esac
}

_hapax_nouns() {
	nouns=(
@NOUNS@
		'--help:this text'
		'--version:which one this is'
	)
}

_hapax() {
	local -a nouns verbs
	local curcontext="$curcontext" context state line
	local -A opt_args
	if (( CURRENT == 2 )); then
		_hapax_nouns
		_describe -t commands command nouns
		return
	fi
	_hapax_verbs $words[2]
	if (( CURRENT == 3 && $#verbs )) && [[ $words[3] != -* ]]; then
		_describe -t commands verb verbs
	elif (( CURRENT == 3 )); then
		_hapax_command $words[2] '' || { (( $#verbs )) && compadd -- --help }
	else
		_hapax_command $words[2] $words[3]
	fi
}

# Called by the completion, or read: then it makes itself known.
if [[ $funcstack[1] == _hapax ]]; then
	_hapax "$@"
else
	compdef _hapax hapax
fi
