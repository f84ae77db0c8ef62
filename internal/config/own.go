package config

import (
	"cmp"
	"reflect"
)

// keepLimits keeps the limits of the user's own file where those of the repository's file, which c has, are higher.
// user has the settings before the repository's file; set has the keys of the user's file.
func (c *Config) keepLimits(user Config, set map[string]bool) {
	c.Budget = c.Budget.Within(user.Budget)
	c.Run.Budget = c.Run.Budget.Within(user.Run.Budget)
	day := c.BudgetPerDay.Amount().Within(user.BudgetPerDay.Amount())
	c.BudgetPerDay = BudgetPerDay{USD: day.USD, Tokens: day.Tokens}
	lower(&c.Run.MaxTasks, user.Run.MaxTasks, set["run.max_tasks"])
	lower(&c.Queue.MaxConcurrent, user.Queue.MaxConcurrent, set["queue.max_concurrent"])
	for account, most := range user.Queue.ProviderLimits {
		if set["queue.provider_limits"] {
			c.Queue.ProviderLimits[account] = min(most, c.Queue.ProviderLimits[account])
		}
	}
	lower(&c.Timeouts.Idle, user.Timeouts.Idle, set["timeouts.idle"])
	lower(&c.Limits.MaxWait, user.Limits.MaxWait, set["limits.max_wait"])
	if most := user.Limits.SameCall; set["limits.same_call"] && most > 0 && (c.Limits.SameCall == 0 || c.Limits.SameCall > most) {
		c.Limits.SameCall = most // 0 means no limit
	}
}

// lower lowers a limit to that of the user, if the user has set one.
func lower[T cmp.Ordered](limit *T, users T, isSet bool) {
	if isSet {
		*limit = min(*limit, users)
	}
}

// keeps reports whether the value of a key is still that of the user's file.
func (c *Config) keeps(key key, user Config, set map[string]bool) bool {
	return set[key.name] && reflect.DeepEqual(key.of(*c), key.of(user))
}
