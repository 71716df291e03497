# SPDX-License-Identifier: BSD-3-Clause
# For the lists of steps: runs one after the other, tells how each ended, and at the end "N passed, N failed".
# Only steps whose names fit one of $patterns run. $logs: where each step leaves NAME.log, and results.jsonl tells name,
# ok, status and seconds of each. $build: the build tree.
set -u
: "${logs:=/tmp/vm_steps}" "${build:=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../../build/release")}"
export build PATH=$build/bin:$PATH
mkdir -p "$logs" || exit 1
: >"$logs/results.jsonl"
patterns=("$@") passed=0 failed=0

wanted() {
  [[ ${#patterns[@]} -gt 0 ]] || return 0
  local pattern
  # shellcheck disable=SC2053
  for pattern in "${patterns[@]}"; do [[ $1 == $pattern ]] && return 0; done
  return 1
}

# step NAME SECONDS COMMANDS: bash runs COMMANDS with -e and pipefail; what they start is ended with them.
step() {
  local name=$1 seconds=$2 log status=0 started=${EPOCHREALTIME//[!0-9]/} took word=ok
  wanted "$name" || return 0
  log=$logs/${name//[^A-Za-z0-9_.-]/_}.log
  (timeout -k 10 "$seconds" bash -e -o pipefail -c "$3") </dev/null >"$log" 2>&1 || status=$?
  took=$(((${EPOCHREALTIME//[!0-9]/} - started) / 1000))
  if [[ $status -eq 0 ]]; then passed=$((passed + 1)); else failed=$((failed + 1)) word=FAILED; fi
  printf '%-6s %3d.%d s  %s\n' "$word" $((took / 1000)) $((took % 1000 / 100)) "$name"
  printf '{"name": "%s", "ok": %s, "status": %d, "seconds": %d.%03d}\n' "$name" \
    "$([[ $word == ok ]] && echo true || echo false)" "$status" $((took / 1000)) $((took % 1000)) >>"$logs/results.jsonl"
  [[ $word == ok ]] && return
  [[ $status -ne 124 && $status -ne 137 ]] || echo "    | ended after $seconds s, the time this step may take"
  excerpt "$log" | tail -n 40 | sed 's/^/    | /'
}

# A log without the output of those of its tests (GoogleTest) that went well.
excerpt() {
  awk '
    /^\[ RUN      \]/ { held = $0; holding = 1; next }
    /^\[       OK \]/ || /^\[  SKIPPED \] [^0-9]*\(/ { holding = 0; next }
    /^\[  FAILED  \]/ && holding { print held; holding = 0 }
    holding { held = held "\n" $0; next }
    { print }
    END { if (holding) print held }' "$1"
}

# with_server PORT SERVER CLIENT: starts SERVER, runs CLIENT when something listens on PORT; both have to succeed.
with_server() {
  local server listening
  $2 &
  server=$!
  for _ in {1..200}; do
    listening=$(ss -Hltn "sport = :$1")
    [[ -z $listening ]] || break
    kill -0 "$server" || return 1
    sleep 0.1
  done
  $3 && wait "$server"
}

# with_remote_server PORT SERVER CLIENT: the same with SERVER on vm2.
with_remote_server() {
  local waits="while [ -z \"\$(ss -Hltn 'sport = :$1')\" ]; do kill -0 \$! || exit 1; sleep 0.1; done"
  local line status=0 server
  exec 7< <(exec ssh vm2 "$2 & $waits; echo; echo listening; wait \$!")
  server=$!
  while read -r line <&7 && [[ $line != listening ]]; do echo "vm2: $line"; done
  [[ $line == listening ]] || return 1
  $3 || status=$?
  sed 's/^/vm2: /' <&7
  wait "$server" && return "$status"
}
export -f with_server with_remote_server

# on_exit COMMANDS: run at the end of the step, before those that were given earlier.
on_exit() {
  at_end="{ $1; } || true; ${at_end-}"
  # shellcheck disable=SC2064  # the commands are known now
  trap "$at_end" EXIT
}
# beside COMMAND...: starts it; `wait $!` tells how it ended. The step ends it, and shows its output after its own.
beside() {
  "$@" &>/tmp/beside &
  on_exit "kill $! 2>/dev/null || true; cat /tmp/beside"
}
# run_tests PATTERN...: tests of the conformance suite, at least one of each pattern.
run_tests() {
  local IFS=:
  ibcoll_conformance_tests --gtest_filter="$*" | tee /tmp/tests
  local passed
  passed=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) tests*\./\1/p' /tmp/tests)
  [[ $passed -ge $# ]] || { echo "$passed tests of $# patterns"; return 1; }
}
# fails_saying TEXT COMMAND...
fails_saying() {
  if "${@:2}" >/tmp/said 2>&1; then echo "no failure: ${*:2}" && cat /tmp/said && return 1; fi
  grep -F "$1" /tmp/said || { cat /tmp/said; return 1; }
}
# refused TEXT VARIABLE=VALUE...: verbs cannot be used, and says TEXT; where it was not demanded, a job runs without it.
refused() {
  fails_saying "$1" env "${@:2}" ibcoll_run -n 2 --nodes 2 --net verbs --timeout 20 ibcoll_perf barrier --iterations 2
  falls_back 2 "$1" env "${@:2}"
}
# falls_back RANKS TEXT COMMAND...: a job that COMMAND starts runs without verbs; ibcoll_info -d says TEXT.
falls_back() {
  local ranks=$1
  shift
  "${@:2}" env UCX_TLS=tcp ibcoll_run -n "$ranks" --nodes "$ranks" --timeout 40 ibcoll_info -d >/tmp/said 2>&1 || { cat /tmp/said; return 1; }
  grep "verbs is not used: " /tmp/said | grep -F "$1" || { cat /tmp/said; return 1; }
}

# sent, received: how many packets the device of this machine has sent or received.
packets() { rdma statistic show link rxe0/1 | grep -o "$1_pkts [0-9]*" | cut -d ' ' -f 2; }
sent() { packets sent; }
received() { packets rcvd; }
# survivors IBCOLL_RUN...: starts a job that does large alltoalls without end, and waits until it is well under way. Its
# ranks are shells that outlive the program, so that the launcher ends no rank.
survivors() {
  rm -rf /tmp/ranks && mkdir /tmp/ranks
  "$@" bash -c "
    $build/bin/ibcoll_perf alltoall --bytes 1M --scheme zero_copy --check --seconds 300 --warmup 0 2>&1 & program=\$!
    mkdir -p /tmp/ranks; echo \$program >/tmp/ranks/\$IBCOLL_RUN_RANK.pid
    wait \$program; echo \"rank \$IBCOLL_RUN_RANK ended with \$?\"; sleep 60" >/tmp/ranks/log 2>&1 &
  job=$!
  moves_on
}
# moves_on: waits until the job of survivors has received 2000 packets more.
moves_on() {
  local enough=$(($(received) + 2000))
  until [[ $(received) -gt $enough ]]; do
    kill -0 "$job" || { cat /tmp/ranks/log; return 1; }
    sleep 0.2
  done
}
# kill_rank RANK [HOST]
kill_rank() {
  local kill="kill -KILL \$(cat /tmp/ranks/$1.pid)"
  if [[ $# -gt 1 ]]; then ssh "$2" "$kill"; else bash -c "$kill"; fi
}
# lost_rank SECONDS LOST RANK...: each RANK says within SECONDS that it has lost LOST, and its program fails.
lost_rank() {
  local lost=$2 rank end=$((${EPOCHREALTIME%.*} + $1 + 1))
  shift 2
  for rank; do
    until grep -q "^ibcoll_perf: rank $rank: .*rank $lost of the job .*failed" /tmp/ranks/log &&
      grep -q "rank $rank ended with [1-9]" /tmp/ranks/log; do
      [[ ${EPOCHREALTIME%.*} -lt $end ]] || { echo "rank $rank has not said that it lost rank $lost"; cat /tmp/ranks/log; return 1; }
      sleep 0.2
    done
  done
  cat /tmp/ranks/log
}
export -f on_exit beside run_tests fails_saying falls_back refused packets sent received
export -f survivors moves_on kill_rank lost_rank

# limited BYTES COMMAND...: with that much locked memory, and without the right to exceed it.
limited() { prlimit "--memlock=$1" setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock "${@:2}"; }
# over_rdma COMMAND: over UCX and RDMA. UCX connects to nobody by the IPv4 GID of soft-RoCE; GID 0 is the IPv6 one. Its
# default for UCX_UD_TIMEOUT is five minutes: for so long it does not report that a peer it is connecting to has gone.
over_rdma() { UCX_IB_GID_INDEX=0 UCX_UD_TIMEOUT=10s IBCOLL_UCX_TLS=rc,ud "$@"; }
# both COMMANDS: on vm1 and on vm2.
both() { bash -c "$*" && ssh vm2 "$*"; }
# lossy PERCENT DELAY: both ends of the link lose packets and delay the others, until the step ends.
lossy() {
  on_exit 'both "tc qdisc del dev data root"'
  both "tc qdisc add dev data root netem loss $1% delay $2"
}
# lost: how many packets vm1 has lost; fails when none.
lost() { tc -s qdisc show dev data | tee /dev/stderr | grep -q 'dropped [1-9]'; }
# between RANKS ARGUMENT...: ibcoll_run over verbs, with RANKS ranks on each machine.
between() { ibcoll_run --host "vm1:$1,vm2:$1" --net verbs --timeout "${job_seconds:-80}" "${@:2}"; }
export -f limited over_rdma both lossy lost between

finish() {
  if [[ $((passed + failed)) -eq 0 ]]; then
    echo "no step is called ${patterns[*]}"
    failed=1
  fi
  echo "$passed passed, $failed failed"
  [[ $failed -eq 0 ]]
}
