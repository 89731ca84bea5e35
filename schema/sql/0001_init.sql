-- What the daemon knows of every run: facts, streams, lanes, events. Times are microseconds since 1970,
-- null where there is none. Kinds and roles are the numbers of shared/core/*.h, which are only appended to.
-- Text out of logs is a blob: it may hold any byte.

-- PRAGMA user_version each time that a newer program met this store
CREATE TABLE upgrade (
	from_version INTEGER NOT NULL,
	to_version INTEGER NOT NULL,
	program TEXT NOT NULL,
	at_us INTEGER NOT NULL
) STRICT;

CREATE TABLE run (
	number INTEGER PRIMARY KEY,
	job TEXT NOT NULL,
	run TEXT NOT NULL,
	begun_us INTEGER,
	ended_us INTEGER,
	owner INTEGER,                     -- uid of the first peer that spoke for it
	version INTEGER NOT NULL,          -- how often the verdict changed
	verdict_hash INTEGER NOT NULL,
	controls_refused INTEGER NOT NULL,
	segment_first INTEGER NOT NULL,    -- segment files that are kept: first, last,
	segment_last INTEGER NOT NULL,
	segment_length INTEGER NOT NULL,   -- and the bytes of the last that are committed
	segments_dropped INTEGER NOT NULL,
	UNIQUE (job, run)
) STRICT;

-- Values that control objects told; key '' says that the id is known.
CREATE TABLE control (
	run INTEGER NOT NULL REFERENCES run,
	id TEXT NOT NULL,
	key TEXT NOT NULL,
	value BLOB NOT NULL,
	time_us INTEGER,
	clock INTEGER NOT NULL,
	contradicted INTEGER NOT NULL,     -- another value was told too
	PRIMARY KEY (run, id, key)
) STRICT, WITHOUT ROWID;

-- The samples of least delay of a node's clock.
CREATE TABLE clock (
	run INTEGER NOT NULL REFERENCES run,
	node TEXT NOT NULL,
	n INTEGER NOT NULL,
	t1_us INTEGER NOT NULL,
	t2_us INTEGER NOT NULL,
	t3_us INTEGER NOT NULL,
	t4_us INTEGER NOT NULL,
	PRIMARY KEY (run, node, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE stream (
	run INTEGER NOT NULL REFERENCES run,
	number INTEGER NOT NULL,
	life INTEGER NOT NULL,
	node TEXT,
	name TEXT NOT NULL,
	source TEXT NOT NULL,
	kind INTEGER NOT NULL,
	kind_declared INTEGER NOT NULL,
	fd INTEGER NOT NULL,
	rank INTEGER,
	local_rank INTEGER,
	attempt INTEGER,
	pid INTEGER,
	trusted INTEGER NOT NULL,
	filtered INTEGER NOT NULL,
	tailed INTEGER NOT NULL,
	state INTEGER NOT NULL,
	ended_us INTEGER,
	fed INTEGER NOT NULL,              -- bytes taken
	digested INTEGER NOT NULL,         -- bytes handled
	resume INTEGER NOT NULL,           -- first byte of the oldest open record or unfinished line,
	resume_line INTEGER,               -- with its line number,
	resume_tag_kind INTEGER NOT NULL,  -- and the tag of the line before it
	resume_tag_value INTEGER NOT NULL,
	resume_attempt INTEGER,
	in_skip INTEGER NOT NULL,
	gap INTEGER NOT NULL,
	read_to_end INTEGER NOT NULL,
	texted INTEGER NOT NULL,           -- bytes that are in the segment files
	resume_segment INTEGER NOT NULL,   -- where they hold `resume`, or shortly before
	resume_at INTEGER NOT NULL,
	PRIMARY KEY (run, number)
) STRICT;

-- What a tailed stream's file was when it was read last.
CREATE TABLE tail (
	run INTEGER NOT NULL,
	stream INTEGER NOT NULL,
	path BLOB NOT NULL,
	device INTEGER NOT NULL,
	inode INTEGER NOT NULL,
	head_length INTEGER NOT NULL,      -- its first bytes, up to the end of its first line,
	head_hash INTEGER NOT NULL,
	mark_at INTEGER NOT NULL,          -- and those before this offset, where reading stopped,
	mark_length INTEGER NOT NULL,      -- prove that it is the same file
	mark_hash INTEGER NOT NULL,
	stamps BLOB NOT NULL,              -- when what lies behind `resume` was read
	PRIMARY KEY (run, stream),
	FOREIGN KEY (run, stream) REFERENCES stream
) STRICT;

CREATE TABLE lane (
	run INTEGER NOT NULL,
	stream INTEGER NOT NULL,
	lane INTEGER NOT NULL,
	tag_kind INTEGER NOT NULL,
	tag_value INTEGER NOT NULL,
	attempt INTEGER,
	lines INTEGER NOT NULL,
	bytes INTEGER NOT NULL,
	first_offset INTEGER NOT NULL,
	last_offset INTEGER NOT NULL,
	first_arrived_us INTEGER,
	first_captured_us INTEGER,
	last_arrived_us INTEGER,
	last_captured_us INTEGER,
	first_claimed_us INTEGER,
	first_claimed_grain INTEGER NOT NULL,
	first_claimed_flags INTEGER NOT NULL,
	progress_offset INTEGER,           -- last progress line
	progress_line INTEGER,
	progress_arrived_us INTEGER,
	progress_captured_us INTEGER,
	progress_text BLOB,
	recovered_offset INTEGER,          -- first progress line after the last fault
	recovered_line INTEGER,
	recovered_arrived_us INTEGER,
	recovered_captured_us INTEGER,
	recovered_text BLOB,
	success_offset INTEGER,            -- last success marker
	success_line INTEGER,
	success_arrived_us INTEGER,
	success_captured_us INTEGER,
	success_text BLOB,
	steps INTEGER NOT NULL,
	cadence TEXT NOT NULL,             -- "POWER:COUNT ..." of the gaps between progress lines
	pairs BLOB NOT NULL,               -- two clocks at one line, packed (daemon/pack.h)
	fault_offset INTEGER,              -- of the last fault
	open_offset INTEGER,               -- first byte of the open record
	PRIMARY KEY (run, stream, lane),
	FOREIGN KEY (run, stream) REFERENCES stream
) STRICT;

CREATE TABLE event (
	run INTEGER NOT NULL,
	stream INTEGER NOT NULL,
	offset INTEGER NOT NULL,
	n INTEGER NOT NULL,
	line INTEGER,
	at_offset INTEGER NOT NULL,
	at_line INTEGER,
	kind INTEGER NOT NULL,
	role INTEGER NOT NULL,
	fault TEXT NOT NULL,
	signature TEXT NOT NULL,
	tag_kind INTEGER NOT NULL,
	tag_value INTEGER NOT NULL,
	attempt INTEGER,
	arrived_us INTEGER,
	captured_us INTEGER,
	claimed_us INTEGER,
	claimed_grain INTEGER NOT NULL,
	claimed_flags INTEGER NOT NULL,
	fields TEXT NOT NULL,              -- JSON object; {"hex":"..."} for a value that is not UTF-8
	text BLOB,
	frame BLOB,
	handled INTEGER NOT NULL,
	quoted INTEGER NOT NULL,
	recovered INTEGER NOT NULL,
	fingerprint INTEGER NOT NULL,
	lane INTEGER NOT NULL,
	count INTEGER NOT NULL,
	last_offset INTEGER,               -- of the last one that was folded into it
	last_line INTEGER,
	last_arrived_us INTEGER,
	last_captured_us INTEGER,
	PRIMARY KEY (run, stream, offset, n),
	FOREIGN KEY (run, stream) REFERENCES stream
) STRICT;
