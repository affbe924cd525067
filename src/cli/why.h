/* What something that has not ended is waiting for, below its picture. */
#pragma once

#include "cli/client.h"

/* Asks the server, and prints its sentence. An extra, whose failure spoils nothing; the answer before it is gone. */
void why_print_below(struct client *client, const char *id);
