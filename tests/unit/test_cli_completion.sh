#!/usr/bin/env bash
# hapax completion: what bash and zsh make of it, at a real terminal, key by key; and every command, option and word of the help is
# offered. Needs no bash-completion.
set -u
. tests/support/cli.sh

"$hapax" completion bash >hapax.bash && bash -n hapax.bash
result the_script_for_bash
mkdir functions && "$hapax" completion zsh >functions/_hapax && [ "$(head -n 1 functions/_hapax)" = "#compdef hapax" ]
result the_script_for_zsh
exits 2 completion && exits 2 completion fish && exits 2 completion bsh && complains "did you mean bash?" && exits 2 completion bash zsh
result shells_that_there_are_not
! grep -n "$(printf '\t ')\|'[^']*$(printf '\033')" hapax.bash functions/_hapax >out
result nothing_odd_in_them

# --- a terminal: LINE is typed, \t is the key; what then stands on the line is printed

mkdir -p work/workflows work/nested "work/two words" && touch work/config.json work/notes.txt work/nested/inner.json && mkdir bin && ln -s "$hapax" bin/hapax
cat >type.py <<'END'
# type.py SHELL FILE [read]: zsh finds the script in its $fpath, or is made to read it. Takes "typed => expected" lines, types each into an interactive shell, and compares what the line has become.
import os, pty, re, select, signal, sys, time
shell, read, cases = sys.argv[1], sys.argv[3:] == ["read"], [l.rstrip("\n").split(" => ") for l in open(sys.argv[2]) if " => " in l]
args = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}[shell]
setup = {
    "bash": r"""PS1=; PS2=; bind 'set bell-style none'; bind 'set show-all-if-ambiguous off'; bind 'set enable-bracketed-paste off'
shown() { printf '\n<%s>\n' "$READLINE_LINE"; READLINE_LINE=; READLINE_POINT=0; }; bind -x '"\C-x\C-p": shown'; . ../hapax.bash; echo rea''dy
""",
    "zsh": r"""PS1=; PS2=; unsetopt zle_bracketed_paste prompt_sp; setopt no_beep no_list_beep no_auto_menu; fpath=(../functions $fpath)
autoload -Uz compinit && compinit -u -D; shown() { print -r -- $'\n'"<$BUFFER>"; BUFFER= }; zle -N shown; bindkey '^X^P' shown; echo rea''dy
""",
}[shell]
if read:
    setup = setup.replace("fpath=(../functions $fpath)", ":").replace("compinit -u -D;", "compinit -u -D; . <(hapax completion zsh);")
env = {"PATH": os.path.abspath("../bin") + ":" + os.environ["PATH"], "TERM": "dumb", "LC_ALL": "C.UTF-8", "HOME": os.getcwd(), "INPUTRC": "/dev/null", "COLUMNS": "400"}
pid, fd = pty.fork()
if pid == 0:
    os.execvpe(args[0], args, env)
def wait_for(pattern):
    got, end = b"", time.time() + 20
    while time.time() < end:
        if select.select([fd], [], [], 0.1)[0]:
            try: got += os.read(fd, 65536)
            except OSError: break
            found = re.search(pattern, got, re.S)
            if found: return found
    sys.exit("not ok %s_answers\n%r" % (shell, got))
os.write(fd, setup.encode())
wait_for(rb"ready\r?\n")
for typed, expected in cases:
    os.write(fd, typed.replace("\\t", "\t").encode() + b"\x18\x10")
    line = wait_for(rb"\n<([^>]*)>\r?\n").group(1).decode()
    expected = expected.replace("$", "")
    print("%s %s: %s%s" % ("ok" if line == expected else "not ok", shell, typed, "" if line == expected else " => '%s', not '%s'" % (line, expected)))
os.kill(pid, signal.SIGKILL)
os.waitpid(pid, 0)
END
# A $ marks the end of a line that ends with a blank.
cat >both <<'END'
hapax ent\t => hapax entity $
hapax comp\tb\t => hapax completion bash $
hapax entity cr\t => hapax entity create $
hapax key create --sc\tad\t => hapax key create --scope admin $
hapax key create --scope=re\t => hapax key create --scope=read $
hapax run list --status COMP\t => hapax run list --status COMPLETED $
hapax run list --stat\tCANCELLI\t => hapax run list --status CANCELLING $
hapax acc\tle\t => hapax account ledger $
hapax account create alice --balance 5 --js\t => hapax account create alice --balance 5 --json $
hapax batch items b --decision a\t => hapax batch items b --decision accepted $
hapax job list --status=P\t => hapax job list --status=PARKED $
hapax serve --config conf\t => hapax serve --config config.json $
hapax serve --config=conf\t => hapax serve --config=config.json $
hapax serve --workflows wor\t => hapax serve --workflows workflows/
hapax check conf\tno\tinn\t => hapax check config.json notes.txt inn
hapax check nes\tin\t => hapax check nested/inner.json $
hapax graph nested/inner.json -o no\t => hapax graph nested/inner.json -o notes.txt $
hapax graph --output no\t => hapax graph --output notes.txt $
hapax init two\t => hapax init two\ words/
hapax run start w --input @no\t => hapax run start w --input @notes.txt $
hapax entity create w --data @nes\tin\t => hapax entity create w --data @nested/inner.json $
hapax run start w --input no\t => hapax run start w --input no
hapax entity resolve doc d1 print not\t => hapax entity resolve doc d1 print not_done $
hapax run resolve run_1 try d\t => hapax run resolve run_1 try done $
hapax run resolve --server http://127.0.0.1:1 run_1 try d\t => hapax run resolve --server http://127.0.0.1:1 run_1 try done $
hapax run resolve --output=1 -- run_1 try d\t => hapax run resolve --output=1 -- run_1 try done $
hapax run show --wait 5s r\t => hapax run show --wait 5s r
hapax run show --wait 5s run_1 --js\t => hapax run show --wait 5s run_1 --json $
hapax gate sh\t => hapax gate show $
hapax gate --up\t => hapax gate --upstream $
hapax gate show k --adm\t => hapax gate show k --admin $
hapax run --he\t => hapax run --help $
hapax --ver\t => hapax --version $
hapax nonsense --\t => hapax nonsense --
hapax db mig\t--pr\t => hapax db migrate --print $
hapax why entity:doc:d1 --js\t => hapax why entity:doc:d1 --json $
END
type_all() { # shell
	(cd work && timeout 120 python3 ../type.py "$1" ../typed) >typed.out 2>&1
	local code=$?
	cat typed.out
	[ "$code" -eq 0 ] && [ "$(grep -c '^ok ' typed.out)" -gt 20 ]
}
cp both typed
echo 'hapax run sta\tw --wa\t--in\t => hapax run start w --wait --input $' >>typed
type_all bash
result everything_was_typed_into_bash

# --- bash: every command, option and word of the help is offered, and nothing else

"$hapax" --help | sed -n 's/^  \([a-z]\+\( [a-z-]\+\)\?\)  .*/\1/p' >all
[ "$(wc -l <all)" -gt 40 ]
result all_commands
cat >offered.sh <<'END'
. ./hapax.bash
offered() { # words of the line, the last of which is completed; sorted, one to a line
	COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
	_hapax
	printf '%s\n' "${COMPREPLY[@]}" | sort -u
}
bad=0
compare() { # what, expected
	[ "$3" = "$2" ] || { echo "$1: offered $(tr '\n' ' ' <<<"$3"), not $(tr '\n' ' ' <<<"$2")" && bad=1; }
}
nouns=$({ cut -d ' ' -f 1 all && echo --help && echo --version; } | sort -u)
compare hapax "$nouns" "$(offered hapax '')"
while read -r noun verb; do
	help=$("$hapax" $noun $verb --help)
	[ -n "$verb" ] || help=$(sed '/^exit codes/q' <<<"$help")
	compare "$noun $verb" "$(grep -oE '^  --[a-z-]+' <<<"$help" | tr -d ' ' | sort -u)" "$(offered hapax $noun $verb --)"
	[ -z "$verb" ] || compare "$noun" "$(sed -n "s/^$noun //p" all | sort)" "$(offered hapax $noun '')"
	while read -r option words; do
		compare "$noun $verb $option" "$(tr ' ' '\n' <<<"$words" | sort)" "$(offered hapax $noun $verb $option '')"
	done < <(awk '/^  --/ { option = $1 } /^ +one of:/ { sub(/^ +one of: /, ""); print option, $0 }' <<<"$help")
done <all
exit $bad
END
hapax=$hapax bash offered.sh >out 2>err && silent err
result bash_offers_what_the_help_has

# --- zsh

if ! command -v zsh >/dev/null; then
	echo "not ok zsh is needed to try its completion: scripts/install-packages.sh test"
	exit 1
fi
zsh -n functions/_hapax >out 2>&1
result zsh_reads_it
cp both typed
echo 'hapax run sta\tw --wa\t--in\t => hapax run start w --wait --input=' >>typed
# zsh puts an = behind an option with a value, as its own commands do.
sed -i -e 's/--scope admin/--scope=admin/; s/--status CANCELLING/--status=CANCELLING/; s/--upstream \$/--upstream=/; s/k --admin \$/k --admin=/' typed
type_all zsh
result everything_was_typed_into_zsh
head -n 6 typed >few
(cd work && timeout 60 python3 ../type.py zsh ../few read) >out 2>&1 && [ "$(grep -c '^ok' out)" = 6 ]
result zsh_that_reads_it
# Each option of each command is known to it: typed but for its last letter it becomes itself, unless it could become another.
while read -r noun verb; do
	"$hapax" $noun $verb --help | sed '/^exit codes/q' | grep -oE '^  --[a-z-]+( \[?[A-Z])?' >options
	while read -r option value; do
		[ "$(grep -c -- "^  ${option%?}" options)" = 1 ] || continue
		end=' $'
		[[ $value != [A-Z] ]] || end='='
		echo "hapax $noun${verb:+ $verb} ${option%?}\\t => hapax $noun${verb:+ $verb} $option$end"
	done <options
done <all >typed
(cd work && timeout 120 python3 ../type.py zsh ../typed) >out 2>&1 && ! grep '^not ok' out >err && [ "$(grep -c '^ok' out)" -gt 300 ]
result zsh_knows_every_option
exit 0
