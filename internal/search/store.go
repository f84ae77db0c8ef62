package search

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"

	// The driver "sqlite".
	_ "modernc.org/sqlite"
)

// storeVersion changes with what is indexed, and how.
const storeVersion = 1

// A store is an open index: a table of terms, and the manifest of the files that it has.
type store struct {
	db       *sql.DB
	manifest *manifest
}

// A storeError means that the index cannot be used, not that the files cannot be read.
type storeError struct{ error }

func (e storeError) Unwrap() error { return e.error }

func stored(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return storeError{err}
}

// openStore opens the index in a file; empty: one in memory. The caller holds its lock.
// The index is not synced: after a power failure it may be damaged, which is found.
func openStore(ctx context.Context, file string) (*store, error) {
	name := ":memory:"
	if file != "" {
		name = (&url.URL{Scheme: "file", Path: file}).String() +
			"?_pragma=locking_mode(exclusive)&_pragma=journal_mode(wal)&_pragma=synchronous(normal)"
	}
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return nil, stored(err)
	}
	db.SetMaxOpenConns(1) // an index in memory belongs to its connection
	s := &store{db: db}
	if err := s.load(ctx); err != nil {
		s.close()
		return nil, stored(err)
	}
	return s, nil
}

func (s *store) close() { _ = s.db.Close() } // a cache: what is lost is read again

var errVersion = errors.New("the index is of another version")

// load reads the manifest, or makes the tables.
func (s *store) load(ctx context.Context) error {
	var version int
	if err := s.db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	switch version {
	case storeVersion:
		var data []byte
		err := s.db.QueryRowContext(ctx, "SELECT manifest FROM state").Scan(&data)
		if err == nil {
			s.manifest, err = decodeManifest(data)
		}
		return err
	case 0:
		return s.create(ctx)
	}
	return errVersion
}

// writeBuffer is how many bytes FTS5 collects before it writes them: with its usual 1 MiB,
// the first index of a repository is mostly merged parts of it.
const writeBuffer = 16 << 20

// create makes the tables. FTS5 keeps only the terms: the text is in the files, and
// eachToken has already split it.
func (s *store) create(ctx context.Context) error {
	s.manifest = emptyManifest()
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // nothing to do after a commit
	for _, statement := range []string{
		"CREATE VIRTUAL TABLE docs USING fts5(path, heading, body, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 0')",
		"CREATE VIRTUAL TABLE vocabulary USING fts5vocab(docs, 'row')",
		fmt.Sprintf("INSERT INTO docs(docs, rank) VALUES ('hashsize', %d)", writeBuffer),
		"CREATE TABLE state(manifest BLOB)",
		fmt.Sprintf("PRAGMA user_version = %d", storeVersion),
	} {
		if _, err := tx.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO state VALUES (?)", s.manifest.encode()); err != nil {
		return err
	}
	return tx.Commit()
}

// A document is the indexed part of a file.
type document struct {
	id                  int64
	path, heading, body string // terms
}

// A change is what an update does to the index.
type change struct {
	tx     *sql.Tx
	insert *sql.Stmt
}

// update runs apply and stores the manifest that it returns, in one transaction.
func (s *store) update(ctx context.Context, apply func(*change) (*manifest, error)) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return stored(err)
	}
	defer tx.Rollback() //nolint:errcheck // nothing to do after a commit
	insert, err := tx.PrepareContext(ctx, "INSERT INTO docs(rowid, path, heading, body) VALUES (?, ?, ?, ?)")
	if err != nil {
		return stored(err)
	}
	defer insert.Close() //nolint:errcheck // ends with the transaction
	next, err := apply(&change{tx, insert})
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE state SET manifest = ?", next.encode()); err != nil {
		return stored(err)
	}
	if err := tx.Commit(); err != nil {
		return stored(err)
	}
	s.manifest = next
	return nil
}

func (c *change) add(ctx context.Context, d document) error {
	_, err := c.insert.ExecContext(ctx, d.id, d.path, d.heading, d.body)
	return stored(err)
}

func (c *change) remove(ctx context.Context, id int64) error {
	_, err := c.tx.ExecContext(ctx, "DELETE FROM docs WHERE rowid = ?", id)
	return stored(err)
}

// A match is a document that answers a query.
type match struct {
	id    int64
	score float64
}

// The weights of a term in the path and in a heading, beside 1 in the text.
const (
	pathWeight    = 6
	headingWeight = 3
)

// rank returns the best documents with any of the terms, best first.
func (s *store) rank(ctx context.Context, terms []string, limit int) ([]match, error) {
	rows, err := s.db.QueryContext(ctx, "SELECT rowid, -bm25(docs, ?, ?, 1) AS score FROM docs WHERE docs MATCH ? ORDER BY score DESC, rowid LIMIT ?",
		pathWeight, headingWeight, anyOf(terms), limit)
	if err != nil {
		return nil, stored(err)
	}
	defer rows.Close() //nolint:errcheck // read only
	var found []match
	for rows.Next() {
		var m match
		if err := rows.Scan(&m.id, &m.score); err != nil {
			return nil, stored(err)
		}
		found = append(found, m)
	}
	return found, stored(rows.Err())
}

// anyOf returns the FTS5 expression for documents with any of the terms, which have only
// letters and digits.
func anyOf(terms []string) string { return `"` + strings.Join(terms, `" OR "`) + `"` }

// frequency returns in how many documents a term is.
func (s *store) frequency(ctx context.Context, term string) (int, error) {
	n := 0
	err := s.db.QueryRowContext(ctx, "SELECT doc FROM vocabulary WHERE term = ?", term).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return n, stored(err)
}
