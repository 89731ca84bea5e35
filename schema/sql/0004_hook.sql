-- What the targets of hooks were told, so that a restart does not tell it again (daemon/hook.h).
-- target: 0 hook-command, 1 hook-url. event: 0 verdict (value: the hash of its substance), 1 fault and
-- 2 withdrawn (value: the run's progress lines then). Run 0, event 0: value is when the target was first
-- configured, in microseconds since 1970; 0 while it is not.
CREATE TABLE hook (
	run INTEGER NOT NULL,
	target INTEGER NOT NULL,
	event INTEGER NOT NULL,
	value INTEGER NOT NULL,
	PRIMARY KEY (run, target, event)
) STRICT, WITHOUT ROWID;
