# Completion of hapax for bash, made by `hapax completion bash`. It needs no other package: read it where it is,
# or put it into a folder of bash-completion's, under the name hapax.

_hapax_command() { # noun, verb
	case "$1 $2" in
@COMMANDS@
	*) return 1 ;;
	esac
}

_hapax_verbs() { # noun
	verbs=
	case $1 in
@VERBS@
	esac
}

_hapax_nouns='@NOUNS@--help --version'

_hapax_files() { # -f or -d, how it begins, what stands before it
	local file
	compopt -o filenames 2>/dev/null
	while IFS= read -r file; do COMPREPLY+=("$3$file"); done < <(compgen "$1" -- "$2")
}

# Behind an @, which is part of no file's name: so what bash does for names of files is done here.
_hapax_at() { # how it begins, what stands before it
	local file
	while IFS= read -r file; do
		if [[ -d $file ]]; then file+=/ && compopt -o nospace 2>/dev/null; fi
		COMPREPLY+=("$2@$(printf %q "$file")")
	done < <(compgen -f -- "$1")
}

_hapax_offer() { # words, how they begin, what stands before them
	local word
	for word in $1; do [[ $word != "$2"* ]] || COMPREPLY+=("$3$word"); done
}

_hapax_value() { # kind, how it begins, what stands before it
	case $1 in
	file) _hapax_files -f "$2" "$3" ;;
	dir) _hapax_files -d "$2" "$3" ;;
	json) [[ $2 != @* ]] || _hapax_at "${2#@}" "$3" ;;
	any | '?' | '') ;;
	*) _hapax_offer "${1//|/ }" "$2" "$3" ;;
	esac
}

_hapax_kind() { # option; its kind is in $kind: empty for a switch
	local option
	kind=
	for option in $options; do [[ $option != "$1="* ]] || kind=${option#*=}; done
}

# Looks through the words before the current one: $kind is what the last of them wants behind it, $place the operand that comes.
_hapax_look() { # the first word to look at
	local i
	kind= place=0 plain=
	for ((i = $1; i < n; i++)); do
		if [[ -n $kind && ( $kind != '?' || ${all[i]} == [0-9]* ) ]]; then
			kind=
		elif [[ -z $plain && ${all[i]} == -- ]]; then
			plain=1
		elif [[ -z $plain && ${all[i]} == -?* ]]; then
			_hapax_kind "${all[i]}"
		else
			kind= place=$((place + 1))
		fi
	done
}

_hapax_names() { # options
	local option
	names=
	for option in $1; do [[ $option != --* ]] || names+=" ${option%%=*}"; done
}

# The operand of the place where the cursor is.
_hapax_operand() {
	local operand at=0
	for operand in $operands; do
		[[ $at -ne $place && $operand != *+ ]] || kind=${operand%+}
		at=$((at + 1))
	done
}

_hapax_answer() {
	local words= options= operands= verbs= names= kind= place= plain=
	_hapax_verbs "${all[1]}"
	if [[ $n -eq 2 && -n $verbs && $current != -* ]]; then
		_hapax_offer "$verbs" "$current"
		return
	fi
	if [[ $n -eq 2 ]]; then _hapax_command "${all[1]}" ''; else _hapax_command "${all[1]}" "${all[2]}"; fi ||
		{ [[ $n -ne 2 || -z $verbs ]] || options=--help; }
	_hapax_look $((words + 1))
	if [[ -n $kind && $kind != '?' ]]; then
		_hapax_value "$kind" "$current"
	elif [[ -z $plain && $current == --*=* ]]; then
		_hapax_kind "${current%%=*}"
		_hapax_value "$kind" "${current#*=}" "${current%%=*}="
	elif [[ -z $plain && $current == -* ]]; then
		_hapax_names "$options"
		_hapax_offer "$names" "$current"
	else
		kind=
		_hapax_operand
		_hapax_value "$kind" "$current"
	fi
}

_hapax() {
	local line=$COMP_LINE all=() n=-1 i piece current kept
	COMPREPLY=()
	for ((i = 0; i <= COMP_CWORD; i++)); do
		piece=${COMP_WORDS[i]}
		if [[ $i -eq 0 || $line == [[:space:]]* ]]; then n=$((n + 1)); fi
		all[n]=${all[n]-}$piece
		line=${line#"${line%%[![:space:]]*}"}
		line=${line#"$piece"}
	done
	current=${all[n]}
	if [[ $n -eq 1 ]]; then _hapax_offer "$_hapax_nouns" "$current"; else _hapax_answer; fi
	if [[ $piece == [=:]* && $COMP_WORDBREAKS == *"${piece:0:1}"* ]]; then piece=${piece:1}; fi
	kept=${current%"$piece"}
	kept=${kept%@} # at which bash cuts, and which it replaces all the same
	for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]=${COMPREPLY[i]#"$kept"}; done
}

complete -F _hapax hapax
