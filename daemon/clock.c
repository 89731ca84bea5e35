#include "clock.h"

#include <time.h>

static ff_usec read_clock(clockid_t id)
{
	struct timespec t;
	clock_gettime(id, &t);
	return (ff_usec)t.tv_sec * FF_SECOND + t.tv_nsec / 1000;
}

ff_usec clock_wall(void)
{
	return read_clock(CLOCK_REALTIME);
}

ff_usec clock_mono(void)
{
	return read_clock(CLOCK_MONOTONIC);
}
