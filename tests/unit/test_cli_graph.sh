#!/usr/bin/env bash
# hapax graph, by its output and exit codes; the pictures of the documentation are those that it makes.
set -u
. tests/support/cli.sh

cat >flows/good.json <<'END'
{ "workflow": "bill", "kind": "entity", "status_types": ["new", "closing", "done"], "initial_status": "new",
  "actions": { "Close": { "kind": "http", "url": "http://127.0.0.1:9/close" } },
  "steps": [ { "step_id": 1, "step_key": "close", "status": "new", "claim_state": ["closing", "new"],
               "action": "Close", "successful_state": "done" } ] }
END
sed 's/"done"\]/"done", "lost"]/' flows/good.json >flows/warned.json
sed 's/\["closing", "new"\]/["closing", "closing"]/' flows/good.json >flows/broken.json
picture() { # file
	[ "$(head -c 5 "$1")" = "<svg " ] && [ "$(tail -n 1 "$1")" = "</svg>" ]
}

exits 0 graph flows/good.json && picture out && says ">closing</text>" && says ">http, claimed</text>" && silent err
result to_standard_output
exits 0 graph flows/good.json -o x.svg && silent out && silent err && picture x.svg && "$hapax" graph flows/good.json | cmp - x.svg
result into_a_file
exits 0 graph -o y.svg flows/good.json && cmp x.svg y.svg && exits 0 graph --output=z.svg flows/good.json && cmp x.svg z.svg &&
	exits 0 graph flows/good.json -o - && cmp out x.svg
result the_option_in_all_its_forms
exits 0 graph flows/good.json --json && cmp out x.svg && silent err
result a_picture_stays_a_picture_with_json
exits 0 graph /dev/stdin <flows/good.json && cmp out x.svg
result from_a_pipe

exits 0 graph flows/warned.json && picture out && says ">lost</text>" &&
	complains 'flows/warned.json:1: warning: workflow bill: unreached: nothing reaches status "lost"'
result warnings_beside_the_picture
echo old >kept.svg
exits 1 graph flows/broken.json -o kept.svg && silent out && [ "$(cat kept.svg)" = old ] &&
	"$hapax" check flows/broken.json >checked 2>checked.err
[ $? -eq 1 ] && cat checked checked.err | cmp - err
result errors_as_check_says_them_and_no_picture
exits 1 graph flows/broken.json --json && silent out && "$hapax" check flows/broken.json --json >checked 2>checked.err
[ $? -eq 1 ] && cat checked checked.err | cmp - err
result errors_as_json
exits 1 graph nowhere.json && silent out && complains "nowhere.json: error: file: No such file"
result a_file_that_is_not_there
exits 1 graph flows && silent out && complains "flows: error: file: Is a directory"
result a_folder
echo '{ "workflow": ' >flows/torn.json
exits 1 graph flows/torn.json && complains "flows/torn.json:2: error: json: "
result text_that_is_no_json

exits 2 graph && complains FILE && exits 2 graph flows/good.json flows/warned.json && exits 2 graph flows/good.json -o &&
	exits 2 graph flows/good.json -x && exits 2 graph flows/good.json -oy.svg && exits 2 graph --outptu x flows/good.json &&
	complains "did you mean --output?" && silent out
result usage
exits 2 graph flows/good.json -o x.png && complains "--output x.png: a picture is SVG: its name ends with .svg, not with .png" && [ ! -e x.png ] &&
	exits 2 graph flows/good.json -o a.svg/../x.svg.PDF && exits 0 graph flows/good.json -o X.SVG && cmp X.SVG x.svg &&
	exits 0 graph flows/good.json -o ./bare && cmp bare x.svg
result a_picture_of_another_kind
exits 0 graph --help && says "usage: hapax graph FILE [--output FILE] [--json]" && says "for short: -o FILE"
result help
exits 70 graph flows/good.json -o nowhere/x.svg && complains "nowhere/x.svg cannot be written: No such file"
result a_file_that_cannot_be_written
if [ -w /dev/full ]; then
	exits 70 graph flows/good.json -o /dev/full && complains "No space left"
	result a_full_disk
	"$hapax" graph flows/good.json >/dev/full 2>err
	[ $? -eq 70 ]
	result standard_output_that_cannot_be_written
fi
if command -v xmllint >/dev/null; then
	xmllint --noout --nonet x.svg >out 2>err
	result another_reader_of_xml_agrees
fi

# The pictures in the documentation: NAME of the definition beside it.
cd "$root" || exit 1
for source in examples/billing/workflows/invoice.json examples/order/order.json examples/render/render.json; do
	name=$(basename "$source" .json)
	"$hapax" graph "$source" -o "$dir/$name.svg" 2>"$dir/err" && cmp "docs/pictures/$name.svg" "$dir/$name.svg" >"$dir/out" 2>&1 ||
		{ echo "make it anew: build/hapax graph $source -o docs/pictures/$name.svg" && false; }
	result "the_picture_of_$name"
done
cd "$dir" || exit 1

help_is_in_manual graph hapax-graph.1 && grep -qF '.BR \-o ' "$root/man/hapax-graph.1"
result the_manual_has_every_option_and_exit_code
exit 0
