/**
 * The tables of a store's file, as ordered migrations.
 *
 * `journal` has one row per append: `seq` is that of its last event, `body` its events (see Body.ts). `runs` has one row
 * per Run: its head and its lease. An append touches one page of each and one of `journal`'s index: no index has a column
 * that a running Run's append changes, which is why the indexes of `runs` are partial (measured: they cost an append
 * nothing). STRICT, so that no wrong type gets in.
 *
 * The first row of a journal names its Run, so that rows whose Run is missing in `runs` are known to be its: it is damaged,
 * not unknown. A new Run gets a `rid` above every one in both tables, so that it never takes over the rows of another.
 *
 * @since 0.1.0
 */

/** "WayS": marks a file as ours (`PRAGMA application_id`). */
export const applicationId = 0x57617953

/** `head` is last, so that reading the other columns never needs its overflow pages. */
const first = [
  `CREATE TABLE runs (
    rid INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    seq INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    owner TEXT,
    until REAL NOT NULL,
    status TEXT NOT NULL,
    agent TEXT NOT NULL,
    session TEXT,
    parent TEXT,
    waiting TEXT NOT NULL,
    wake_at REAL,
    updated_at REAL NOT NULL,
    head TEXT NOT NULL
  ) STRICT`,
  `CREATE TABLE journal (
    rid INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    body ANY NOT NULL,
    UNIQUE (rid, seq)
  ) STRICT`,
  "CREATE INDEX runs_running ON runs (rid) WHERE status = 'running'",
  "CREATE INDEX runs_resting ON runs (updated_at, run_id) WHERE status <> 'running'",
  "CREATE INDEX runs_waking ON runs (wake_at) WHERE wake_at IS NOT NULL",
  "CREATE INDEX runs_session ON runs (session) WHERE session IS NOT NULL",
  "CREATE INDEX runs_parent ON runs (parent) WHERE parent IS NOT NULL"
]

/** `runs_status` finds the Runs of one status, `runs_waits` those that wait; neither holds one that runs. */
const second = [
  "ALTER TABLE journal ADD COLUMN run_id TEXT",
  `UPDATE journal SET run_id = (SELECT runs.run_id FROM runs WHERE runs.rid = journal.rid)
   WHERE seq = (SELECT min(first.seq) FROM journal AS first WHERE first.rid = journal.rid)`,
  "CREATE UNIQUE INDEX journal_run ON journal (run_id) WHERE run_id IS NOT NULL",
  "CREATE INDEX runs_status ON runs (status, updated_at, run_id) WHERE status <> 'running'",
  "CREATE INDEX runs_waits ON runs (updated_at, run_id) WHERE status <> 'running' AND waiting <> '[]'"
]

/** The statements that lead from version n to n + 1 (`PRAGMA user_version`), from 0. Never edit one that was released. */
export const migrations: ReadonlyArray<ReadonlyArray<string>> = [first, second]

/** The version that this package writes. */
export const version = migrations.length
