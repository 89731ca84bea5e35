/* token: what the user shows to a firstfaultd over TCP: the first word of the file that
 * --token-file names, else FIRSTFAULT_TOKEN, else that of the file that FIRSTFAULT_TOKEN_FILE
 * names. Never a word of the command line: other users of the machine can read that.
 */
#pragma once

/* --token-file; borrowed for the life of the program. */
void token_use_file(const char *path);
/* The token, borrowed; NULL: none. A file that can't be read, or that others can read, is an error
 * with its message: *ret_status is the exit status then, else CLIENT_OK. */
const char *token_get(int *ret_status);
