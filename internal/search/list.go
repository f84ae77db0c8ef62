package search

import (
	"encoding/binary"
	"strings"
)

// A posting is the weighted count of a term in a document.
type posting struct {
	document int64
	count    uint64
}

// A list encodes the postings of a term, sorted by document. Each posting is stored as the difference to
// the previous document number, and the count.
type list struct {
	data []byte
	last int64
}

func (l *list) add(p posting) {
	l.data = binary.AppendUvarint(l.data, uint64(p.document-l.last)) //nolint:gosec // documents are added in order
	l.data = binary.AppendUvarint(l.data, p.count)
	l.last = p.document
}

// decodeLists decodes the postings of a term from its lists. It omits documents
// that are gone.
func decodeLists(files map[int64]indexed, lists ...[]byte) (all []posting, err error) {
	for _, data := range lists {
		for last := int64(0); len(data) > 0; {
			step, n := binary.Uvarint(data)
			count, m := binary.Uvarint(data[max(n, 0):])
			document := last + int64(step) //nolint:gosec // an overflow is detected below
			if n <= 0 || m <= 0 || document <= last {
				return nil, errDamaged
			}
			if files[document].length > 0 {
				all = append(all, posting{document, count})
			}
			last, data = document, data[n+m:]
		}
	}
	return all, nil
}

// find returns the postings of each term.
func (s *store) find(terms []string, files map[int64]indexed) (map[string][]posting, error) {
	found := map[string][]posting{}
	for _, term := range terms {
		found[term] = nil
	}
	r := reader{data: s.lists}
	for len(r.data) > 0 {
		term, data := r.text(), r.text()
		if _, wanted := found[string(term)]; wanted {
			postings, err := decodeLists(files, data)
			if err != nil {
				return nil, err
			}
			found[string(term)] = postings
		}
	}
	return found, r.err
}

// A document is the indexed part of a file.
type document struct {
	length int64             // number of terms
	counts map[string]uint64 // see posting
}

// add adds the terms of a text with a weight.
func (d *document) add(text string, weight uint64) {
	eachToken(text, func(term string) {
		d.length++
		d.counts[term] += weight
	})
}

// A change has the lists of the documents that an update adds. Their numbers are higher than those of all
// existing documents.
type change map[string]*list

func (c change) add(number int64, d document) {
	for term, count := range d.counts {
		l := c[term]
		if l == nil {
			l = &list{}
			c[strings.Clone(term)] = l // copy the term so that the file's text can be freed
		}
		l.add(posting{number, count})
	}
}

// merge appends the merge of the old lists with those of c to out, and empties c. It removes documents that are
// gone only from lists that change or, with sweep, from all lists. A sweep takes longer than a query.
func (c change) merge(out, old []byte, files map[int64]indexed, sweep bool) ([]byte, error) {
	r := reader{data: old}
	for len(r.data) > 0 {
		term, data := r.text(), r.text()
		added := c[string(term)]
		if added == nil && !sweep {
			out = appendText(appendText(out, term), data)
			continue
		}
		if added == nil {
			added = &list{}
		}
		delete(c, string(term))
		postings, err := decodeLists(files, data, added.data)
		if err != nil {
			return nil, err
		}
		var l list
		for _, p := range postings {
			l.add(p)
		}
		if len(l.data) > 0 {
			out = appendText(appendText(out, term), l.data)
		}
	}
	for term, l := range c {
		out = appendText(appendText(out, term), l.data)
	}
	return out, r.err
}
