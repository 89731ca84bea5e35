-- Runs that are taken out again: because of their age, for want of room, or because somebody asked for it.

-- By the daemon's clock, about when anything of the run came last.
ALTER TABLE run ADD COLUMN heard_us INTEGER;

-- Runs whose rows are being deleted, some at a time; a start finishes what was begun.
CREATE TABLE going (run INTEGER PRIMARY KEY) STRICT;

-- No run that went had a higher number: numbers are never used again.
CREATE TABLE last_run (number INTEGER NOT NULL) STRICT;
INSERT INTO last_run VALUES (0);

-- Tailed files of runs that went: while they are the same they are not read again.
CREATE TABLE let_go (
	id INTEGER PRIMARY KEY,            -- grows: the lowest ones go first
	inode INTEGER NOT NULL,
	head_length INTEGER NOT NULL,      -- its first line, as in the table tail
	head_hash INTEGER NOT NULL,
	UNIQUE (inode, head_length, head_hash)
) STRICT;
