/* report_own: what the files of the report share. */
#pragma once

#include "core/report.h"

/* Adds ascending ranks as "0-4,6". */
void ff_report_ranges(struct ff_buf *b, const int32_t *ranks, size_t n);
