/* Every cap of firstfault in one place: name, unit and what happens at the cap.
 *
 * A cap that changes events counts within one lane or one stream only, so that a verdict never
 * depends on how streams interleave. Caps of a job or of the process slow reading or refuse what is
 * new; each has a counter (core/count.def) that `firstfault status` shows.
 */
#pragma once

/* Lines and records (laws 9 and 10 of shared/README.md). */
#define FF_LINE_MAX (64u * 1024u)           /* bytes of a line kept; the rest is skipped, counted */
#define FF_RECORD_LINES 2000u                /* lines of a record; then it is closed, counted */
#define FF_RECORD_BYTES (256u * 1024u)       /* bytes of a record; then it is closed, counted */
#define FF_RECORD_IDLE (1024u * 1024u)       /* bytes of its stream since its last line: closed */
#define FF_RECORD_SPAN (1536u * 1024u)       /* bytes of its stream since its first line: closed */
#define FF_PART_SPAN (256u * 1024u)          /* bytes that a part of a line waits for its rest */
#define FF_LANES_MAX 4096u                   /* lanes of a stream; a further tag uses lane 0 */
#define FF_EVENTS_HALF 32u                   /* events kept of a lane and attempt: first and last */
#define FF_EVIDENCE_MAX 2048u                /* bytes of text kept in an event */
#define FF_PROGRESS_TEXT 256u                /* bytes of a progress line kept in its lane */
#define FF_SAMPLE_STEP 65536u               /* a clock pair at lines that hold a multiple of this */
#define FF_PAIRS_MAX 64u                     /* clock pairs of a lane (lower envelope) */
#define FF_SUBJECT_MAX 8192u                 /* bytes of a record that one pattern sees */
#define FF_MATCH_LIMIT 100000u               /* PCRE2 match limit; reaching it is counted */
#define FF_MASK_RULES_MAX 64u                /* patterns of secrets; a further one is an error */
#define FF_RECORD_EVENTS 256u                /* events of one record; more are dropped, counted */

/* Identity. */
#define FF_JOB_ID_MAX 128u                   /* bytes of a job id, run id or node name */
#define FF_NAME_MAX 512u                     /* bytes of a stream name or path below a folder */
#define FF_RANKS_MAX 131072                  /* ranks of a run; a larger rank is refused */
#define FF_STREAMS_MAX 262144u               /* streams of a run; a further one is refused */
#define FF_RUNS_MAX 4096u                   /* open runs of the process; a further one is refused */
#define FF_RUNS_USER 2048u                  /* of them one user's who is not trusted */
#define FF_CONTROLS_MAX 524288u              /* control ids of a run; a further one is refused */
#define FF_NODES_MAX 65536u                  /* nodes of a run with clock samples; then refused */
#define FF_NODE_LOGS_MAX 4096u               /* nodes with logs of their own; then refused */
#define FF_NODE_LOGS_USER 256u               /* of them what one user says who is not believed */
#define FF_NODE_LOGS_OTHERS 2048u            /* likewise all such users together */
#define FF_NODE_EVENTS 512u                  /* events of a node's stream; the oldest goes */
#define FF_NODE_EVENTS_ALL 65536u            /* of all nodes; the fullest node's oldest goes */
#define FF_NODE_FITS 524288u /* events times other runs asked in one join; then shared */
#define FF_NODE_HOURS 48                     /* an event of a node's stream is kept so long */
#define FF_REACHES_MAX 512u                  /* runs of which is kept what nodes' lines fit them */
#define FF_CLOCK_SAMPLES 64u                 /* clock samples of a node: those of least delay */

/* Wire. */
#define FF_WIRE_STREAMS 10u                  /* streams of one hello (k is one digit) */
#define FF_WIRE_LINE (64u * 1024u + 64u)    /* bytes of one native line; longer is error too-long */
#define FF_WIRE_CONTROL (64u * 1024u)        /* bytes of one control object */
#define FF_JSONL_LINE (16u * 1024u * 1024u)  /* bytes of one JSON Lines object; longer is skipped */
#define FF_UNFINISHED_FREE (128u * 1024u)    /* bytes of an unfinished line that anybody may hold */
#define FF_UNFINISHED_ALL (64u * 1024u * 1024u) /* of longer ones together; then skipped, counted */
#define FF_JSON_DEPTH 64                     /* nesting of a JSON value */
#define FF_MAX_UNACKED (4u * 1024u * 1024u)  /* bytes a sender may have sent and not acknowledged */
#define FF_HTTP_URI (32u * 1024u)           /* bytes of an address; longer is 414 */
#define FF_HTTP_BODY (1024u * 1024u)         /* bytes of a request body */
#define FF_OTLP_BODY (16u * 1024u * 1024u)   /* the same of OTLP, unpacked too; then 413 */

/* Daemon. */
#define FF_QUEUE_BYTES (16u * 1024u * 1024u) /* rows waiting for the store; then reading stops */
#define FF_BATCH_ROWS 4096u                  /* rows that make a transaction due at once */
#define FF_BATCH_MS 10u                      /* else it is due after this */
#define FF_SEGMENT_BYTES (16u * 1024u * 1024u)
#define FF_SEGMENTS_MAX 64u                  /* segments of a run; the oldest is dropped, counted */
#define FF_LOG_BYTES (64u * 1024u * 1024u)   /* of the store's WAL; then nothing is read until who
						reads the database lets it begin anew */
#define FF_LET_GO_MAX \
	262144u /* files of runs that went, that are not read again; the
						oldest is forgotten */
#define FF_NODE_SEGMENT_BYTES (1024u * 1024u) /* of a node's own text, of which */
#define FF_NODE_SEGMENTS 3u                  /* so many are kept: what a restart reads again */
#define FF_CONNS_MAX 4096u                   /* connections; a further one is told busy */
#define FF_WATCHERS_MAX 64u                   /* watchers of the API; a further one is refused */
#define FF_KEPT_ANSWERS 64u                   /* answers about ended runs that are kept */
#define FF_KEPT_BYTES (8u * 1024u * 1024u)    /* of them; what was asked for longest ago goes */
#define FF_TAIL_FILES 4096u                  /* tailed files; a further one is counted */
