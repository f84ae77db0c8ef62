package fakeclaude

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
)

// notebookEdit replaces, inserts or deletes one cell.
func (f *files) notebookEdit(c call, input object) outcome {
	path := f.path(input, "notebook_path")
	data, err := os.ReadFile(path)
	if err != nil {
		return failed(c, err.Error())
	}
	var book object
	if err := json.Unmarshal(data, &book); err != nil {
		return failed(c, "Notebook is not valid JSON.")
	}
	cells, _ := book["cells"].([]any)
	cells, said := editCells(cells, input)
	if said == "" {
		return failed(c, fmt.Sprintf("Cell with ID %q not found in notebook.", text(input, "cell_id")))
	}
	book["cells"] = cells
	edited, err := json.MarshalIndent(book, "", " ")
	if err != nil {
		return failed(c, err.Error())
	}
	if err := f.store(path, string(edited)+"\n"); err != nil {
		return failed(c, err.Error())
	}
	return succeeded(c, said)
}

// editCells returns the new cells and a description, which is empty if there is no such cell.
func editCells(cells []any, input object) ([]any, string) {
	id, source := text(input, "cell_id"), text(input, "new_source")
	at := slices.IndexFunc(cells, func(cell any) bool {
		fields, _ := cell.(object)
		return fields["id"] == id
	})
	mode := text(input, "edit_mode")
	switch {
	case mode == "insert" && (at >= 0 || id == ""):
		return slices.Insert(cells, at+1, any(newCell(text(input, "cell_type"), source))), "Inserted cell with " + source
	case at < 0:
		return cells, ""
	case mode == "delete":
		return slices.Delete(cells, at, at+1), "Deleted cell " + id
	default:
		cells[at].(object)["source"] = source
		return cells, fmt.Sprintf("Updated cell %s with %s", id, source)
	}
}

func newCell(kind, source string) object {
	cell := object{"cell_type": "markdown", "id": newUUID()[:8], "metadata": object{}, "source": source}
	if kind != "markdown" {
		cell["cell_type"], cell["outputs"], cell["execution_count"] = "code", []any{}, nil
	}
	return cell
}
