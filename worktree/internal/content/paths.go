package content

// without returns the items that are not in drop.
func without(items, drop []string) []string {
	if len(drop) == 0 {
		return items
	}
	gone := make(map[string]bool, len(drop))
	for _, item := range drop {
		gone[item] = true
	}
	var left []string
	for _, item := range items {
		if !gone[item] {
			left = append(left, item)
		}
	}
	return left
}
