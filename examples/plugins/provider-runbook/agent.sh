# agent.sh FILE CONVERSATION: an agent without a model. The prompt in FILE has a block
#
#   ```sh
#   commands
#   ```
#
# and the agent runs them, one after the other, until one fails. It prints lines of
# fields with tabs between: started ID, call N COMMANDS, result N CODE OUTPUT,
# done ok|failed TEXT. In the last field, \n is a new line and \\ a backslash.
set -u
field() { tail -c 16000 | tr '\t\r' '  ' | sed 's/\\/\\\\/g' | awk '{printf "%s%s", sep, $0; sep = "\\n"}'; }

printf 'started\t%s\n' "$2"
steps=$(awk '/^[ \t]*```sh[ \t]*$/ {on = 1; next} /^[ \t]*```[ \t]*$/ {on = 0} on' "$1")
if [ -z "$steps" ]; then
	printf 'done\tfailed\tthe task has no block of shell commands: there is nothing to run\n'
	exit 1
fi
printf 'call\t1\t%s\n' "$(printf '%s\n' "$steps" | field)"
output=$(printf '%s\n' "$steps" | sh -eu 2>&1)
code=$?
printf 'result\t1\t%s\t%s\n' "$code" "$(printf '%s\n' "$output" | field)"
if [ "$code" -ne 0 ]; then
	printf 'done\tfailed\tthe commands ended with exit code %s\n' "$code"
	exit 1
fi
printf 'done\tok\tI have run the commands of the task.\n'
