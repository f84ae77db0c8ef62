package permission

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A rule about a command applies wherever the command occurs.
func TestCommands(t *testing.T) {
	all := Granting("granted", FileRead, FileWrite, BashExecute)
	without := func(pattern string) *Policy {
		return &Policy{Root: "/w", Agent: "a", Layers: []Layer{all, {"yours", []Rule{{BashExecute, pattern, Deny}}}}}
	}
	only := func(patterns ...string) *Policy {
		l := Layer{Name: "yours"}
		for _, p := range patterns {
			l.Rules = append(l.Rules, Rule{BashExecute, p, Allow})
		}
		return &Policy{Root: "/w", Agent: "a", Layers: []Layer{Granting("granted", FileRead), l}}
	}
	for _, tt := range []struct {
		policy  *Policy
		command string
		want    Action
	}{
		{without("rm *"), "ls -l; echo done", Allow},
		{without("rm *"), "true; rm x", Deny},
		{without("rm *"), "echo $(rm x)", Deny},
		{without("rm *"), "/bin/rm x", Deny},
		{without("rm *"), "rm", Deny},
		{without("rm *"), "cat <<EOF\n$(rm x)\nEOF", Deny},
		{without("rm *"), "grep rm x", Allow},
		{without("rm *"), "$cmd x", Ask},
		{without("rm *"), "bash -c 'rm x'", Ask},
		{without("rm *"), "find . -name x", Allow},
		{without("rm *"), "find . -exec rm {} ;", Ask},
		{without("rm *"), "r\\m x", Deny},
		{without("rm *"), "if true; then", Ask},
		{without("git push *"), "git push", Deny},
		{without("git push *"), "git $verb", Ask},
		{without("git push *"), "git pull", Allow},
		{without("git push *"), "echo $x", Allow},
		{only("git *", "go test *"), "git status && go test ./...", Allow},
		{only("git *", "go test *"), "git status && go build", Ask},
		{only("git *"), "git status | tee x", Ask},
		{only("git *"), "git log > x", Ask},
		{only("git *"), "git log > /dev/null 2>&1", Allow},
		{only("git *"), "x=$(curl y) git status", Ask},
		{only("git *"), "git commit -m \"$x\"", Allow},
		{only("git *"), "$(echo git) status", Ask},
		{only("*"), "$(echo git) status", Allow},
		{only("git *"), "", Allow},
	} {
		d := tt.policy.Decide(Request{Permission: BashExecute, Command: tt.command})
		if d.Action != tt.want || d.Reason == "" {
			t.Errorf("%q with %v: %+v, want %s", tt.command, tt.policy.Layers[1].Rules, d, tt.want)
		}
	}
}

// Redirecting output to a file requires permission to write it.
func TestRedirections(t *testing.T) {
	p := &Policy{Root: "/w", Agent: "a", Layers: []Layer{{"yours", []Rule{{BashExecute, "echo *", Allow}, {FileWrite, "/out/**", Allow}, {FileWrite, "/out/x", Deny}}}}}
	for command, want := range map[string]Action{
		"echo a > out/a": Allow, "echo a >> b": Ask, "echo a > out/x": Deny, "> out/x": Deny, "echo a > .git/config": Deny,
		"echo a > $f": Ask, "echo a &> out/b": Allow, "echo a 2>&1": Allow, "echo a < b": Allow, "echo a > out/../.git/x": Deny,
	} {
		if d := p.Decide(Request{Permission: BashExecute, Command: command}); d.Action != want {
			t.Errorf("%s: %+v, want %s", command, d, want)
		}
	}
	if d := p.Decide(Request{Permission: BashExecute, Command: "echo a > a", Dir: "/w/out"}); d.Action != Allow {
		t.Errorf("in a directory: %+v", d)
	}
}

// disguises are ways to run the program W.
var disguises = strings.Split(`W
"W"
for''bidden a
for\bidden a
$'\x66orbidden'
$(echo W)
`+"`echo W`"+`
x=W; $x a
x=W; "$x"
x=for; ${x}bidden
./bin/W
bin/W a
$PWD/bin/W
bin/forb*
./bin/forbidde?
{W,}
for{bidden,} a
command W a
builtin command W
env W
env -i PATH="$PATH" W
exec W
eval W
eval "W a"
eval 'for'bidden
bash -c W
bash -c "W; true"
sh -c 'W'
sh <<< W
echo W | sh
printf 'W\n' | bash
cat <<EOF | sh
W
EOF
sh <<EOF
W
EOF
echo a | xargs W
find . -maxdepth 0 -exec W ;
find . -maxdepth 0 -exec W \;
f() { W; }; f
function f { W a; }; f
trap W EXIT
trap 'W' 0
shopt -s expand_aliases; alias g=W
x='a[$(W)]'; echo $((x))
x='a[$(W)]'; (( x ))
x='a[$(W)]'; let x
let 'a[$(W)]=1'
x='$(W)'; echo "${x@P}"
x='a[$(W)]'; [[ $x -eq 1 ]]
[[ -v a[$(W)] ]]
x='a[$(W)]'; [[ -v $x ]]
x='a[$(W)]'; test -v "$x"
x='a[$(W)]'; [ -v "$x" ]
printf -v 'a[$(W)]' b
x='a[$(W)]'; printf -v "$x" b
read 'a[$(W)]' <<< b
x='a[$(W)]'; read "$x" <<< b
x='a[$(W)]'; unset "$x"
a=(1); unset 'a[$(W)]'
declare 'a[$(W)]=1'
x='a[$(W)]'; declare "$x=1"
x='a[$(W)]'; export "$x=1"
declare -i x='a[$(W)]'
x='a[$(W)]'; a[x]=1
x='b[$(W)]'; a=(1 2); echo ${a[x]}
x='b[$(W)]'; y=abc; echo ${y:x}
x='b[$(W)]'; a=([x]=1)
y='b[$(W)]'; x=y; echo ${!x}
x='a[$(W)]'; echo ${!x}
mapfile -C W -c 1 a <<< b
coproc W
time W
! W a
(W)
{ W; }
if W; then :; fi
while W; do break; done
until W; do break; done
case $(W) in a) ;; esac
case a in a) W;; esac
cat <(W)
echo a > >(W)
for i in $(W); do :; done
for i in W; do $i; done
echo "$(W)"
echo "a $(echo "$(W)")"
cat <<EOF
$(W)
EOF
cat <<< "$(W)"
x=$(W)
x=1 W
true && W
false || W
true | W
W & wait
W > out
> out W
2>/dev/null W
awk 'BEGIN { system("W") }'
make -f - <<< 'a: ; W'
split --filter=W /etc/passwd
setarch -R W
prlimit W
chrt -o 0 W
run-parts bin
/lib64/ld-linux-x86-64.so.2 bin/W
install -s --strip-program=bin/W bin/W s
cp bin/W ls; "$PWD"/ls
git init -q; git add .; git grep -OW echo
perl -e 'system("W")'
sed -n '1e W' /etc/passwd
git -c alias.x='!W' x
hash -p bin/W ls; ls
PATH=bin:$PATH; W
PROMPT_COMMAND=W
source <(echo W)
. /dev/stdin <<< W
echo W > s; sh s
echo W > s; chmod +x s; ./s
echo W > s; . ./s
nice W
nohup W
timeout 5 W
setsid W
stdbuf -o0 W
BASH_ENV=<(echo W) bash -c :
command_not_found_handle() { W; }; nosuchcommand
compgen -C W a
IFS=x; x=forxbidden; $x
set -- W; "$@"
set -- W; $1
select i in W; do $i; break; done <<< 1
x=(W); "${x[@]}"
printf -v x '%s' W; $x
read x <<< W; $x
tar -cf /dev/null --checkpoint=1 --checkpoint-action=exec=W /etc/passwd /etc/group
echo ${x:=W}; $x
echo ${y:-$(W)}
echo $((1 + $(W; echo 1)))
echo $[$(W; echo 1)]
while read l; do $l; done <<< W
ls; W`, "\n")

// commands returns disguises with the lines of here-documents joined.
func commands() []string {
	var all []string
	for i := 0; i < len(disguises); i++ {
		c := disguises[i]
		if strings.Contains(c, "<<EOF") {
			for c += "\n"; disguises[i] != "EOF"; c += disguises[i] + "\n" {
				i++
			}
		}
		all = append(all, strings.ReplaceAll(c, "W", "forbidden"))
	}
	return all
}

// A denied command never runs, however it is written. A shell runs the commands that the policy
// allows.
func TestDeniedCommandsNeverRun(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	marker := filepath.Join(dir, "marker")
	script := "#!/bin/sh\nexec >>" + marker + "\necho ran\n"
	if err := os.WriteFile(filepath.Join(dir, "bin", "forbidden"), []byte(script), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	run := func(command string) (ran bool) {
		cmd := exec.CommandContext(t.Context(), bash, "-c", command)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + filepath.Join(dir, "bin") + ":/usr/bin:/bin", "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1"}
		_, _ = cmd.CombinedOutput()
		_, err := os.Stat(marker)
		_ = os.Remove(marker)
		return err == nil
	}
	policy := &Policy{Root: dir, Agent: "a", Layers: []Layer{Granting("granted", FileRead, FileWrite, BashExecute), {"yours", []Rule{{BashExecute, "forbidden *", Deny}}}}}
	allowed := func(command string) bool {
		return policy.Decide(Request{Permission: BashExecute, Command: command}).Allowed()
	}
	real := 0
	for _, c := range commands() {
		if run(c) {
			real++
		}
		if allowed(c) && run(c) {
			t.Errorf("this is allowed, and runs what is denied: %s", c)
		}
	}
	if real < len(commands())*2/3 {
		t.Errorf("only %d of %d disguises work", real, len(commands()))
	}
	harmless := []string{"ls -l", "echo \"a b\" 'c' d", "cat <<EOF\na\nEOF", "grep -r forbidden . | head", "x=1; echo $x", "test -e a && cat a", "printf '%s\\n' a", "sort </dev/null | uniq -c", "echo forbidden"}
	for _, c := range harmless {
		if !allowed(c) {
			t.Errorf("this runs nothing that is denied: %s", c)
		}
	}
	quiet := 0
	random := rand.New(rand.NewPCG(11, 4))
	all := append(commands(), harmless...)
	for range 3000 {
		command := generated(random, all, 2)
		if !allowed(command) {
			continue
		}
		quiet++
		if random.IntN(4) == 0 && run(command) {
			t.Errorf("this is allowed, and runs what is denied: %s", command)
		}
	}
	if quiet < 100 {
		t.Errorf("only %d of 3000 commands were allowed", quiet)
	}
}

// With a rule that denies certain commands, a program that may run others needs a rule that names it. Shells and the like
// cannot be named.
func TestPlainPrograms(t *testing.T) {
	for command, want := range map[string]Action{
		"go test ./...": Allow, "cd sub && go test": Allow, "go build": Ask, "make": Ask, "npm test": Ask, "someprogram a b": Ask,
		"ls -l": Allow, "/usr/bin/ls": Allow, "/tmp/ls": Ask, "git diff": Allow, "git diff --output=x": Ask, "git grep -Oless x": Ask,
		"rg x": Allow, "rg --pre a x": Ask, "bash -c 'go test'": Ask, "env go test": Ask, "rm x": Deny,
	} {
		p := &Policy{Root: "/w", Layers: []Layer{Granting("granted", BashExecute), {"yours", []Rule{
			{BashExecute, "rm *", Deny}, {BashExecute, "go test *", Allow}, {BashExecute, "bash *", Allow}, {BashExecute, "env *", Allow},
		}}}}
		if d := p.Decide(Request{Permission: BashExecute, Command: command}); d.Action != want {
			t.Errorf("%s: %v", command, d)
		}
	}
}

// A redirection writes a file: rules for file.write decide about it, also if all commands are allowed.
func TestRedirectionsWriteFiles(t *testing.T) {
	for command, want := range map[string]Action{
		"echo a > src/x": Deny, "echo a >> src/x": Deny, "> src/x": Deny, "ls | cat > src/x": Deny, "cat < src/x": Allow, "echo a > other": Allow,
		`echo a > "$f"`: Ask, "make": Allow,
	} {
		p := &Policy{Root: "/w", Layers: []Layer{Granting("granted", BashExecute, FileWrite), {"yours", []Rule{{FileWrite, "src/**", Deny}}}}}
		if d := p.Decide(Request{Permission: BashExecute, Command: command}); d.Action != want {
			t.Errorf("%s: %v", command, d)
		}
	}
}

// generated returns a random combination of commands.
func generated(random *rand.Rand, of []string, depth int) string {
	one := func() string {
		if depth == 0 || random.IntN(3) == 0 {
			if random.IntN(3) > 0 {
				return of[len(of)-1-random.IntN(9)] // a harmless command
			}
			return of[random.IntN(len(of))]
		}
		return generated(random, of, depth-1)
	}
	form := []string{"%s", "%s; %s", "%s\n%s", "( %s\n)", "{ %s\n}", "if true; then\n%s\nfi", "echo \"$( %s\n)\"", "f() {\n%s\n}; f", "for i in a b; do\n%s\ndone", "cat <<X\n$(%s\n)\nX", "true && {\n%s\n}", "%s\n: | cat"}[random.IntN(12)]
	args := make([]any, strings.Count(form, "%s"))
	for i := range args {
		args[i] = one()
	}
	return fmt.Sprintf(form, args...)
}
