/*
 * What of the scripts of completion.c does not depend on the commands. Each has a head, behind which the table of commands
 * follows, and a tail that makes use of it.
 *
 * In the table of bash a command is `words` (how many it has), `options` and `operands`, lists of words:
 *
 *   --json   a switch         --input=KIND   with a value        --wait=?   its value begins with a digit, and may be missing
 *   KIND     file, dir, json, any, or the words themselves, a|b; of operands one for each place, the last with a + again and again
 */
#ifndef HX_CLI_COMPLETION_SCRIPTS_H
#define HX_CLI_COMPLETION_SCRIPTS_H

extern const char completion_bash_head[], completion_bash_tail[];
extern const char completion_zsh_head[], completion_zsh_tail[];

#endif
