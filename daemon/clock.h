/* clock: the only place of the program that reads a clock.
 *
 * Wall time stamps what arrives; monotonic time measures waiting. Both in microseconds.
 */
#pragma once

#include "base/usec.h"

ff_usec clock_wall(void); /* since 1970 */
ff_usec clock_mono(void); /* since some moment; never goes back */
