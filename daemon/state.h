/* state: the state folder, held by one daemon at a time. */
#pragma once

#include "base/err.h"

/* Makes the folder (mode 0700) and locks it. Returns a descriptor that holds the lock until it is
 * closed, or negative errno with err: -EWOULDBLOCK if another daemon has it. */
int state_lock(const char *folder, struct ff_err *err);
