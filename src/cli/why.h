/* What something that has not ended is waiting for, below its picture. */
#ifndef HX_CLI_WHY_H
#define HX_CLI_WHY_H

#include "cli/client.h"

/* Asks the server, and prints its sentence. An extra, whose failure spoils nothing; the answer before it is gone. */
void why_print_below(struct client *client, const char *id);

#endif
