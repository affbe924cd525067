/*
 * The texts in the program's code (SQL, help, messages, names) are a quarter of it, and a fifth of that when compressed. So the
 * program is linked twice (scripts/link-packed.sh): first with its string literals in a section of their own, then with that
 * section as mere room, and its bytes packed beside it. Here they are put where they belong, before main: in 2 ms, and nothing
 * else knows of it. In programs that are linked once (with sanitizers; tests) there is nothing to do.
 *
 * Nothing that runs until the end of literals_unpack may read a string literal.
 */
#include <stdint.h>
#include <sys/mman.h>

#include "base/error.h"
#include "base/packed.h"

/* Of the second link alone; NULL elsewhere. Whole pages, by scripts/literals.ld. */
extern char literals_begin[] __attribute__((weak)), literals_end[] __attribute__((weak));
extern const struct packed program_literals __attribute__((weak));

/* A constructor: the compiler takes literals for constants, and may read one in main before any call that stands there. */
__attribute__((constructor)) static void literals_unpack(void)
{
	if (!&program_literals)
		return;
	ASSERT(program_literals.whole == (uintptr_t)literals_end - (uintptr_t)literals_begin);
	packed_into(&program_literals, literals_begin);
	ASSERT(mprotect(literals_begin, program_literals.whole, PROT_READ) == 0);
}
