/* journal: what journalctl prints for machines: `-o export` and `-o json` (one object a line).
 *
 * Export (https://systemd.io/JOURNAL_EXPORT_FORMATS/): a line KEY=value for each field; a value
 * that is no plain text is KEY, LF, its size in 8 bytes (little endian), the bytes, LF; an empty
 * line ends an entry. JSON: a value that is no UTF-8 is an array of bytes.
 *
 * In: bytes, cut anywhere. Out: an entry at a time; its views are valid during the call. No I/O, no
 * clock. Fields that begin with `_` are the journal's own word, and no process's: by these it is
 * told who speaks.
 *
 * Limits: a line or value of more than FF_JSONL_LINE bytes is skipped, with its entry.
 */
#pragma once

#include "base/buf.h"
#include "base/usec.h"

struct ff_journal_entry {
	struct ff_str text; /* MESSAGE */
	struct ff_str host; /* _HOSTNAME; empty */
	struct ff_str unit; /* _SYSTEMD_UNIT; empty */
	ff_usec us;         /* when the journal got it; FF_TIME_NONE */
	bool kernel;        /* it came from the kernel */
};

enum ff_journal_form { FF_JOURNAL_NONE, FF_JOURNAL_JSON, FF_JOURNAL_EXPORT };

struct ff_journal {
	enum ff_journal_form form;
	struct ff_buf line; /* whose end has not come; of a sized value its size and bytes */
	struct ff_buf key;  /* of a sized value */
	uint64_t size;      /* of it, once it is known */
	bool sized, known, skipping;
	/* the entry so far */
	struct ff_buf text, host, unit, ident;
	ff_usec us;
	bool kernel, broken;
	uint64_t skipped; /* entries with a field that was too long */
};

typedef void ff_journal_fn(void *ud, const struct ff_journal_entry *e);

/* What a text is that begins so, or whose first line is this. */
enum ff_journal_form ff_journal_front(struct ff_str front);
void ff_journal_init(struct ff_journal *j, enum ff_journal_form form);
void ff_journal_finish(struct ff_journal *j);
void ff_journal_feed(struct ff_journal *j, struct ff_str bytes, ff_journal_fn *fn, void *ud);
/* The end: what stands there is an entry too. */
void ff_journal_end(struct ff_journal *j, ff_journal_fn *fn, void *ud);
