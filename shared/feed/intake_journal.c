#include "feed/intake_own.h"

#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

/* The scheduler's daemons, as systemd knows them: a process can call itself as it likes, but is in
 * no other unit than its own. */
static struct ff_str scheduler_of(struct ff_str unit)
{
	static const char *const units[] = {"slurmctld", "slurmd", "kubelet"};
	ptrdiff_t end = ff_str_find(unit, FF_STR(".service"), 0);
	for (size_t i = 0; end > 0 && i < sizeof units / sizeof *units; i++) {
		if (ff_str_eqz(ff_str_n(unit.p, (size_t)end), units[i])) {
			return ff_str_z(units[i]);
		}
	}
	return (struct ff_str){NULL, 0};
}

/* An entry is a data object of JSON Lines in another spelling. What neither the kernel nor a
 * scheduler says is of all the machine's other business. */
static void take_entry(void *ud, const struct ff_journal_entry *e)
{
	struct ff_intake *in = ud;
	struct ff_jsonl *o = &in->obj;
	struct ff_str app = e->kernel ? FF_STR("kernel") : scheduler_of(e->unit);
	char stream[64];
	if (!app.n) {
		ff_intake_count(in, NULL, FF_COUNT_journal_others, 1);
		return;
	}
	(void)snprintf(stream, sizeof stream, "journal/%.*s", FF_STR_ARG(app));
	*o = (struct ff_jsonl){.event = FF_JSONL_NONE, .has_text = true, .text = e->text,
		.kind = e->kernel ? FF_STR("kernel") : FF_STR("scheduler"), .node = e->host,
		.stream = ff_str_z(stream), .rank = -1, .local_rank = -1, .attempt = -1,
		.offset = -1, .time = FF_TIME_NONE, .stamp = e->us, .complete = -1, .mem = o->mem,
		.join = o->join};
	ff_intake_data(in);
}

void ff_intake_journal_bytes(struct ff_intake *in, struct ff_str s)
{
	if (!in->journal) {
		in->journal = ff_xcalloc(1, sizeof *in->journal);
		ff_journal_init(in->journal, ff_journal_front(s));
	}
	uint64_t before = in->journal->skipped;
	ff_journal_feed(in->journal, s, take_entry, in);
	ff_intake_count(in, NULL, FF_COUNT_lines_cut, in->journal->skipped - before);
}

void ff_intake_journal_end(struct ff_intake *in)
{
	if (in->journal) {
		ff_journal_end(in->journal, take_entry, in);
	}
}
