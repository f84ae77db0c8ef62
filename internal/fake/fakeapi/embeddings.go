package fakeapi

import (
	"encoding/json"
	"net/http"
	"strings"
)

// Meaning is a list of words with a similar meaning.
type Meaning []string

// embeddings implements OpenAI's embeddings API. Each component of a vector counts the text's words with one meaning.
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
		vector := []float64{0.01} // avoids a zero vector
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
