package fakeapi

import (
	"encoding/json"
	"net/http"
	"strings"
)

// Meaning is a list of words that mean about the same.
type Meaning []string

// embeddings is the embeddings API of OpenAI. A text is as much about a meaning as it has words of it.
func (s *Server) embeddings(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Model string   `json:"model"`
		Input []string `json:"input"`
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		s.plain(w, r, http.StatusBadRequest, errorBody(http.StatusBadRequest, err.Error()))
		return
	}
	data := []object{}
	for i, text := range body.Input {
		vector := []float64{0.01} // of a text about nothing
		for _, m := range s.scenario.Meanings {
			n := 0
			for _, word := range m {
				n += strings.Count(strings.ToLower(text), word)
			}
			vector = append(vector, float64(n))
		}
		data = append(data, object{"object": "embedding", "index": i, "embedding": vector})
	}
	s.plain(w, r, http.StatusOK, object{"object": "list", "model": body.Model, "data": data, "usage": object{"prompt_tokens": 1, "total_tokens": 1}})
}
