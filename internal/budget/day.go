package budget

import "time"

// Day is the budget of a repository for one local day, with its usage by all sessions.
type Day struct {
	Limit Amount
	Used  Amount
	Began time.Time
	Ends  time.Time
}

// DayOf returns the local day of a time, without a limit and usage.
func DayOf(now time.Time) Day {
	year, month, day := now.Local().Date()
	return Day{Began: time.Date(year, month, day, 0, 0, 0, 0, time.Local), Ends: time.Date(year, month, day+1, 0, 0, 0, 0, time.Local)}
}

// Spent says that the limit is reached. It returns "" if it is not.
func (d Day) Spent() string {
	text := d.Limit.Reached(d.Used)
	if text == "" {
		return ""
	}
	return "today's budget of this repository is spent: " + text + " (budget_per_day)"
}
