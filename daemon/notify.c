#include "notify.h"

#include "base/str.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define STATUS_EACH (10 * FF_SECOND)

socklen_t notify_address(const char *value, struct sockaddr_un *ret)
{
	size_t n = strlen(value);
	*ret = (struct sockaddr_un){.sun_family = AF_UNIX};
	if ((value[0] != '/' && value[0] != '@') || n < 2 || n >= sizeof ret->sun_path) {
		return 0;
	}
	memcpy(ret->sun_path, value, n);
	if (value[0] == '@') {
		ret->sun_path[0] = '\0'; /* an abstract name has no NUL at its end */
		return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n);
	}
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + 1);
}

static ff_usec read_watchdog(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	int64_t limit, whose;
	if (!usec || !ff_str_int(ff_str_z(usec), &limit) || limit <= 0) {
		return 0;
	}
	bool mine = !pid || (ff_str_int(ff_str_z(pid), &whose) && whose == getpid());
	return mine ? limit : 0;
}

void notify_open(struct notify *n)
{
	const char *value = getenv("NOTIFY_SOCKET");
	*n = (struct notify){.fd = -1};
	n->to_len = value ? notify_address(value, &n->to) : 0;
	if (n->to_len) {
		n->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		n->watchdog_us = read_watchdog();
	}
}

void notify_close(struct notify *n)
{
	if (n->fd >= 0) {
		close(n->fd);
	}
	n->fd = -1;
}

void notify_send(struct notify *n, const char *lines)
{
	if (n->fd >= 0) {
		(void)sendto(n->fd, lines, strlen(lines), MSG_DONTWAIT | MSG_NOSIGNAL,
			(const struct sockaddr *)&n->to, n->to_len);
	}
}

void notify_reloading(struct notify *n, ff_usec now)
{
	char lines[80];
	(void)snprintf(lines, sizeof lines, "RELOADING=1\nMONOTONIC_USEC=%lld", (long long)now);
	notify_send(n, lines);
}

void notify_status(struct notify *n, ff_usec now, const char *text)
{
	char lines[sizeof n->status + 8];
	if (n->fd < 0 || !strcmp(text, n->status) ||
		(n->status_us && now - n->status_us < STATUS_EACH)) {
		return;
	}
	(void)snprintf(n->status, sizeof n->status, "%s", text);
	n->status_us = now;
	(void)snprintf(lines, sizeof lines, "STATUS=%s", n->status);
	notify_send(n, lines);
}

bool notify_watchdog(struct notify *n, ff_usec now, uint64_t steps, bool waiting)
{
	if (steps != n->steps || !waiting || !n->stepped_us) {
		n->steps = steps;
		n->stepped_us = now;
	}
	bool stuck = now - n->stepped_us >= n->watchdog_us / 2;
	if (!n->watchdog_us || stuck || now - n->pinged_us < n->watchdog_us / 4) {
		return false;
	}
	n->pinged_us = now;
	notify_send(n, "WATCHDOG=1");
	return true;
}
