-- Logs that belong to a node and to no job (shared/feed/nodes.h) are kept in the tables of runs: their
-- numbers begin at 1073741824, `job` is '' (trusted) or '~UID' (another user's word), `run` the node.

-- A copy of what a node's own stream says about this run: nobody feeds it.
ALTER TABLE stream ADD COLUMN joined INTEGER NOT NULL DEFAULT 0;
