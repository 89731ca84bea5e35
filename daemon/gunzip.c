#include "gunzip.h"

#include <errno.h>
#include <zlib.h>

#define GZIP_ONLY (16 + MAX_WBITS) /* of inflateInit2 */

int gunzip(struct ff_str in, size_t max, struct ff_buf *out)
{
	z_stream z = {.next_in = (Bytef *)(uintptr_t)in.p, .avail_in = (uInt)in.n};
	char part[65536];
	int r = inflateInit2(&z, GZIP_ONLY) == Z_OK ? 1 : -EBADMSG;
	while (r > 0) {
		z.next_out = (Bytef *)part;
		z.avail_out = sizeof part;
		int e = inflate(&z, Z_NO_FLUSH);
		size_t n = sizeof part - z.avail_out;
		if (out->len + n > max) {
			r = FF_ELIMIT;
			break;
		}
		ff_buf_add(out, part, n);
		if (e == Z_STREAM_END) {
			r = z.avail_in && inflateReset(&z) == Z_OK;
		} else if (e != Z_OK || (!z.avail_in && z.avail_out)) {
			r = -EBADMSG; /* damaged, or cut off */
		}
	}
	(void)inflateEnd(&z);
	return r;
}
