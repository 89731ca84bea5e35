/* api_guard: who asks over HTTP, and what is refused before anything is read.
 *
 * On the unix socket the kernel says who asks. Over TCP it is who `Authorization: Bearer TOKEN`
 * says; the Host that is asked for has to be one of ours, so that no web page can have a browser
 * ask under a name of its own that leads here (DNS rebinding). A browser's POST (it has Origin) is
 * refused on both. A wrong token is answered a second later.
 */
#pragma once

#include "request.h"

/* When the headers have come: fills in who, and refused (with slow) where the request has to be
 * answered with that status whatever it asks for. */
void api_guard_look(struct request *r);
/* The answer to a request that is refused. */
void api_guard_answer(struct request *r);
