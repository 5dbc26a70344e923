# TAP from bash. Sourced by lib.sh; useful alone for tests that need no volumes.
#
#   ok NAME COMMAND...       the command must succeed; its output is shown when it does not
#   not_ok NAME COMMAND...   the command must fail
#   is HAVE WANT NAME        the texts must be equal
#   like TEXT REGEX NAME     the text must match (extended regular expression)
#   at_most HAVE LIMIT NAME  / at_least: numbers, fractions allowed
#   pass NAME / fail NAME [WHY]
#   todo NAME REASON COMMAND...  a known gap: shown, and counted neither as passed nor as failed
#   skip NAME REASON         counts one case as skipped
#   skip_all REASON          ends the test as skipped; before the first case only
#   nested PREFIX COMMAND... the command prints TAP: its cases become cases of this test, named "PREFIX: name"
#   diag TEXT...             a comment
#   done_testing             prints the plan; at the end of every test
#
# The exit status of a test is 0 when no case failed.

tap_count=0
tap_failed=0

diag() { printf '%s\n' "$*" | sed 's/^/# /'; }

pass() { tap_count=$((tap_count + 1)); echo "ok $tap_count - $1"; }

fail() {
    tap_count=$((tap_count + 1)); tap_failed=$((tap_failed + 1))
    echo "not ok $tap_count - $1"
    [ $# -lt 2 ] || diag "$2"
    return 1
}

ok() {
    local name=$1 output status
    shift
    output=$("$@" 2>&1)
    status=$?
    if [ $status = 0 ]; then pass "$name"; else fail "$name" "$* gave status $status${output:+: $output}"; fi
}

not_ok() {
    local name=$1 output
    shift
    if output=$("$@" 2>&1); then fail "$name" "$* succeeded${output:+: $output}"; else pass "$name"; fi
}

is() { if [ "$1" = "$2" ]; then pass "$3"; else fail "$3" "have: $1
want: $2"; fi; }

like() { if [[ $1 =~ $2 ]]; then pass "$3"; else fail "$3" "have:        $1
to match:    $2"; fi; }

at_most() { if awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && a + 0 <= b + 0) }'; then pass "$3"; else fail "$3" "$1 is more than $2"; fi; }
at_least() { if awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && a + 0 >= b + 0) }'; then pass "$3"; else fail "$3" "$1 is less than $2"; fi; }

todo() {
    local name=$1 reason=$2 word="not ok"
    shift 2
    if "$@" >/dev/null 2>&1; then word=ok; fi
    tap_count=$((tap_count + 1)); echo "$word $tap_count - $name # TODO $reason"
}

skip() { tap_count=$((tap_count + 1)); echo "ok $tap_count - $1 # SKIP $2"; }

skip_all() {
    [ $tap_count = 0 ] || { fail "skip_all after cases"; exit 1; }
    echo "1..0 # SKIP $*"
    exit 0
}

nested() {
    local prefix=$1 line seen=0 status
    shift
    while IFS= read -r line; do
        case $line in
            'exit '[0-9]*) status=${line#exit };;
            'ok '*' # SKIP'*) line=${line#ok * - }; skip "$prefix: ${line%% # SKIP*}" "${line#* # SKIP }"; seen=$((seen + 1));;
            'ok '*) pass "$prefix: ${line#ok * - }"; seen=$((seen + 1));;
            'not ok '*) fail "$prefix: ${line#not ok * - }"; seen=$((seen + 1));;
            1..*) ;;
            *) echo "# ${line#\# }";;
        esac
    done < <("$@" 2>&1; echo "exit $?")
    # a status without a failed case, or no cases at all, would otherwise go unseen
    if [ $seen = 0 ]; then fail "$prefix: prints cases" "$* gave status $status"; fi
    if [ "$status" -gt 1 ]; then fail "$prefix: ends by itself" "$* gave status $status"; fi
}

done_testing() {
    echo "1..$tap_count"
    [ $tap_failed = 0 ] || { diag "$tap_failed of $tap_count failed"; exit 1; }
    exit 0
}

# wait_for SECONDS COMMAND...: until the command succeeds, with a deadline; its status tells. The output of the last try
# is shown when none succeeded.
wait_for() {
    local end=$((${EPOCHREALTIME/./} + $1 * 1000000))
    shift
    until "$@" >/dev/null 2>&1; do
        if [ "${EPOCHREALTIME/./}" -ge "$end" ]; then "$@"; return; fi
        sleep 0.05
    done
}

# seconds COMMAND...: runs it, its output on stderr, and prints how long it took; its status is kept.
seconds() {
    local start=${EPOCHREALTIME/./} status
    "$@" >&2
    status=$?
    awk -v us=$((${EPOCHREALTIME/./} - start)) 'BEGIN { printf "%.3f\n", us / 1e6 }'
    return $status
}
